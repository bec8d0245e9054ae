"""One request of a program with tools over HTTP, whole or streamed: what comes of it, be it an error."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import dspy
from support import May, get_weather, lm_of

import sigadapt
from sigadapt.testing import WIRES, Answer, LoopbackProvider, Received


def ask(
    wire: str,
    answer: Any,
    engine: str = "auto",
    *,
    is_streamed: bool = False,
    is_async: bool = False,
    listeners: Sequence[Any] = (),
    on_invalid: Any = "keep",
    **options: Any,
) -> Any:
    """Return the prediction, or the one error, of a request that is answered so; it is sent once."""
    script: Any = answer if callable(answer) else [answer]
    with LoopbackProvider(script) as provider:
        lm = lm_of(provider, wire, engine, **{"cache": False, "num_retries": 0, **options})
        adapter = sigadapt.ChatAdapter(on_invalid=on_invalid, tool_calling="native")
        with dspy.context(lm=lm, adapter=adapter):
            try:
                return (
                    asyncio.run(_awaited(is_streamed, listeners))
                    if is_async
                    else _asked(is_streamed, listeners)
                )
            except BaseException as error:  # noqa: BLE001  (a group of exceptions, which Python 3.10 lacks)
                return innermost(error)
            finally:
                assert len(provider.received) == 1


def whole(wire: str, answer: Answer) -> Any:
    """The body of an answer, as the loopback provider sends it."""
    return json.loads(json.dumps(WIRES[wire].format.render(answer, _received(wire, stream=False))))


def events(wire: str, answer: Answer) -> list[Any]:
    """The events of a streamed answer."""
    return json.loads(json.dumps([*WIRES[wire].format.stream(answer, _received(wire, stream=True))]))


def encoded(wire: str, sent: Sequence[Any]) -> list[bytes]:
    """The events as they are sent, each by itself."""
    return [*WIRES[wire].format.encode(sent)]


def _received(wire: str, *, stream: bool) -> Received:
    return Received(1, wire, "", {}, {"messages": []}, "m", stream=stream)


GIVEN: Any = {"question": "?", "tools": [get_weather]}


def _asked(is_streamed: bool, listeners: Sequence[Any]) -> Any:
    program: Any = dspy.Predict(May)
    if not is_streamed:
        return program(**GIVEN)
    program = dspy.streamify(program, stream_listeners=[*listeners] or None, async_streaming=False)
    return [*program(**GIVEN)][-1]


async def _awaited(is_streamed: bool, listeners: Sequence[Any]) -> Any:
    program: Any = dspy.Predict(May)
    if not is_streamed:
        return await program.acall(**GIVEN)
    program = dspy.streamify(program, stream_listeners=[*listeners] or None, is_async_program=True)
    return [item async for item in program(**GIVEN)][-1]


def heard_of(
    adapter: Any,
    answer: Any,
    *fields: str,
    signature: Any = May,
    column: tuple[str, str] = ("openai", "auto"),
) -> tuple[list[Any], Any]:
    """What listeners to these fields of a streamed answer got, and the prediction."""

    async def go(lm: dspy.LM) -> list[Any]:
        listeners: list[Any] = [dspy.streaming.StreamListener(field) for field in fields]
        with dspy.context(lm=lm, adapter=adapter):
            program: Any = dspy.streamify(dspy.Predict(signature), stream_listeners=listeners)
            return [item async for item in program(**GIVEN)]

    with LoopbackProvider([answer]) as provider:
        items = asyncio.run(go(lm_of(provider, *column)))
    chunks = [item for item in items if isinstance(item, dspy.streaming.StreamResponse)]
    return chunks, next((item for item in items if isinstance(item, dspy.Prediction)), None)


def innermost(error: Any) -> Any:
    """Return the one error in a group of one."""
    while hasattr(error, "exceptions"):
        (error,) = error.exceptions
    return error
