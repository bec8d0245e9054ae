"""The types of a signature's tool fields: tools in, calls out, results back. Nothing here sends a request."""
