"""A shop with tools, and the answers of a model that uses them, for tests of agents."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import dspy

import sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

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


@contextmanager
def serving(script: Any, wire: str = "openai", model: str | None = None, **options: Any) -> Generator[Any]:
    """Serve a scripted provider to everything inside; DSPy's cache answers only with `cache=True`."""
    own = {name: options.pop(name) for name in ("cache", "num_retries") if name in options}
    with LoopbackProvider(script) as net:
        settings: dict[str, Any] = net.lm_options(wire) | {"cache": False} | own
        if model is not None:
            settings["model"] = model
        with dspy.context(lm=dspy.LM(**settings), adapter=sigadapt.ChatAdapter(**options)):
            yield net


def read_back(history: dspy.History) -> dspy.History:
    """Return a history as it is after it was saved as JSON."""
    return dspy.History.model_validate_json(history.model_dump_json())
