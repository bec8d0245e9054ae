"""sigadapt: declare tools in a DSPy signature, get typed calls back from any provider.

The public names, nothing else. The flow, and the name of each thing as it passes:
Signature -> Plan -> Request -> (dspy.LM) -> Response -> Choice -> outputs.

A name's file is imported when the name is first used, as pydantic does: to read a response loads no adapter.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sigadapt.errors import (
    InvalidToolDecl,
    MissingToolCalls,
    SigadaptError,
    ToolCallParseError,
    UnreadableResponse,
)

if TYPE_CHECKING:
    from sigadapt.adapters.baml_adapter import BAMLAdapter
    from sigadapt.adapters.chat_adapter import ChatAdapter
    from sigadapt.adapters.choice import (
        Choice,
        choice_from_response,
        choice_from_stream,
        choices_from_response,
    )
    from sigadapt.adapters.json_adapter import JSONAdapter
    from sigadapt.adapters.two_step_adapter import TwoStepAdapter
    from sigadapt.adapters.xml_adapter import XMLAdapter
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

_HOMES = {
    "BAMLAdapter": "adapters.baml_adapter",
    "ChatAdapter": "adapters.chat_adapter",
    "Choice": "adapters.choice",
    "InvalidToolCall": "signatures.calls",
    "JSONAdapter": "adapters.json_adapter",
    "ToolCall": "signatures.calls",
    "ToolCalls": "signatures.calls",
    "ToolDecl": "signatures.decls",
    "ToolDecls": "signatures.decls",
    "ToolResult": "signatures.results",
    "ToolResults": "signatures.results",
    "Toolset": "signatures.toolset",
    "TwoStepAdapter": "adapters.two_step_adapter",
    "XMLAdapter": "adapters.xml_adapter",
    "choice_from_response": "adapters.choice",
    "choice_from_stream": "adapters.choice",
    "choices_from_response": "adapters.choice",
}


def __getattr__(name: str) -> Any:
    if name in ("adapters", "signatures"):
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
