"""What tests reach behind the public names: everything internal that a test imports, and from where.

If a file of the package moves, its line here changes, and no test.
"""

from sigadapt.adapters import text_listeners
from sigadapt.adapters.calling.calling import Calling
from sigadapt.adapters.lm import transport
from sigadapt.adapters.lm.routes import route_of
from sigadapt.adapters.lm.streams import recorder
from sigadapt.adapters.lm.to_lm15 import to_lm15
from sigadapt.adapters.passes.order import lower
from sigadapt.adapters.passes.prompts import prompted_request, read_calls_in_text, writers
from sigadapt.adapters.passes.tool_fields import sendable
from sigadapt.adapters.plan import plan_of
from sigadapt.adapters.request.canonical import Request, canonical_choice
from sigadapt.adapters.request.messages import assistant_message, messages_of, result_message
from sigadapt.adapters.request.prompt import prompt_of, question
from sigadapt.adapters.response.stream_events import events_of
from sigadapt.adapters.response.text_choice import text_read
from sigadapt.adapters.text_listeners import TextSubscription
from sigadapt.commands import demo
from sigadapt.commands.printing import layout
from sigadapt.display.places import excerpt_of, printable
from sigadapt.dspy_boundary import contract, internals
from sigadapt.dspy_boundary.stream_relay import StreamRelay
from sigadapt.providers import BY_WIRE, PROVIDERS, ROUTES
from sigadapt.providers.route import OWN_ENGINE, Route
from sigadapt.providers.wire import control_tokens
from sigadapt.providers.wire.reading import Reading
from sigadapt.schemas.arguments import Flaw, check_decoded, parse_arguments
from sigadapt.schemas.caches import BUDGET, BoundedCache, WeakCache
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
from sigadapt.signatures.calls import Turn
from sigadapt.signatures.calls.salvage import repair, unwrap, without_leaked_tokens
from sigadapt.signatures.sources import runnable
from sigadapt.signatures.tool_index import ToolIndex
from sigadapt.signatures.tool_results import function_calls
from sigadapt.signatures.tool_results.plain_values import result_text
from sigadapt.testing.exchange import Response
from sigadapt.testing.server import Server
from sigadapt.text.formats import FORMATS
from sigadapt.text.gate import TextGate
from sigadapt.text.layout import Layout
from sigadapt.text.scan import Scan
from sigadapt.trust.masking import Masking

__all__ = [
    "BUDGET",
    "BY_WIRE",
    "FORMATS",
    "OWN_ENGINE",
    "PROVIDERS",
    "ROUTES",
    "BoundedCache",
    "Calling",
    "Flaw",
    "Layout",
    "Masking",
    "Reading",
    "RepeatedKeys",
    "Request",
    "Response",
    "Route",
    "Scan",
    "Server",
    "StreamRelay",
    "TextGate",
    "TextSubscription",
    "ToolIndex",
    "Turn",
    "WeakCache",
    "assistant_message",
    "canonical_choice",
    "check_decoded",
    "compact",
    "contract",
    "control_tokens",
    "cut",
    "decode",
    "demo",
    "events_of",
    "excerpt_of",
    "fault_in",
    "function_calls",
    "internals",
    "json_like",
    "layout",
    "listed",
    "lower",
    "messages_of",
    "parse_arguments",
    "plan_of",
    "pointer",
    "printable",
    "prompt_of",
    "prompted_request",
    "question",
    "read_calls_in_text",
    "recorder",
    "repair",
    "result_message",
    "result_text",
    "route_of",
    "runnable",
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
