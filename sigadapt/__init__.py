"""sigadapt: declare tools in a DSPy signature, get typed calls back from any provider.

The public names, nothing else. The flow, and the name of each thing as it passes:
Signature -> Plan -> Request -> (dspy.LM) -> Response -> Choice -> outputs.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sigadapt.adapters.baml_adapter import BAMLAdapter
from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.adapters.json_adapter import JSONAdapter
from sigadapt.adapters.listeners import CallListener, PartialCall
from sigadapt.adapters.request.canonical import Change
from sigadapt.adapters.response.choice import (
    Choice,
    choice_from_response,
    choice_from_stream,
    choices_from_response,
)
from sigadapt.adapters.response.text_choice import choice_from_text
from sigadapt.adapters.two_step_adapter import TwoStepAdapter
from sigadapt.adapters.xml_adapter import XMLAdapter
from sigadapt.errors import (
    ConfirmationNeeded,
    InvalidHistory,
    InvalidOption,
    InvalidSignature,
    InvalidToolDecl,
    MissingToolCalls,
    SigadaptError,
    ToolCallParseError,
    UnboundToolCall,
    UnreadableResponse,
    UnusableAnswer,
)
from sigadapt.histories import trim_history
from sigadapt.runs.rounds import rounds
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls
from sigadapt.signatures.confirmation import Confirmation
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.results import ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.signatures.toolset import RequestContext, Toolset
from sigadapt.tool_texts import ToolTexts
from sigadapt.trust.pins import Drift, drift_of, pinned, pins_of
from sigadapt.trust.signing import is_signed, sign
from sigadapt.trust.untrusted import untrusted_history

__version__ = "0.1.0"

logging.getLogger("sigadapt").addHandler(logging.NullHandler())  # quiet unless a program asks

if TYPE_CHECKING:
    from sigadapt import metrics as metrics


def __getattr__(name: str) -> Any:
    # Only a program that evaluates something needs the metrics.
    if name == "metrics":
        return import_module("sigadapt.metrics")
    raise AttributeError(f"module 'sigadapt' has no attribute {name!r}")


__all__ = [
    "BAMLAdapter",
    "CallListener",
    "Change",
    "ChatAdapter",
    "Choice",
    "Confirmation",
    "ConfirmationNeeded",
    "Drift",
    "InvalidHistory",
    "InvalidOption",
    "InvalidSignature",
    "InvalidToolCall",
    "InvalidToolDecl",
    "JSONAdapter",
    "MissingToolCalls",
    "PartialCall",
    "RequestContext",
    "SigadaptError",
    "ToolCall",
    "ToolCallParseError",
    "ToolCalls",
    "ToolDecl",
    "ToolDecls",
    "ToolResult",
    "ToolResults",
    "ToolTexts",
    "Toolset",
    "TwoStepAdapter",
    "UnboundToolCall",
    "UnreadableResponse",
    "UnusableAnswer",
    "XMLAdapter",
    "choice_from_response",
    "choice_from_stream",
    "choice_from_text",
    "choices_from_response",
    "drift_of",
    "is_signed",
    "pinned",
    "pins_of",
    "rounds",
    "sign",
    "trim_history",
    "untrusted_history",
]
