"""The adapters that a user plugs into DSPy, and the flow that they run (`call.py`)."""

from sigadapt.adapters.baml_adapter import BAMLAdapter
from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.adapters.json_adapter import JSONAdapter
from sigadapt.adapters.two_step_adapter import TwoStepAdapter
from sigadapt.adapters.xml_adapter import XMLAdapter

__all__ = ["BAMLAdapter", "ChatAdapter", "JSONAdapter", "TwoStepAdapter", "XMLAdapter"]
