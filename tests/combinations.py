"""What users combine, as cells: a kind of tool, where it runs, how the program is called, what is added.

A cell is one run against the loopback provider, with one right outcome: what ran and how often, what the
model read, who was asked, and the answer. In the cells of `cells()`, every pair of two values that makes
sense occurs. What makes no sense is in `RULES`, with its reason. A new feature adds a value to a dimension,
and a branch to what reads it: no file.
"""

import asyncio
import base64
import functools
import itertools
import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from threading import Thread
from typing import Annotated, Any, NamedTuple, cast

import dspy
import pydantic
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from mcp import Client
from mcp.server.mcpserver import MCPServer

import sigadapt
from sigadapt import ToolCalls, ToolDecl, ToolDecls, ToolResults, Toolset
from sigadapt.testing import Answer, Call, Received

AGENTS = ("ReActV2", "ReAct", "an agent in an agent")
HOMES = ("run", "execute", "sigadapt.ReAct", *AGENTS)
WAYS = ("call", "acall", "stream", "stream_sync", "asyncify", "threads", "a notebook")
EXTRAS = ("nothing", "ask", "async ask", "wait", "deferred", "prefixed", "hooks", "image", "file")
WIRES = ("openai", "responses", "anthropic", "gemini", "ollama")
ENGINES = ("auto", "litellm")

AWAITED = ("acall", "stream")
"""The ways in which the program runs on the event loop of its caller."""

IN_A_LOOP = (*AWAITED, "asyncify", "a notebook")
"""The ways in which an event loop runs while the program runs."""

PNG = base64.b64encode(b"\x89PNG nothing to see").decode()
PDF = base64.b64encode(b"%PDF-1.4 nothing to read").decode()


class Cell(NamedTuple):
    """One combination."""

    kind: str
    home: str
    way: str
    extra: str
    wire: str
    engine: str

    def __str__(self) -> str:
        return "-".join(self)


class Ran(list[tuple[str, int]]):
    """What the tool was called with, in order."""

    def book(self, city: str, nights: int) -> str:
        """Book a room."""
        self.append((city, nights))
        return booked(city, nights)

    async def abook(self, city: str, nights: int) -> str:
        """Book a room."""
        await asyncio.sleep(0)
        return self.book(city, nights)


def booked(city: str, nights: int) -> str:
    """What the tool returns, which the model must read once."""
    return f"Room {nights}07 in {city} is booked."


class Stay(pydantic.BaseModel):
    """Where, and for how long."""

    city: str
    nights: int = pydantic.Field(ge=1)


class Desk:
    """Book a room."""

    def __init__(self, ran: Ran) -> None:
        self.ran = ran

    def __call__(self, city: str, nights: int) -> str:
        return self.ran.book(city, nights)


class AsyncDesk:
    """Book a room."""

    def __init__(self, ran: Ran) -> None:
        self.ran = ran

    async def __call__(self, city: str, nights: int) -> str:
        return await self.ran.abook(city, nights)


class Program(dspy.Module):
    """Book a room."""

    def __init__(self, ran: Ran) -> None:
        super().__init__()
        self.holder = (ran,)

    def forward(self, city: str, nights: int) -> Any:
        return dspy.Prediction(report=self.holder[0].book(city, nights))


class AsyncProgram(dspy.Module):
    """Book a room."""

    def __init__(self, ran: Ran) -> None:
        super().__init__()
        self.holder = (ran,)

    async def aforward(self, city: str, nights: int) -> Any:
        return dspy.Prediction(report=await self.holder[0].abook(city, nights))


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """The decorator that everybody has written: sync, around anything."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def as_function(ran: Ran) -> Callable[..., Any]:
    def book(city: str, nights: int) -> str:
        """Book a room."""
        return ran.book(city, nights)

    return book


def as_async_function(ran: Ran) -> Callable[..., Any]:
    async def book(city: str, nights: int) -> str:
        """Book a room."""
        return await ran.abook(city, nights)

    return book


def unseen(ran: Ran) -> Callable[..., Any]:
    """A function that nothing shows to be async before it is called."""

    def book(city: str, nights: int) -> Any:
        """Book a room."""
        return ran.abook(city, nights)

    return book


def with_model(ran: Ran) -> Callable[..., Any]:
    def book(stay: Stay) -> str:
        """Book a room."""
        return ran.book(stay.city, stay.nights)

    return book


def partial_of(function: Callable[..., Any]) -> Callable[..., Any]:
    def book(hotel: str, city: str, nights: int) -> Any:
        """Book a room."""
        return function(city, nights)

    return functools.partial(book, "Ritz")


class BookRoom(BaseTool):
    """A tool of a class of its own, as LangChain's documentation writes one."""

    name: str = "book"
    description: str = "Book a room."
    holder: tuple[Any, ...] = ()

    def _run(self, city: str, nights: int) -> str:
        return self.holder[0].book(city, nights)


class BookLater(BaseTool):
    """A tool of a class of its own that has a coroutine alone."""

    name: str = "book"
    description: str = "Book a room."
    holder: tuple[Any, ...] = ()

    def _run(self, city: str, nights: int) -> str:
        raise NotImplementedError("async only")

    async def _arun(self, city: str, nights: int) -> str:
        return await self.holder[0].abook(city, nights)


def with_call_id(ran: Ran) -> Any:
    def book(city: str, nights: int, call_id: Annotated[str, InjectedToolCallId]) -> str:
        return ran.book(city, nights) if call_id.isprintable() else "no id"

    return langchain(book)


class Box(NamedTuple):
    """What the first of two hooks makes of a result."""

    value: Any


class Boxes:
    """A hook that changes both ways; `Unboxes` behind it changes back what it is given."""

    def before_tool(self, call: Any, context: Any) -> Any:
        return call.model_copy(update={"args": with_city(call.args, str.upper)})

    def after_tool(self, call: Any, result: Any, context: Any) -> Box:
        return Box(result)


class Unboxes:
    def before_tool(self, call: Any, context: Any) -> Any:
        assert context.decision is None
        call.args.update(with_city(call.args, str.title))

    def after_tool(self, call: Any, result: Box, context: Any) -> Any:
        return result.value


def with_city(args: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """The arguments of a call, nested or not, with another city."""
    if "stay" in args:
        return {"stay": with_city(args["stay"], change)}
    return {**args, "city": change(args["city"])}


def langchain(function: Callable[..., Any] | None, coroutine: Any = None) -> Any:
    return StructuredTool.from_function(function, coroutine, name="book", description="Book a room.")


def server(ran: Ran) -> Any:
    made = MCPServer("hotel")
    made.tool()(as_async_function(ran))
    return made


def of_request(ran: Ran) -> Toolset:
    def tools(context: Any) -> Iterator[object]:
        yield as_function(ran)
        if "breakfast" in str(context.inputs.get("question")):
            yield {"name": "breakfast"}

    return Toolset("of the request", tools)


class Kind(NamedTuple):
    """A kind of tool. `make` gives what a user hands to a program: a list, or a toolset."""

    make: Callable[[Ran], Any]
    is_nested: bool = False  # the arguments are those of a model
    needs_await: bool = False  # its tools are listed by `await`
    has_session: bool = False  # it lives in the program's loop


def kind_of(make: Callable[[Ran], Any], **marks: bool) -> Kind:
    return Kind(make, **marks)


KINDS: dict[str, Kind] = {
    "function": kind_of(lambda ran: [as_function(ran)]),
    "async function": kind_of(lambda ran: [as_async_function(ran)]),
    "wrapped async function": kind_of(lambda ran: [logged(as_async_function(ran))]),
    "function that returns an awaitable": kind_of(lambda ran: [unseen(ran)]),
    "object": kind_of(lambda ran: [ToolDecl.of(Desk(ran), name="book")]),
    "async object": kind_of(lambda ran: [ToolDecl.of(AsyncDesk(ran), name="book")]),
    "bound method": kind_of(lambda ran: [ran.book]),
    "partial": kind_of(lambda ran: [partial_of(ran.book)]),
    "partial of an async function": kind_of(lambda ran: [partial_of(ran.abook)]),
    "model as argument": kind_of(lambda ran: [with_model(ran)], is_nested=True),
    "dspy.Tool": kind_of(lambda ran: [dspy.Tool(as_function(ran))]),
    "async dspy.Tool": kind_of(lambda ran: [dspy.Tool(as_async_function(ran))]),
    "MCP session": kind_of(
        lambda ran: Toolset("hotel", cast("Any", ran)), needs_await=True, has_session=True
    ),
    "MCP server": kind_of(lambda ran: Toolset("hotel", server(ran)), needs_await=True),
    "LangChain tool": kind_of(lambda ran: [langchain(as_function(ran))]),
    "async LangChain tool": kind_of(lambda ran: [langchain(None, as_async_function(ran))]),
    "LangChain tool in both forms": kind_of(
        lambda ran: [langchain(as_function(ran), as_async_function(ran))]
    ),
    "LangChain class": kind_of(lambda ran: [BookRoom(holder=(ran,))]),
    "LangChain class with a coroutine alone": kind_of(lambda ran: [BookLater(holder=(ran,))]),
    "LangChain tool with the id of its call": kind_of(lambda ran: [with_call_id(ran)]),
    "program": kind_of(lambda ran: [ToolDecl.of(Program(ran), name="book")]),
    "async program": kind_of(lambda ran: [ToolDecl.of(AsyncProgram(ran), name="book")]),
    "toolset of the request": Kind(of_request),
}

RULES: dict[str, Callable[[Cell, Kind], bool]] = {
    "a session lives in a loop of the program's": (
        lambda cell, kind: kind.has_session and cell.way not in IN_A_LOOP
    ),
    "a sync call blocks the loop on which MCP's tools were listed, and is refused (a test of its own)": (
        lambda cell, kind: kind.needs_await and cell.way == "a notebook"
    ),
    "`execute` returns what to await, and another loop than the session's would await it": (
        lambda cell, kind: kind.has_session and cell.way == "asyncify" and cell.home == "execute"
    ),
    "ReAct writes all tools into its prompt": lambda cell, _: (
        cell.home == "ReAct" and cell.extra == "deferred"
    ),
    "ReAct cannot wait for a person": lambda cell, _: cell.home == "ReAct" and cell.extra == "wait",
    "`execute` runs one call, without decisions": (
        lambda cell, _: cell.home == "execute" and cell.extra == "wait"
    ),
    "an agent inside of a tool cannot stop the one around it": (
        lambda cell, _: cell.home == "an agent in an agent" and cell.extra == "wait"
    ),
    "the question of the inner agent is a text": (
        lambda cell, _: cell.home == AGENTS[2] and cell.extra in ("image", "file")
    ),
    "Ollama's wire has no place for a file": lambda cell, _: cell.wire == "ollama" and cell.extra == "file",
}


def makes_sense(cell: Cell) -> bool:
    return not any(rule(cell, KINDS[cell.kind]) for rule in RULES.values())


def cells(*, every_kind_everywhere: bool = False, seed: int = 1) -> list[Cell]:
    """Cells with every pair of values that makes sense; on request also every kind in every home and way."""
    dimensions: tuple[tuple[str, ...], ...] = (tuple(KINDS), HOMES, WAYS, EXTRAS, WIRES, ENGINES)
    draw = random.Random(seed)  # noqa: S311  (the same cells each time)
    groups: list[tuple[int, ...]] = [*itertools.combinations(range(len(dimensions)), 2)]
    if every_kind_everywhere:
        groups.append((0, 1, 2))

    def parts(cell: Cell) -> set[tuple[Any, ...]]:
        return {(group, *(cell[place] for place in group)) for group in groups}

    missing: dict[tuple[Any, ...], None] = {}
    for group in groups:
        for values in itertools.product(*(dimensions[place] for place in group)):
            missing[(group, *values)] = None
    chosen: list[Cell] = []
    while missing:
        group, *values = next(iter(missing))
        fixed = dict(zip(group, values, strict=True))
        drawn = [
            Cell(*(fixed.get(place) or draw.choice(dimension) for place, dimension in enumerate(dimensions)))
            for _ in range(60)
        ]
        sensible = [cell for cell in drawn if makes_sense(cell)]
        if not sensible:
            del missing[(group, *values)]
            continue
        best = max(sensible, key=lambda cell: len(parts(cell) & missing.keys()))
        chosen.append(best)
        for part in parts(best):
            missing.pop(part, None)
    return chosen


# What the model does: it plays by what a request holds, so that many runs can share one provider.

STAYS = (("Rome", 2), ("Oslo", 3))


def arguments(kind: Kind, number: int) -> dict[str, Any]:
    city, nights = STAYS[number]
    stay = {"city": city, "nights": nights}
    return {"stay": stay} if kind.is_nested else stay


def answer_of(run: str) -> str:
    return f"All is booked for run {run}."


class Model:
    """The provider's script for one tool, under the name by which the model calls it."""

    def __init__(self, cell: Cell, name: str) -> None:
        self.cell, self.name = cell, name
        self.bodies: dict[str, list[Any]] = {}
        self.searched: set[str] = set()

    def __call__(self, received: Received) -> Answer:
        text = json.dumps(received.body)
        run = re.findall(r"run (\d)", text)[0]
        self.bodies.setdefault(run, []).append(received.body)
        is_booked = booked(*STAYS[int(run)]) in text
        if self.cell.home == "ReAct":
            return self._text(text, run, is_booked=is_booked)
        names = declared(received.body)
        if is_booked:
            return self._end(names, run)
        if "ask_desk" in names:
            return Answer(calls=[Call("ask_desk", {"question": f"run {run}, please"})])
        return Answer(calls=[self._call(names, run)])

    def _call(self, names: set[str], run: str) -> Call:
        args = arguments(KINDS[self.cell.kind], int(run))
        if self.name in names or "call_tool" not in names:
            return Call(self.name, args)
        if run in self.searched:
            return Call("call_tool", {"name": self.name, "arguments": args})
        self.searched.add(run)
        return Call("search_tools", {"query": "book a room"})

    def _end(self, names: set[str], run: str) -> Answer:
        if "submit" in names:
            return Answer(calls=[Call("submit", {"answer": f"{answer_of(run)} {booked(*STAYS[int(run)])}"})])
        return fields(answer=answer_of(run))

    def _text(self, text: str, run: str, *, is_booked: bool) -> Answer:
        if "next_tool_name" not in text:
            return fields(reasoning="It is booked.", answer=answer_of(run))
        if is_booked:
            return fields(next_thought="Done.", next_tool_name="finish", next_tool_args="{}")
        args = json.dumps(arguments(KINDS[self.cell.kind], int(run)))
        return fields(next_thought="I book.", next_tool_name=self.name, next_tool_args=args)


def fields(**values: str) -> Answer:
    text = "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in values.items())
    return Answer(text=f"{text}[[ ## completed ## ]]")


def declared(body: Any) -> set[str]:
    """The names of the functions that a request declares, in any provider's form."""
    names: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            member = cast("dict[str, Any]", value)
            if isinstance(member.get("name"), str):
                names.add(member["name"])
            for each in member.values():
                look(each)
        elif isinstance(value, list):
            for each in cast("list[Any]", value):
                look(each)

    look(body.get("tools"))
    return names


# The programs.


class Turn(dspy.Signature):
    """Book what is asked for."""

    question: str | None = dspy.InputField(default=None)
    medium: Any = dspy.InputField(default=None)
    tools: ToolDecls = dspy.InputField()
    history: dspy.History | None = dspy.InputField(default=None)
    results: ToolResults | None = dspy.InputField(default=None)
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


class Loop(dspy.Module):
    """The loop that a guide writes: ask, run the calls, and ask again with their results."""

    def __init__(self, signature: Any, tools: Any, home: str) -> None:
        super().__init__()
        self.ask, self.home, self.holder = dspy.Predict(signature), home, (tools,)

    def forward(self, **inputs: Any) -> Any:
        tools = self.holder[0]
        out: Any = self.ask(tools=tools, **inputs)
        if not out.calls:
            return out
        if self.home == "run":
            results = out.calls.run(tools)
        else:
            results = ToolResults.of(out.calls, [finished(call.execute(tools)) for call in out.calls])
        return self.ask(tools=tools, results=results, **inputs)

    async def aforward(self, **inputs: Any) -> Any:
        tools = self.holder[0]
        out: Any = await self.ask.acall(tools=tools, **inputs)
        if not out.calls:
            return out
        if self.home == "run":
            results = await out.calls.arun(tools)
        else:
            values: list[Any] = [call.execute(tools) for call in out.calls]
            results = ToolResults.of(
                out.calls, [await value if asyncio.iscoroutine(value) else value for value in values]
            )
        return await self.ask.acall(tools=tools, results=results, **inputs)


def finished(value: Any) -> Any:
    """What sync code makes of what `execute` returned: it waits in a loop of its own."""
    if not asyncio.iscoroutine(value):
        return value
    result: list[Any] = []

    def wait() -> None:
        result.append(asyncio.run(value))

    thread = Thread(target=wait)
    thread.start()
    thread.join()
    return result[0]


class Office(dspy.Module):
    """A program that holds an agent, and is the tool of another one."""

    def __init__(self, agent: Any) -> None:
        super().__init__()
        self.agent = agent

    def forward(self, question: str) -> Any:
        return self.agent(question=question)

    async def aforward(self, question: str) -> Any:
        return await self.agent.acall(question=question)


def program_of(cell: Cell, tools: Any) -> Any:
    """The program of a cell, with its tools."""
    if cell.home in ("run", "execute"):
        return Loop(Turn, tools, cell.home)
    signature: Any = cast("Any", dspy.Signature)("question -> answer", "Book what is asked for.")
    if cell.extra in ("image", "file"):
        signature = signature.append("medium", dspy.InputField(), type_=type(medium(cell)))
    agents = {"ReAct": dspy.ReAct, "sigadapt.ReAct": sigadapt.ReAct}
    agent: Any = agents.get(cell.home, cast("Any", dspy).ReActV2)
    inner = agent(signature, tools=tools)
    if cell.home != AGENTS[2]:
        return inner
    desk = ToolDecl.of(Office(inner), name="ask_desk", description="Ask the desk.")
    return agent("question -> answer", tools=ToolDecls([desk]))


def medium(cell: Cell) -> Any:
    if cell.extra == "image":
        return dspy.Image(url=f"data:image/png;base64,{PNG}")
    return dspy.File(file_data=f"data:application/pdf;base64,{PDF}", filename="nothing.pdf")


def inputs_of(cell: Cell, run: int) -> dict[str, Any]:
    question = {"question": f"Book for run {run}."}
    return {**question, "medium": medium(cell)} if cell.extra in ("image", "file") else question


def session_of(ran: Ran) -> AbstractAsyncContextManager[Any]:
    return cast("Any", Client)(server(ran))
