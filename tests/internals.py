"""What tests reach behind the public names: everything internal that a test imports, and from where.

If a file of the package moves, its line here changes, and no test.
"""

from sigadapt.adapters import plan, text_listeners
from sigadapt.adapters.calling.calling import Calling
from sigadapt.adapters.lm import routes, transport
from sigadapt.adapters.lm.routes import route_of
from sigadapt.adapters.lm.streams import recorder
from sigadapt.adapters.lm.to_lm15 import to_lm15
from sigadapt.adapters.passes.bridges import BRIDGE
from sigadapt.adapters.passes.order import lower
from sigadapt.adapters.passes.prompts import prompted_request, read_calls_in_text, writers
from sigadapt.adapters.passes.tool_fields import sendable
from sigadapt.adapters.plan import plan_of
from sigadapt.adapters.request.canonical import Request, canonical_choice
from sigadapt.adapters.request.messages import assistant_message, messages_of, result_message
from sigadapt.adapters.request.orphans import heal
from sigadapt.adapters.request.prompt import prompt_of, question
from sigadapt.adapters.response.stream_events import events_of
from sigadapt.adapters.response.text_choice import looks_like, text_read
from sigadapt.adapters.text_listeners import TextSubscription
from sigadapt.commands import demo
from sigadapt.commands.printing import layout
from sigadapt.display.places import Excerpt, excerpt_of, printable
from sigadapt.display.rendering import Cell, Rendering
from sigadapt.dspy_boundary import contract, internals
from sigadapt.dspy_boundary.internals import select_backend
from sigadapt.dspy_boundary.stream_relay import StreamRelay
from sigadapt.providers import BY_WIRE, PROVIDERS, ROUTES
from sigadapt.providers.route import OWN_ENGINE, Route
from sigadapt.providers.wire import control_tokens
from sigadapt.providers.wire.reading import Reading
from sigadapt.runs.field_texts import field_texts
from sigadapt.runs.submit_texts import SubmitTexts
from sigadapt.schemas import checking
from sigadapt.schemas.arguments import Flaw, check_decoded, parse_arguments
from sigadapt.schemas.caches import BUDGET, BoundedCache, WeakCache
from sigadapt.schemas.checking import check
from sigadapt.schemas.json_values import (
    RepeatedKeys,
    compact,
    cut,
    decode,
    fault_in,
    json_like,
    listed,
    pointer,
)
from sigadapt.signatures import tool_decl
from sigadapt.signatures.awaiting import Await, Steps, arun, run
from sigadapt.signatures.calls import RefusedToolCall, Turn
from sigadapt.signatures.calls.salvage import repair, unwrap, without_leaked_tokens
from sigadapt.signatures.sources import annotations, describe_source, runnable
from sigadapt.signatures.sources.fields import DeclFields
from sigadapt.signatures.sources.fingerprint import DeclaredCache
from sigadapt.signatures.tool_functions.open_call import open_call
from sigadapt.signatures.tool_index import ToolIndex
from sigadapt.signatures.tool_results import function_calls
from sigadapt.signatures.tool_results.failures import message_in
from sigadapt.signatures.tool_results.plain_values import result_text
from sigadapt.signatures.tool_results.tool_output import edit_note
from sigadapt.signatures.toolset import resolving
from sigadapt.testing.exchange import Response
from sigadapt.testing.server import Server
from sigadapt.text.formats import FORMATS
from sigadapt.text.gate import TextGate
from sigadapt.text.layout import Layout
from sigadapt.text.reader import read_text
from sigadapt.text.scan import Scan
from sigadapt.trust.canonical import canonical
from sigadapt.trust.masking import Masking

__all__ = [
    "BRIDGE",
    "BUDGET",
    "BY_WIRE",
    "FORMATS",
    "OWN_ENGINE",
    "PROVIDERS",
    "ROUTES",
    "Await",
    "BoundedCache",
    "Calling",
    "Cell",
    "DeclFields",
    "DeclaredCache",
    "Excerpt",
    "Flaw",
    "Layout",
    "Masking",
    "Reading",
    "RefusedToolCall",
    "Rendering",
    "RepeatedKeys",
    "Request",
    "Response",
    "Route",
    "Scan",
    "Server",
    "Steps",
    "StreamRelay",
    "SubmitTexts",
    "TextGate",
    "TextSubscription",
    "ToolIndex",
    "Turn",
    "WeakCache",
    "annotations",
    "arun",
    "assistant_message",
    "canonical",
    "canonical_choice",
    "check",
    "check_decoded",
    "checking",
    "compact",
    "contract",
    "control_tokens",
    "cut",
    "decode",
    "demo",
    "describe_source",
    "edit_note",
    "events_of",
    "excerpt_of",
    "fault_in",
    "field_texts",
    "function_calls",
    "heal",
    "internals",
    "json_like",
    "layout",
    "listed",
    "looks_like",
    "lower",
    "message_in",
    "messages_of",
    "open_call",
    "parse_arguments",
    "plan",
    "plan_of",
    "pointer",
    "printable",
    "prompt_of",
    "prompted_request",
    "question",
    "read_calls_in_text",
    "read_text",
    "recorder",
    "repair",
    "resolving",
    "result_message",
    "result_text",
    "route_of",
    "routes",
    "run",
    "runnable",
    "select_backend",
    "sendable",
    "text_listeners",
    "text_read",
    "to_lm15",
    "tool_decl",
    "transport",
    "unwrap",
    "without_leaked_tokens",
    "writers",
]
