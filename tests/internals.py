"""What tests reach behind the public names: everything internal that a test imports, and from where.

If a file of the package moves, its line here changes, and no test.
"""

from sigadapt.adapters.lm import stream_recorder
from sigadapt.adapters.lm.routes import route_of
from sigadapt.adapters.response.text_choice import text_read
from sigadapt.display import excerpt_of, printable
from sigadapt.dspy_boundary import contract, internals, patches
from sigadapt.dspy_boundary.stream_relay import StreamRelay
from sigadapt.json_values import compact, fault_in, json_like
from sigadapt.providers import BY_WIRE, PROVIDERS, ROUTES
from sigadapt.providers.route import OWN_ENGINE, Route
from sigadapt.providers.wire import control_tokens
from sigadapt.providers.wire.reading import Reading
from sigadapt.schemas.arguments import Flaw, parse_arguments
from sigadapt.schemas.caches import BoundedCache, WeakCache
from sigadapt.signatures.calls.salvage import repair, unwrap, without_leaked_tokens
from sigadapt.signatures.fewer_tools import ToolIndex
from sigadapt.signatures.sources import runnable
from sigadapt.signatures.tool_results import function_calls
from sigadapt.testing.provider import Response, Server
from sigadapt.text.calls_field import Layout
from sigadapt.text.contract import Scan
from sigadapt.text.formats import FORMATS
from sigadapt.text.gate import TextGate
from sigadapt.trust.masking import Masking

__all__ = [
    "BY_WIRE",
    "FORMATS",
    "OWN_ENGINE",
    "PROVIDERS",
    "ROUTES",
    "BoundedCache",
    "Flaw",
    "Layout",
    "Masking",
    "Reading",
    "Response",
    "Route",
    "Scan",
    "Server",
    "StreamRelay",
    "TextGate",
    "ToolIndex",
    "WeakCache",
    "compact",
    "contract",
    "control_tokens",
    "excerpt_of",
    "fault_in",
    "function_calls",
    "internals",
    "json_like",
    "parse_arguments",
    "patches",
    "printable",
    "repair",
    "route_of",
    "runnable",
    "stream_recorder",
    "text_read",
    "unwrap",
    "without_leaked_tokens",
]
