"""What the wire formats have in common: values of a body, ends of an answer, and states of a turn."""
