"""Nobody can change a declaration: what is handed out is a copy, and what came in is a snapshot."""

import copy
from collections.abc import Callable
from typing import Annotated, Any, cast

import dspy
import mcp.types
import pydantic
import pytest
from support import May, is_array, is_object, lm_of
from tables import table

import sigadapt
from sigadapt import ToolDecl, ToolDecls, Toolset, ToolTexts
from sigadapt.testing import Answer, LoopbackProvider
from sigadapt.trust import pins_of


class Item(pydantic.BaseModel):
    sku: str
    n: Annotated[int, pydantic.Field(ge=1)]


class Order(pydantic.BaseModel):
    item: Item
    others: list[Item] = []


def ship(order: Order, items: list[Item], note: str = "fast") -> list[Item]:
    """Ship an order."""
    return items


SCHEMA: dict[str, Any] = table(__file__, "SCHEMA")


class Ship(pydantic.BaseModel):
    """Ship an order."""

    order: Order


def as_dict() -> Any:
    return {
        "name": "ship",
        "parameters": copy.deepcopy(SCHEMA),
        "returns": {"type": "object"},
        "x-own": {"a": [1]},
    }


def of_mcp() -> Any:
    return mcp.types.Tool.model_validate({"name": "ship", "inputSchema": copy.deepcopy(SCHEMA)})


SOURCES: dict[str, Callable[[], Any]] = {
    "function": lambda: ship,
    "model": lambda: Ship,
    "dict": as_dict,
    "mcp": of_mcp,
    "declaration": lambda: ToolDecl.of(as_dict(), requires_confirmation=False),
    "dspy.Tool": lambda: dspy.Tool(ship),
    "to_dspy": lambda: ToolDecl.of(ship).to_dspy(),
    "custom": lambda: {
        "type": "custom",
        "custom": {"name": "ship", "format": {"type": "grammar", "grammar": {"syntax": "lark"}}},
    },
}


def empty(value: Any, seen: set[int]) -> None:
    """Empty every dict and list that can be reached, whoever holds it."""
    if id(value) in seen or isinstance(value, (str, bytes, int, float, type(None), type)):
        return
    seen.add(id(value))
    inside: list[Any] = []
    if is_object(value):
        inside = list(value.values())
        value.clear()
    elif is_array(value):
        inside = [*value]
        if type(value) is list:
            value.clear()
    for each in inside:
        empty(each, seen)


def tool_args(tools: Any) -> Any:
    every: Any = tools.values() if is_object(tools) else tools
    return [[tool.args, tool.arg_desc] for tool in every]


def agents(decls: ToolDecls, kind: str, *tools: Any) -> Any:
    if any(decl.func is None or isinstance(decl.func, type) for decl in decls):
        return None
    make: Any = getattr(dspy, kind)
    return tool_args(make("question -> answer", tools=list(tools) or [*decls]).tools)


GOT: list[Any] = []


class Hook:
    def before_request(self, request: Any, context: Any) -> None:
        GOT.append([request.get("tools"), context.decls.to_openai()])


class Watch(dspy.utils.BaseCallback):
    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        GOT.append(inputs)


def body_of(decls: ToolDecls, lm_history: list[Any], *hooks: Any) -> Any:
    """The tools that a provider gets."""
    with LoopbackProvider([Answer(text="x")]) as provider:
        lm = lm_of(provider, cache=False)
        adapter = sigadapt.ChatAdapter(hooks=hooks)
        with dspy.context(lm=lm, adapter=adapter, callbacks=[Watch()]):
            dspy.Predict(May)(question="q", tools=decls)
        lm_history.append(lm.history)
        return provider.received[0].body["tools"]


def asked(decls: ToolDecls) -> Any:
    """What hooks, callbacks and the history of a language model hold of a request."""
    GOT.clear()
    histories: list[Any] = []
    body_of(decls, histories, Hook())
    body_of(decls, histories)
    assert len(GOT) == 3
    return [*GOT, histories]


def always(name: str, args: Any, hint: str) -> bool:
    return True


HANDS: dict[str, Callable[[ToolDecls], Any]] = {
    "parts": lambda d: [[e.parameters, e.returns, e.extras, e.format] for e in d],
    "to_openai": lambda d: [d.to_openai(), [e.to_openai() for e in d], d[0].to_openai()],
    "dump": lambda d: pydantic.TypeAdapter(ToolDecls).dump_python(d),
    "to_dspy": lambda d: [] if any(e.func is None for e in d) else tool_args(d.to_dspy()),
    "dspy.Tool": lambda d: (
        []
        if any(e.func is None or isinstance(e.func, type) for e in d)
        else tool_args([dspy.Tool(cast("Any", e)) for e in d])
    ),
    "ReAct": lambda d: agents(d, "ReAct"),
    "ReActV2": lambda d: agents(d, "ReActV2"),
    "CodeAct": lambda d: agents(d, "CodeAct", ship),
    "toolset": lambda d: agents(d, "ReActV2", *Toolset("t", [*d]).resolve()),
    "pins": pins_of,
    "texts": lambda d: [ToolTexts(d)().to_openai(), ToolTexts(d).dump_state()],
    "request": asked,
    "confirmed": lambda d: d.confirmed_by(always).to_openai(),
    "declared again": lambda d: ToolDecl.of(d[0], description="other").parameters,
}
WRONG: dict[str, Any] = {"order": {"item": {"sku": "x", "n": "many"}}, "items": []}


@pytest.mark.parametrize("hand", HANDS)
@pytest.mark.parametrize("name", SOURCES)
def test_what_is_handed_out_is_a_copy(name: str, hand: str):
    """tool-declarations: What is handed out is a copy.
    tool-declarations: What is sent and what calls are checked by are one snapshot.
    """
    source = SOURCES[name]()
    decls = ToolDecls([source])
    before = copy.deepcopy((decls.to_openai(), Order.model_json_schema(), decls.flaw_of("ship", WRONG)))
    body = body_of(decls, [])
    assert before[2] is not None
    empty(HANDS[hand](decls), set[int]())
    for again in (decls, ToolDecls([source]), ToolDecls([SOURCES[name]()])):
        assert (again.to_openai(), Order.model_json_schema(), again.flaw_of("ship", WRONG)) == before
        assert body_of(again, []) == body
