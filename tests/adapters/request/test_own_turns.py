"""A turn goes back whole: exact JSON on the wire both ways, through the real dspy.LM, per provider."""

import pickle
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from budgets import share
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from own_blocks import BLOCKS, CHAT, IS_CALL, Json, events
from sending import Server, rows
from support import get_weather, turn_of
from wire_bodies import body, said_text

from sigadapt import ToolCalls, ToolResults, choice_from_response
from sigadapt.errors import InvalidHistory
from sigadapt.response import choice_from_stream
from sigadapt.testing import LoopbackProvider

FORMS = {"openai": "chat", "responses": "responses", "anthropic": "anthropic", "gemini": "gemini"}


class Wire(Server):
    """A provider whose turns go back to it."""

    @property
    def form(self) -> str:
        return FORMS[self.wire]

    def heard(self, turn: Any, more: Json | None = None, **inputs: Any) -> Any:
        """The prediction of a turn, given as the part of a body that `body` takes."""
        return self.ask({**body(self.form, turn), **(more or {})}, tools=[get_weather, CODE], **inputs)

    def calls(self, turn: Any) -> ToolCalls:
        return self.heard(turn).calls

    def sent_back(self, calls: ToolCalls) -> Any:
        """What goes out of a turn with its results: the rows after the question."""
        self.heard(said_text(self.form), results=ToolResults.of(calls, ["sunny"] * len(calls)))
        sent = rows(self.sent[-1])
        first = next(number for number, row in enumerate(sent) if row.get("role") == "user")
        return sent[first + 1 :]

    def turn(self, calls: ToolCalls) -> list[Json]:
        """The model's own turn in the next request, without its results."""
        sent = self.sent_back(calls)
        if self.form == "responses":
            answers = ("call_output", "approval_response")
            return [row for row in sent if not str(row.get("type")).endswith(answers)]
        if self.form == "chat":
            return [row for row in sent if row["role"] == "assistant"]
        return sent[0]["parts" if self.form == "gemini" else "content"]


CODE = {"name": "code", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}


@contextmanager
def wired(name: str) -> Generator[Wire]:
    answers: list[bytes] = []
    with LoopbackProvider(lambda _: answers.pop(0) if len(answers) > 1 else answers[0]) as provider:
        yield Wire(provider, answers, name, "auto", {})


@pytest.fixture(scope="module", params=["anthropic", "responses", "gemini"])
def wire(request: pytest.FixtureRequest) -> Generator[tuple[str, Wire]]:
    with wired(request.param) as served:
        yield request.param, served


@pytest.fixture
def chat() -> Generator[Wire]:
    with wired("openai") as served:
        yield served


def with_call(name: str, block: Json) -> list[Json]:
    call = BLOCKS[name]["call"]
    return [block] if IS_CALL[name](block) else [block, call]


PLAIN = ("message", "thought")
"""What lm15 writes in a form of its own, or not at all, if nothing else in the turn needs its blocks."""


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, blocks in BLOCKS.items() for kind in blocks if kind != "call"]
)
def test_a_block_goes_back_as_it_came(name: str, kind: str) -> None:
    """conversations: Blocks of a provider's own tools go back."""
    blocks = with_call(name, BLOCKS[name][kind])
    with wired(name) as served:
        calls = served.calls(blocks)
        saved = ToolCalls.model_validate_json(calls.model_dump_json())
        assert saved == calls == pickle.loads(pickle.dumps(calls))  # noqa: S301  (our own bytes)
        for each in (calls, saved):
            turn = served.turn(each)
            assert turn == blocks or kind in PLAIN
        # Nobody declared the server that asks for an approval, so that this call is a bad one.
        assert served.changes == [] or kind == "mcp_approval_request"


@st.composite
def turns(draw: st.DrawFn, name: str) -> list[Json]:
    """Any mixture of a provider's blocks, with at least one call, and each id once."""
    kinds = draw(st.lists(st.sampled_from(sorted(BLOCKS[name])), unique=True, max_size=8))
    if not any(IS_CALL[name](BLOCKS[name][kind]) for kind in kinds):
        kinds.insert(draw(st.integers(0, len(kinds))), "call")
    return [BLOCKS[name][kind] for kind in kinds]


HTTP = settings(
    max_examples=share(25), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


def is_whole(name: str, blocks: list[Json]) -> bool:
    """Whether nothing of the turn is thinking that no provider wants back."""
    return name != "gemini" or not any(block.get("thought") for block in blocks)


@HTTP
@given(data=st.data())
def test_any_mixture_goes_back_as_it_came(wire: tuple[str, Wire], data: st.DataObject) -> None:
    """conversations: Any mixture of blocks goes back in its order."""
    name, served = wire
    blocks = data.draw(turns(name))
    calls = served.calls(blocks)
    saved = ToolCalls.model_validate_json(calls.model_dump_json())
    assert saved == calls
    if calls.turn.state is not None and is_whole(name, blocks):
        assert served.turn(saved) == blocks
    # Blocks that others separate are joined by a blank line.
    assert "".join((calls.text or "").split()) == "".join("".join(texts_of(name, blocks)).split())


def texts_of(name: str, blocks: list[Json]) -> Iterator[str]:
    """The texts of a turn; what is marked as commentary stands before the answer."""
    for block in sorted(blocks, key=lambda each: each.get("phase") != "commentary"):
        if name == "responses" and block["type"] == "message":
            yield from (part.get("text") or part["refusal"] for part in block["content"])
        elif name == "gemini" and not block.get("thought"):
            yield block.get("text", "")
        elif name == "anthropic" and block["type"] == "text":
            yield block["text"]


@given(data=st.data())
@pytest.mark.parametrize("name", list(BLOCKS))
def test_a_streamed_turn_is_the_same_turn(name: str, data: st.DataObject) -> None:
    """conversations: A streamed turn goes back as the whole one."""
    blocks = data.draw(turns(name))
    if name == "gemini":  # of whose stream nobody can tell where one text ends and the next begins
        blocks = [
            block
            for block, before in zip(blocks, [{}, *blocks], strict=False)
            if not both_texts(block, before)
        ]
    streamed = choice_from_stream(events(name, blocks))
    whole = choice_from_response(body(FORMS[name], blocks))
    assert streamed.tool_calls is not None
    assert whole.tool_calls is not None
    assert streamed.tool_calls.turn == whole.tool_calls.turn
    assert [call.args for call in streamed.tool_calls] == [call.args for call in whole.tool_calls]


def both_texts(block: Json, before: Json) -> bool:
    return "text" in block and "text" in before and bool(block.get("thought")) == bool(before.get("thought"))


@pytest.mark.parametrize("kind", list(CHAT))
def test_a_chat_message_goes_back_as_it_came(chat: Wire, kind: str) -> None:
    """conversations: Fields of a chat message that its server wants back."""
    message = {"role": "assistant", **CHAT[kind]}
    calls = chat.calls(message)
    saved = ToolCalls.model_validate_json(calls.model_dump_json())
    assert saved == calls
    assert chat.turn(saved) == [message]


def assert_streams_as_whole(deltas: list[Json], message: Json) -> None:
    chunks: list[Json] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    streamed, whole = choice_from_stream(chunks), choice_from_response(body("chat", message))
    assert streamed.tool_calls is not None
    assert whole.tool_calls is not None
    assert streamed.tool_calls.turn == whole.tool_calls.turn


def test_streamed_thinking_parts_are_joined() -> None:
    """conversations: A streamed turn goes back as the whole one."""
    message = CHAT["thinking parts"]
    pieces: list[Json] = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "H"}]},
        {"type": "thinking", "thinking": [{"type": "text", "text": "m."}], "closed": True},
        {"type": "text", "text": "H"},
        {"type": "text", "text": "i."},
    ]
    deltas: list[Json] = [{"content": [piece]} for piece in pieces]
    deltas += [{"tool_calls": [{"index": 0, **message["tool_calls"][0]}]}]
    assert_streams_as_whole(deltas, message)


@pytest.mark.parametrize("wire_name", ["openai", *BLOCKS])
def test_text_and_plain_calls_need_no_state(wire_name: str) -> None:
    """conversations: Text and plain calls are kept without provider state."""
    plain: Any = {
        "openai": _plain_chat(),
        "anthropic": [BLOCKS["anthropic"]["text"], BLOCKS["anthropic"]["call"]],
        "responses": [BLOCKS["responses"]["message"], BLOCKS["responses"]["call"]],
        "gemini": [BLOCKS["gemini"]["text"], BLOCKS["gemini"]["unsigned call"]],
    }[wire_name]
    calls = choice_from_response(body(FORMS[wire_name], plain)).tool_calls
    assert calls is not None
    assert calls.turn.state is None


def _plain_chat() -> Json:
    calls: list[Json] = [{**CHAT["audio"]["tool_calls"][0], "index": 0}]
    nothing: list[Json] = []
    return {"role": "assistant", "content": "Hi.", "annotations": nothing, "tool_calls": calls}


def test_thinking_that_led_to_a_call_taken_out_goes_with_it() -> None:
    """conversations: A turn that the program changed."""
    blocks = BLOCKS["responses"]
    heard = [blocks["call"], blocks["reasoning"], blocks["call of a namespace"]]
    with wired("responses") as served:
        calls = served.calls(heard)
        assert served.turn(ToolCalls([calls[0]])) == heard[:1]
        assert "reasoning" in served.changes[0]
        assert served.turn(calls) == heard
        assert served.changes == []


def test_results_answer_their_calls_in_their_form() -> None:
    """conversations: A result has the form that its call asks for."""
    call = {**BLOCKS["responses"]["call"], "caller": {"type": "program", "caller_id": "prog_1"}}
    with wired("responses") as served:
        rows = served.sent_back(served.calls([call, BLOCKS["responses"]["custom call"]]))
        assert [row for row in rows if row["type"].endswith("_output")] == [
            {"type": "function_call_output", "call_id": "t1", "output": "sunny", "caller": call["caller"]},
            {"type": "custom_tool_call_output", "call_id": "t3", "output": "sunny"},
        ]
    use = {**BLOCKS["anthropic"]["call"], "toolset_name": "weather"}
    with wired("anthropic") as served:
        rows = served.sent_back(served.calls([use]))
        assert rows[0]["content"] == [use]
        assert rows[1]["content"][0]["toolset_name"] == "weather"


def test_code_that_waits_for_results_finds_its_container() -> None:
    """conversations: Code that waits for results finds its container."""
    blocks = BLOCKS["anthropic"]
    heard = [blocks["code execution"], blocks["call with a caller"]]
    container = {"container": {"id": "container_1", "expires_at": "2026-11-21T00:00:00Z"}}
    with wired("anthropic") as served:
        calls = served.heard(heard, container).calls
        assert served.turn(ToolCalls.model_validate_json(calls.model_dump_json())) == heard
        assert served.sent[-1]["container"] == "container_1"
        later = ToolResults.of(calls, ["a"]) + ToolResults.of(served.calls([blocks["call"]]), ["b"])
        served.heard(said_text("anthropic"), results=later)
        assert "container" not in served.sent[-1]
        plain = served.heard([blocks["text"], blocks["call"]], container).calls
        assert plain.turn.state is None
    with wired("openai") as served:
        served.sent_back(calls)
        assert "container" in served.changes[0]


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "block",
    [
        5,
        [1],
        {"type": "x", "a": nested(300)},
        {"type": "x", "a": [0.5] * 200_000},
        {"type": "x", "a": float("nan")},
    ],
    ids=["number", "list", "deep", "large", "nan"],
)
@pytest.mark.parametrize("name", list(BLOCKS))
def test_a_block_that_nobody_sent_is_refused(name: str, block: Any) -> None:
    """conversations: A saved turn is read, or refused with the reason."""
    dialect = choice_from_response(body(FORMS[name], [*BLOCKS[name].values()])).tool_calls
    assert dialect is not None
    assert dialect.turn.state is not None
    state = {"dialect": dialect.turn.state["dialect"], "blocks": [block], "ids": ["t1"]}
    calls = ToolCalls(
        [{"id": "t1", "name": "get_weather", "args": {"city": "Paris"}}], turn=turn_of(state=state)
    )
    with wired(name) as served:
        with pytest.raises(InvalidHistory) as caught:
            served.heard(said_text(served.form), results=ToolResults.of(calls, ["x"]))
        assert caught.value.code == "unreadable_state"
        assert not served.sent


def test_a_block_that_cannot_be_sent_stays_behind_on_record() -> None:
    """conversations: A block that cannot be sent stays behind."""
    deep = {"type": "web_search_tool_result", "tool_use_id": "s", "content": nested(220)}
    with wired("anthropic") as served:
        calls = served.calls([BLOCKS["anthropic"]["cited text"], deep, BLOCKS["anthropic"]["call"]])
        assert ToolCalls.model_validate_json(calls.model_dump_json()) == calls
        assert served.turn(calls) == [BLOCKS["anthropic"]["cited text"], BLOCKS["anthropic"]["call"]]
        assert "web_search_tool_result" in served.changes[0]
