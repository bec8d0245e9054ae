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
from sigadapt.commands.arguments import WIRE_NAMES, sentence
from sigadapt.commands.request_parts import TOOLS, weights
from sigadapt.schemas.json_values import Json
from sigadapt.server_tools import McpServer
from sigadapt.testing import WIRES, Answer
from sigadapt.testing.exchange import Response, read, write
from sigadapt.testing.server import Server
from sigadapt.testing.wires import wire_at
from sigadapt.trust.echoes import Echoes

_TOLD = ("action", "field", "reason")  # of what lm15 changed, in its own words


def sent_to(
    model: str,
    settings: Mapping[str, Any],
    adapter_with: Callable[..., Any],
    program: Callable[[], Any],
    count: Callable[[str], int],
) -> tuple[Json, list[str]]:
    """Return the document of the first request that a provider would get, and the names of its tools."""
    posts: list[tuple[str, Json]] = []
    contexts: list[HookContext] = []

    async def respond(method: str, path: str, headers: Mapping[str, str], content: bytes) -> Response:
        if not posts:
            posts.append((path, json.loads(content)))
        row = wire_at(path)
        if row is None:  # no client tries again after a 418
            return Response(418, "application/json", [b'{"error": {"message": "recorded, not answered"}}'])
        return write(Answer(text="recorded"), row, read(1, row, path, {}, content))

    def note(_: object, context: HookContext) -> None:
        contexts.append(context)

    server = Server(respond)
    error: str | None = None
    lm: Any = None
    wire = "?"
    try:
        options: dict[str, Any] = {"api_key": "loopback", "cache": False, "num_retries": 0, **settings}
        route = route_of(dspy.LM(model, **options), {})
        wire = route.wire if route.client == "lm15" else f"{route.client}/{route.wire}"
        suffix = WIRES[WIRE_NAMES[route.wire]].suffix if route.wire in WIRE_NAMES else ""
        lm = dspy.LM(model, **options, api_base=server.url + suffix)
        hook = SimpleNamespace(after_choice=note, on_error=note)
        with dspy.context(lm=lm, adapter=adapter_with(hooks=[hook])):
            program()
    except Exception as raised:  # the answer is not one to the question; the request counts
        error = sentence(raised)
    finally:
        server.stop()
    path, body = posts[0] if posts else (None, None)
    first = contexts[0] if posts and contexts else None  # as the record has the first
    entries = first.decls.entries if first else ()
    tokens = [entry.token for entry in entries if isinstance(entry, McpServer) and entry.token]
    body = Echoes(tokens).hidden_in(body, (), {})
    tools = [entry.name if isinstance(entry, ToolDecl) else entry.kind for entry in entries]
    adaptations = lm.history[0].get("adaptations") if posts and lm.history else None
    rows = weights(body, count) if body else []
    document: Json = {
        "model": model,
        "wire": wire,
        "path": path,
        "error": None if posts else error or "the program sent no request",
        "prompted": bool(tools) and body is not None and body.keys().isdisjoint(TOOLS),
        "changes": [change._asdict() for change in (first.changes if first else ())],
        "adaptations": [{name: str(getattr(each, name)) for name in _TOLD} for each in adaptations or ()],
        "bytes": sum(weight["bytes"] for weight in rows),
        "tokens": sum(weight["tokens"] for weight in rows),
        "weights": rows,
        "body": body,
    }
    return document, tools
