"""Make the request that a provider would get, and catch it: the real adapter, the real `dspy.LM`, no network.

`dspy.LM` is pointed at a server on this machine, which records the first request whatever its path, and
answers where it knows the wire. So the request is what the provider would get, byte for byte.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import dspy

from sigadapt.adapters.hooks import HookContext
from sigadapt.adapters.lm.routes import route_of
from sigadapt.adapters.request.canonical import Change
from sigadapt.commands.arguments import sentence
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.native_tools import NativeTool
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.testing import WIRES, Answer
from sigadapt.testing.exchange import Response, read, write
from sigadapt.testing.server import Server
from sigadapt.testing.wires import wire_at


class Sent(NamedTuple):
    """What one provider would get: a path and a body, or the error because of which nothing was sent."""

    model: str
    wire: str
    """The wire format, and `litellm/` before it if LiteLLM writes the request."""
    path: str | None = None
    body: Json | None = None
    changes: tuple[Change, ...] = ()
    adaptations: tuple[dict[str, str], ...] = ()
    """What lm15 changed, in its own words."""
    error: str | None = None
    tools: tuple[str, ...] = ()

    @property
    def is_prompted(self) -> bool:
        """Whether the tools are in the request's text, because it has none of its own."""
        return bool(self.tools) and self.body is not None and not {"tools", "toolConfig"} & self.body.keys()


_TOLD = ("action", "field", "reason")  # of lm15's adaptations


class Model(NamedTuple):
    """A language model to ask: its name, and other arguments of `dspy.LM`."""

    name: str
    settings: Mapping[str, Any]


def default_models() -> list[Model]:
    """Return one model for each wire of the loopback provider."""
    return [Model(wire.model, wire.options) for wire in WIRES.values()]


class _Noted:
    """A hook that notes what was changed; the first request's, as the record has the first."""

    def __init__(self) -> None:
        self.changes: tuple[Change, ...] | None = None
        self.tools: tuple[str, ...] = ()

    def after_choice(self, choice: Any, context: HookContext) -> None:
        self._note(context)

    def on_error(self, error: Exception, context: HookContext) -> None:
        self._note(context)

    def _note(self, context: HookContext) -> None:
        if self.changes is None:
            self.changes, self.tools = context.changes, tuple(map(_name_of, context.decls.entries))


def _name_of(entry: ToolDecl | NativeTool) -> str:
    return entry.name if isinstance(entry, ToolDecl) else entry.kind


class _Caught:
    """The server's side: the first request, and an answer where the wire is known."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.body: dict[str, Any] | None = None

    async def respond(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> Response:
        if self.path is None:
            self.path, self.body = path, json.loads(content)
        wire = wire_at(path)
        if wire is None:
            return Response(418, "application/json", [b'{"error": {"message": "recorded, not answered"}}'])
        return write(Answer(text="recorded"), wire, read(1, wire, path, {}, content))


def sent_to(
    model: Model, adapter_with: Callable[..., Any], program: dspy.Module, inputs: Mapping[str, Any]
) -> Sent:
    """Return what a provider would get for a program's first request."""
    caught, noted = _Caught(), _Noted()
    server = Server(caught.respond)
    error: str | None = None
    lm: Any = None
    wire = "?"
    try:
        lm, wire = _pointed_at(model, server.url)
        with dspy.context(lm=lm, adapter=adapter_with(hooks=[noted])):
            program(**inputs)
    except Exception as raised:  # the answer is not one to the question; the request counts
        error = sentence(raised)
    finally:
        server.stop()
    if caught.path is None:
        return Sent(model.name, wire, error=error or "the program sent no request")
    adapted = lm.history[0].get("adaptations") if lm.history else None
    told = tuple({name: str(getattr(each, name)) for name in _TOLD} for each in adapted or ())
    changes = noted.changes or ()
    return Sent(model.name, wire, caught.path, caught.body, changes, told, tools=noted.tools)


def _pointed_at(model: Model, url: str) -> tuple[dspy.LM, str]:
    settings: dict[str, Any] = {"api_key": "loopback", "cache": False, "num_retries": 0, **model.settings}
    route = route_of(dspy.LM(model.name, **settings), {})
    dialect = route.dialect
    row = next((w for w in WIRES.values() if dialect in {w.name, f"openai-{w.name}"}), None)
    if row is None and dialect == "openai-chat":
        row = WIRES["openai"]
    suffix = row.suffix if row else ""
    lm = dspy.LM(model.name, **settings, api_base=url + suffix)
    return lm, dialect if route.client == "lm15" else f"{route.client}/{dialect}"
