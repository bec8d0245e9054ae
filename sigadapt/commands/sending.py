"""Make the request that a provider would get, and catch it: the real adapter, the real `dspy.LM`, no network.

`dspy.LM` is pointed at a server on this machine, which records the first request whatever its path, and
answers where it knows the wire. So the request is what the provider would get, byte for byte.
"""

import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import dspy

from sigadapt import ToolDecl
from sigadapt.adapters.hooks import HookContext
from sigadapt.adapters.lm.routes import route_of
from sigadapt.adapters.passes.prompts import PROMPTED
from sigadapt.commands.arguments import WIRE_NAMES, sentence
from sigadapt.commands.weights import weights
from sigadapt.schemas.json_values import Json
from sigadapt.server_tools import McpServer
from sigadapt.testing import WIRES, Answer
from sigadapt.testing.exchange import Response, read, write
from sigadapt.testing.server import Server
from sigadapt.testing.wires import wire_at
from sigadapt.trust.echoes import Echoes

_ADAPTATION_FIELDS = ("action", "field", "reason")


def sent_to(
    model: str,
    settings: Mapping[str, Any],
    adapter_with: Callable[..., Any],
    program: Callable[[], Any],
    count: Callable[[str], int],
) -> tuple[Json, list[str]]:
    """Return the document of the first request that a provider would get, and the names of its tools."""
    catch = _Catch()
    server = Server(catch.respond)
    error: str | None = None
    lm: Any = None
    wire = "?"
    try:
        options: dict[str, Any] = {"api_key": "loopback", "cache": False, "num_retries": 0, **settings}
        route = route_of(dspy.LM(model, **options), {})
        wire = route.wire if route.client == "lm15" else f"{route.client}/{route.wire}"
        suffix = WIRES[WIRE_NAMES[route.wire]].suffix if route.wire in WIRE_NAMES else ""
        lm = dspy.LM(model, **options, api_base=server.url + suffix)
        hook = SimpleNamespace(after_choice=catch.note, on_error=catch.note)
        with dspy.context(lm=lm, adapter=adapter_with(hooks=[hook])):
            program()
    except Exception as raised:  # the answer is not one to the question; the request counts
        error = sentence(raised)
    finally:
        server.stop()
    if catch.body is not None:
        error = None
    elif error is None:
        error = "the program sent no request"
    context = catch.context if catch.body is not None else None
    entries = context.decls.entries if context else ()
    tokens: list[str] = []
    tools: list[str] = []
    for entry in entries:
        tools.append(entry.name if isinstance(entry, ToolDecl) else entry.kind)
        if isinstance(entry, McpServer) and entry.token:
            tokens.append(entry.token)
    body: Any = Echoes(tokens).hidden_in(catch.body, (), {})
    changes = context.changes if context else ()
    adaptations: list[Any] = []
    if catch.body is not None and lm.history:
        adaptations = lm.history[0].get("adaptations") or []
    rows = weights(body, count) if body else []
    document: Json = {
        "model": model,
        "wire": wire,
        "path": catch.path,
        "error": error,
        "prompted": any(change.why == PROMPTED for change in changes),
        "changes": [change._asdict() for change in changes],
        "adaptations": [
            {name: str(getattr(change, name)) for name in _ADAPTATION_FIELDS} for change in adaptations
        ],
        "bytes": sum(weight["bytes"] for weight in rows),
        "tokens": sum(weight["tokens"] for weight in rows),
        "weights": rows,
        "body": body,
    }
    return document, tools


class _Catch:
    """The first request that reaches the server, and the record of the call that sent it."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.body: Json | None = None
        self.context: HookContext | None = None

    async def respond(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> Response:
        """Keep the first request, and answer any."""
        if self.body is None:
            self.path = path
            self.body = json.loads(content)
        row = wire_at(path)
        if row is None:  # no client tries again after a 418
            return Response(418, "application/json", [b'{"error": {"message": "recorded, not answered"}}'])
        return write(Answer(text="recorded"), row, read(1, row, path, {}, content))

    def note(self, _: object, context: HookContext) -> None:
        """Keep the record of the first call."""
        if self.context is None:
            self.context = context
