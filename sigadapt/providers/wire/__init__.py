"""What the wire formats have in common: values of a body, pieces of a stream, ends, turns and results."""
