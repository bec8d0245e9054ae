"""A shop with tools, and the answers of a model that uses them, for tests of agents."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import dspy
import pytest
from support import serving

import sigadapt
from sigadapt import InputNeeded, ToolDecl, ToolDecls
from sigadapt.testing import Answer, Call

DSPY_AGENT: Any = cast("Any", dspy).ReActV2
AGENTS: list[Any] = [sigadapt.ReAct, DSPY_AGENT]
settings_of_dspy: Any = dspy.settings


class Shop:
    """Tools that note what ran."""

    def __init__(self) -> None:
        self.ran: list[tuple[Any, ...]] = []

    def order(self, title: str, copies: int = 1) -> str:
        """Order a book."""
        self.ran.append(("order", title, copies))
        return f"Ordered {copies} of {title}."

    def stock(self, title: str) -> str:
        """How many there are."""
        self.ran.append(("stock", title))
        if title == "Nowhere":
            raise LookupError("no such title: Nowhere")
        return f"7 of {title}."

    @property
    def tools(self) -> list[Any]:
        """Both tools."""
        return [self.order, self.stock]


class Till:
    """Tools that note what ran; `pay` wants a yes."""

    def __init__(self, policy: Any = True) -> None:
        self.ran: list[tuple[Any, ...]] = []
        self.tools = ToolDecls([ToolDecl.of(self.pay, requires_confirmation=policy), self.find])

    def pay(self, to: str, eur: int, note: str = "invoice") -> str:
        """Pay somebody."""
        self.ran.append(("pay", to, eur, note))
        return f"Paid {eur} EUR to {to}."

    def find(self, city: str) -> str:
        """Find a city."""
        self.ran.append(("find", city))
        return f"{city} lies in Europe."

    def agent(self, **options: Any) -> Any:
        """DSPy's agent with these tools."""
        return DSPY_AGENT("question -> answer", tools=self.tools, **options)

    def waits(self, *calls: Call, question: str = "Pay.") -> InputNeeded:
        """The error of an agent that waits with these calls, saved and loaded."""
        with serving([turn(*calls)], confirm="raise"):
            return saved(waiting(lambda: self.agent()(question=question)))


FIND, PAY = Call("find", {"city": "Rome"}), Call("pay", {"to": "Ada", "eur": 500}, id="call_0")


def waiting(start: Callable[[], Any]) -> InputNeeded:
    """The error that a run ends in."""
    with pytest.raises(InputNeeded) as caught:
        start()
    return caught.value


def saved(error: InputNeeded) -> InputNeeded:
    """An error as it is after it was saved as JSON."""
    return InputNeeded.model_validate_json(error.model_dump_json())


def orders(title: str = "Emma", copies: int = 2) -> Call:
    """A call of `order`."""
    return Call("order", {"title": title, "copies": copies})


def looks(title: str = "Emma") -> Call:
    """A call of `stock`."""
    return Call("stock", {"title": title})


def turn(*calls: Call, **more: Any) -> Answer:
    """An answer with these calls."""
    return Answer(calls=[*calls], **more)


def submits(text: str = "Done.", **more: Any) -> Answer:
    """The answer that ends an agent."""
    return turn(Call("submit", {"answer": text}), **more)


def read_back(history: dspy.History) -> dspy.History:
    """Return a history as it is after it was saved as JSON."""
    return dspy.History.model_validate_json(history.model_dump_json())


async def gathered(program: Any, **inputs: Any) -> list[Any]:
    """The events of a run. An error that the iterator raises is the one of `Failed`."""
    events: list[Any] = []
    try:
        async for event in sigadapt.stream(program, **inputs):
            events.append(event)  # noqa: PERF401  (those before an error, too)
    except Exception as raised:  # noqa: BLE001
        assert events[-1].error is raised  # noqa: PT017
    assert [each.step for each in events] == sorted(each.step for each in events)
    return events


def watch(program: Any, **inputs: Any) -> list[Any]:
    """The events of a run, which must not take long."""
    return asyncio.run(asyncio.wait_for(gathered(program, **(inputs or {"question": "?"})), 20))


def of(kind: Any, events: list[Any]) -> list[Any]:
    """The events of one kind."""
    return [each for each in events if isinstance(each, kind)]


def text_of(events: list[Any], field: str | None = "answer") -> str:
    """The streamed text of a field."""
    return "".join(each.text for each in of(sigadapt.events.TextDelta, events) if each.field == field)
