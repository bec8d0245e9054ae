"""The adapters that a user plugs into DSPy, and the flow that they run (`call.py`)."""

from sigadapt.adapters.dspy_adapters import BAMLAdapter, ChatAdapter, JSONAdapter, TwoStepAdapter, XMLAdapter

__all__ = ["BAMLAdapter", "ChatAdapter", "JSONAdapter", "TwoStepAdapter", "XMLAdapter"]
