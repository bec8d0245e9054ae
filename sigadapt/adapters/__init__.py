"""The adapters that a user plugs into DSPy, and the flow that they run (`call.py`)."""
