"""The adapters that a user plugs into DSPy, and the flow that they run (`call.py`)."""

from sigadapt.adapters.chat_adapter import ChatAdapter, XMLAdapter
from sigadapt.adapters.json_adapter import BAMLAdapter, JSONAdapter
from sigadapt.adapters.two_step_adapter import TwoStepAdapter

__all__ = ["BAMLAdapter", "ChatAdapter", "JSONAdapter", "TwoStepAdapter", "XMLAdapter"]
