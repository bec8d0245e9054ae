"""sigadapt: declare tools in a DSPy signature, get typed calls back from any provider.

The names that most programs with tools need; the public modules have the others. The flow, and the name of
each thing as it passes: Signature -> Plan -> Request -> (dspy.LM) -> Response -> Choice -> outputs.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sigadapt.errors import Declined, InputNeeded, LimitExceeded, SigadaptError, ToolCallParseError
from sigadapt.histories import trim_history
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls
from sigadapt.signatures.confirmation import Confirmation
from sigadapt.signatures.server_tools import Files, Sources
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_functions.open_call import Pending
from sigadapt.signatures.tool_functions.tool_context import ToolContext
from sigadapt.signatures.tool_results.results import ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.signatures.toolset import RequestContext, Toolset
from sigadapt.tool_texts import ToolTexts

__version__ = "0.1.0"

ConfirmationNeeded = InputNeeded  # the name that independent checks beside this repository use

logging.getLogger("sigadapt").addHandler(logging.NullHandler())  # quiet unless a program asks

if TYPE_CHECKING:
    from sigadapt import adapters as adapters
    from sigadapt import errors as errors
    from sigadapt import events as events
    from sigadapt import listeners as listeners
    from sigadapt import logs as logs
    from sigadapt import metrics as metrics
    from sigadapt import response as response
    from sigadapt import server_tools as server_tools
    from sigadapt import testing as testing
    from sigadapt import tracing as tracing
    from sigadapt import trust as trust
    from sigadapt import ui as ui
    from sigadapt.adapters.dspy_adapters import ChatAdapter as ChatAdapter
    from sigadapt.adapters.dspy_adapters import JSONAdapter as JSONAdapter
    from sigadapt.adapters.request.canonical import Change as Change
    from sigadapt.adapters.response.choice import Choice as Choice
    from sigadapt.adapters.response.choice import choice_from_response as choice_from_response
    from sigadapt.providers.usage import Usage as Usage
    from sigadapt.runs.ledger import Limits as Limits
    from sigadapt.runs.react import ReAct as ReAct
    from sigadapt.runs.run import Run as Run
    from sigadapt.runs.run import rounds as rounds
    from sigadapt.runs.run import run_of as run_of
    from sigadapt.runs.stream import stream as stream
    from sigadapt.runs.stream import stream_sync as stream_sync
    from sigadapt.runs.waiting_runs import WaitingRuns as WaitingRuns

_MODULES = (
    *("adapters", "errors", "events", "listeners", "logs", "metrics", "response"),
    *("server_tools", "testing", "tracing", "trust", "ui"),
)

# Imported when it is asked for: the adapters, half of the import, and what few programs need.
_LATER = {
    "Change": "sigadapt.adapters.request.canonical",
    "ChatAdapter": "sigadapt.adapters.dspy_adapters",
    "Choice": "sigadapt.adapters.response.choice",
    "JSONAdapter": "sigadapt.adapters.dspy_adapters",
    "choice_from_response": "sigadapt.adapters.response.choice",
    "Limits": "sigadapt.runs.ledger",
    "ReAct": "sigadapt.runs.react",
    "Run": "sigadapt.runs.run",
    "Usage": "sigadapt.providers.usage",
    "WaitingRuns": "sigadapt.runs.waiting_runs",
    "rounds": "sigadapt.runs.run",
    "run_of": "sigadapt.runs.run",
    "stream": "sigadapt.runs.stream",
    "stream_sync": "sigadapt.runs.stream",
    # Independent checks beside this repository use these two from here.
    "CallListener": "sigadapt.listeners",
    "choice_from_stream": "sigadapt.response",
}

if not TYPE_CHECKING:  # a type checker would take any name for one of this module

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"sigadapt.{name}")
        if name in _LATER:
            value = globals()[name] = getattr(import_module(_LATER[name]), name)
            return value
        raise AttributeError(f"module 'sigadapt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))]


__all__ = [
    "Change",
    "ChatAdapter",
    "Choice",
    "Confirmation",
    "Declined",
    "Files",
    "InputNeeded",
    "InvalidToolCall",
    "JSONAdapter",
    "LimitExceeded",
    "Limits",
    "Pending",
    "ReAct",
    "RequestContext",
    "Run",
    "SigadaptError",
    "Sources",
    "ToolCall",
    "ToolCallParseError",
    "ToolCalls",
    "ToolContext",
    "ToolDecl",
    "ToolDecls",
    "ToolResult",
    "ToolResults",
    "ToolTexts",
    "Toolset",
    "Usage",
    "WaitingRuns",
    "choice_from_response",
    "rounds",
    "run_of",
    "stream",
    "stream_sync",
    "trim_history",
]
