"""A run under way: another page reads on, anybody of the chat stops it, and nobody else."""

import asyncio
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
import pytest
from chat_pages import Page, agent_of, message, page_of, rows_of, submit

import sigadapt
from sigadapt import ui
from sigadapt.testing import Answer, Call, Received

FORMS = ("ai_sdk", "ag_ui")
each_form = pytest.mark.parametrize("form", FORMS)
PATIENCE = 2_000


class Gate:
    """Tools that begin, and go on when they are let go."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.go = threading.Event()

    def slow(self, n: int) -> str:
        """Take a while."""
        self.begun.append(n)
        self.go.wait(20)
        return f"slow {n}"

    async def slow_async(self, n: int) -> str:
        """Take a while, too."""
        self.begun.append(n)
        await asyncio.to_thread(self.go.wait, 20)
        return f"slow {n}"

    async def until_begun(self) -> None:
        """Wait until a tool has begun."""
        for _ in range(PATIENCE):
            await asyncio.sleep(0.01)
            if self.begun:
                return
        raise TimeoutError


async def join(page: Page, form: Any, owner: str = "ada") -> list[Any] | None:
    """What a page reads that joins the run; None where nothing runs."""
    texts = await page.chats.resume("c1", owner, form=form)
    return None if texts is None else rows_of([text async for text in texts])


@contextmanager
def desk_of(tool: str, path: Path) -> Generator[tuple[Page, Gate]]:
    """Open the page of an agent with a slow tool, which the model calls three times."""

    def script(received: Received) -> Answer:
        rows = received.body["messages"]
        last = max(n for n, row in enumerate(rows) if row["role"] == "user")
        done = len([row for row in rows[last:] if row["role"] == "tool"])
        if done == 3 or "Go" not in str(rows[last]["content"]):
            return submit("All done.")
        return Answer(text="Wait.", calls=[Call(tool, {"n": done})])

    gate = Gate()
    with page_of(agent_of(getattr(gate, tool)), script, path) as page:
        yield page, gate


def finish(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


@each_form
@pytest.mark.parametrize("tool", ["slow", "slow_async"])
@pytest.mark.parametrize("is_here", [True, False])
def test_a_run_is_stopped_after_the_tool_that_has_begun(
    is_here: bool, tool: str, form: str, tmp_path: Path
) -> None:
    """chats: A person stops a run"""
    with desk_of(tool, tmp_path) as (desk, gate):
        other = desk.chats if is_here else desk.new_chats()

        async def stop() -> tuple[list[bool], list[Any]]:
            reading = asyncio.create_task(desk.read(form, message(form, "Go")))
            await gate.until_begun()
            found = [await other.stop("c1", "bob"), await other.stop("c1", "ada")]
            await asyncio.sleep(0.3)  # for a process that looks at the number
            gate.go.set()
            return found, await reading

        found, rows = finish(stop())
        assert found == [False, True]
        assert "topped" in str(rows)
        assert (gate.begun, len(desk.provider.received)) == ([0], 1)
        assert "slow 0" in str(desk.chats.messages("c1", "ada"))
        assert not finish(desk.chats.stop("c1", "ada"))
        assert not finish(desk.chats.stop("none", "ada"))
        assert shown(form, desk.say(form, "And now?"))[0] == "All done."
        assert "slow 0" in str(desk.provider.received[-1].body)


def shown(form: str, rows: list[Any]) -> tuple[str, list[Any]]:
    """The texts and the results in what a page reads."""
    texts = [row["delta"] for row in rows if row["type"] in {"text-delta", "TEXT_MESSAGE_CONTENT"}]
    ends = [row for row in rows if row["type"] in {"tool-output-available", "TOOL_CALL_RESULT"}]
    return "".join(texts), [row.get("output", row.get("content")) for row in ends]


@each_form
@pytest.mark.parametrize("tool", ["slow", "slow_async"])
def test_a_page_that_joins_reads_on_to_the_end(tool: str, form: str, tmp_path: Path) -> None:
    """chats: A page joins a run"""
    with desk_of(tool, tmp_path) as (desk, gate):

        async def joined() -> tuple[Any, ...]:
            reading = asyncio.create_task(desk.read(form, message(form, "Go")))
            await gate.until_begun()
            strangers = await join(desk, form, "bob")
            joining = [asyncio.create_task(join(desk, form)) for _ in range(2)]
            await asyncio.sleep(0.2)
            gate.go.set()
            pages = [await each for each in joining]
            await reading
            return strangers, pages, await join(desk, form)

        strangers, (one, two), later = finish(joined())
        assert strangers is None
        assert later is None
        texts, results = shown(form, one)
        assert texts.endswith("All done.")
        assert shown(form, two) == (texts, results)
        assert results == ["slow 0", "slow 1", "slow 2"]


class Inner(dspy.Module):
    """A predictor that the person never hears of, an agent, and another predictor."""

    def __init__(self) -> None:
        super().__init__()
        self.topic = dspy.Predict("question -> topic")
        self.agent = sigadapt.ReAct("question, topic -> answer", tools=[])
        self.check = dspy.Predict("answer -> verdict")

    def forward(self, question: str | None = None, history: Any = None) -> Any:
        topic: Any = self.topic(question=question)
        prediction: Any = self.agent(question=question, topic=topic.topic, history=history)
        self.check(answer=prediction.answer)
        return prediction


@each_form
@pytest.mark.parametrize("show", [None, ["topic"], ["topic", "verdict"]])
def test_inner_predictors_show_by_name_alone(show: list[str] | None, form: str, tmp_path: Path) -> None:
    """chats: Inner predictors do not show"""

    def script(received: Received) -> Answer:
        text = str(received.body)
        if "submit" in text:
            return submit("Fine.")
        name = "verdict" if "`verdict`" in text else "topic"
        return Answer(text=f"[[ ## {name} ## ]]\nThe {name}.\n\n[[ ## completed ## ]]")

    with page_of(Inner, script, tmp_path, show=show) as desk:
        live, _ = shown(form, desk.say(form, "Hi"))
        stored = str(desk.chats.messages("c1", "ada", form=form))  # pyright: ignore[reportArgumentType]
        for page in (live, stored):
            assert [name for name in ("topic", "verdict") if f"The {name}." in page] == (show or [])
        assert stored.count("Fine.") == 1


@pytest.mark.parametrize("show", ["topic", 7, [7]])
def test_what_show_takes(show: Any, tmp_path: Path) -> None:
    """chats: What cannot serve is refused"""
    with pytest.raises(sigadapt.errors.InvalidOption) as caught:
        ui.Chats(dspy.Predict("question -> answer"), tmp_path / "c.db", show=show)
    assert caught.value.field == "show"
