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
from sigadapt.signatures.server.tools import (
    CodeExecution,
    FileSearch,
    ImageGeneration,
    McpServer,
    WebFetch,
    WebSearch,
)
from sigadapt.signatures.server.work import File, Files, ServerToolCall, Source, Sources
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
    from sigadapt import ui as ui
    from sigadapt.logs.conversation import Conversation as Conversation
    from sigadapt.logs.conversation import conversation_from_request as conversation_from_request
    from sigadapt.runs.events import CallDelta as CallDelta
    from sigadapt.runs.events import CallReady as CallReady
    from sigadapt.runs.events import Confirm as Confirm
    from sigadapt.runs.events import Ended as Ended
    from sigadapt.runs.events import Failed as Failed
    from sigadapt.runs.events import FileReady as FileReady
    from sigadapt.runs.events import ReasoningDelta as ReasoningDelta
    from sigadapt.runs.events import ResultReady as ResultReady
    from sigadapt.runs.events import ServerCall as ServerCall
    from sigadapt.runs.events import SourceReady as SourceReady
    from sigadapt.runs.events import TextDelta as TextDelta
    from sigadapt.runs.events import Used as Used
    from sigadapt.runs.stream import stream as stream
    from sigadapt.runs.stream import stream_sync as stream_sync

# What only some programs need is imported when it is asked for.
_EVENTS = (
    "CallDelta CallReady Confirm Ended Failed FileReady ReasoningDelta ResultReady ServerCall SourceReady "
    "TextDelta Used"
)
_LATER = {
    **dict.fromkeys(_EVENTS.split(), "sigadapt.runs.events"),
    "Conversation": "sigadapt.logs.conversation",
    "conversation_from_request": "sigadapt.logs.conversation",
    "stream": "sigadapt.runs.stream",
    "stream_sync": "sigadapt.runs.stream",
}


def __getattr__(name: str) -> Any:
    if name in ("metrics", "ui"):
        return import_module(f"sigadapt.{name}")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'sigadapt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_LATER]


__all__ = [
    "BAMLAdapter",
    "CallDelta",
    "CallListener",
    "CallReady",
    "Change",
    "ChatAdapter",
    "Choice",
    "CodeExecution",
    "Confirm",
    "Confirmation",
    "ConfirmationNeeded",
    "Conversation",
    "Drift",
    "Ended",
    "Failed",
    "File",
    "FileReady",
    "FileSearch",
    "Files",
    "ImageGeneration",
    "InvalidHistory",
    "InvalidOption",
    "InvalidSignature",
    "InvalidToolCall",
    "InvalidToolDecl",
    "JSONAdapter",
    "McpServer",
    "MissingToolCalls",
    "PartialCall",
    "ReasoningDelta",
    "RequestContext",
    "ResultReady",
    "ServerCall",
    "ServerToolCall",
    "SigadaptError",
    "Source",
    "SourceReady",
    "Sources",
    "TextDelta",
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
    "Used",
    "WebFetch",
    "WebSearch",
    "XMLAdapter",
    "choice_from_response",
    "choice_from_stream",
    "choice_from_text",
    "choices_from_response",
    "conversation_from_request",
    "drift_of",
    "is_signed",
    "pinned",
    "pins_of",
    "rounds",
    "sign",
    "stream",
    "stream_sync",
    "trim_history",
    "untrusted_history",
]
