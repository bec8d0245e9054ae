"""sigadapt: declare tools in a DSPy signature, get typed calls back from any provider.

The public names, nothing else. The flow, and the name of each thing as it passes:
Signature -> Plan -> Request -> (dspy.LM) -> Response -> Choice -> outputs.
"""

from sigadapt.adapters.baml_adapter import BAMLAdapter
from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.adapters.choice import Choice, choice_from_response, choice_from_stream, choices_from_response
from sigadapt.adapters.json_adapter import JSONAdapter
from sigadapt.adapters.two_step_adapter import TwoStepAdapter
from sigadapt.adapters.xml_adapter import XMLAdapter
from sigadapt.errors import (
    InvalidToolDecl,
    MissingToolCalls,
    SigadaptError,
    ToolCallParseError,
    UnreadableResponse,
)
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls
from sigadapt.signatures.decls import ToolDecl, ToolDecls
from sigadapt.signatures.results import ToolResult, ToolResults
from sigadapt.signatures.toolset import Toolset

__version__ = "0.1.0"

__all__ = [
    "BAMLAdapter",
    "ChatAdapter",
    "Choice",
    "InvalidToolCall",
    "InvalidToolDecl",
    "JSONAdapter",
    "MissingToolCalls",
    "SigadaptError",
    "ToolCall",
    "ToolCallParseError",
    "ToolCalls",
    "ToolDecl",
    "ToolDecls",
    "ToolResult",
    "ToolResults",
    "Toolset",
    "TwoStepAdapter",
    "UnreadableResponse",
    "XMLAdapter",
    "choice_from_response",
    "choice_from_stream",
    "choices_from_response",
]
