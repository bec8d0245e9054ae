"""Trust: tools that others may change, and conversations that a client keeps."""
