"""What is done to a Request before it is sent, and undone in its answer: one file for each thing."""
