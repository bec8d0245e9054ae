"""An answer with another type of JSON in any member ends in outputs, or in an error of ours or of DSPy's."""

import copy
import gc
import json
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

import dspy
import pytest
from asking import events, whole
from budgets import share
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_places import places, put
from support import ENGINES, May, get_weather, lm_of

import sigadapt
from sigadapt.testing import WIRES, Answer, Call, LoopbackProvider

pytestmark = pytest.mark.usefixtures("closed_streams")

VALUES: list[Any] = [None, 7, -1.5, True, "x", [], {}, [1], ["x"], [None], [[]], {"a": 1}]
CALLS = [Call("get_weather", {"city": "Rome"}, id="c1"), Call("get_weather", {"city": "Oslo"}, id="c2")]
ANSWER = Answer(text="Let me look.", reasoning="Hm.", calls=CALLS)
LATEST = [b""]


@cache
def provider() -> LoopbackProvider:
    return LoopbackProvider(lambda _: LATEST[0], keep=1).start()


@cache
def sample(wire: str, is_streamed: bool) -> Any:
    return events(wire, ANSWER) if is_streamed else whole(wire, ANSWER)


@contextmanager
def no_collection() -> Generator[None]:
    """Keep the collector away from LiteLLM's open streams while a call holds the lock that closes them."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def is_clear(error: BaseException) -> bool:
    """Whether an error is one that a program may expect, also in a group."""
    group: Any = error
    if hasattr(group, "exceptions"):  # Python 3.10 has no class for it
        return all(map(is_clear, group.exceptions))
    expected = sigadapt.SigadaptError, dspy.LMError, dspy.utils.exceptions.AdapterParseError
    return isinstance(error, expected)


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
ROUTES = [(wire, engine) for wire in WIRES for engine in ENGINES if (wire, engine) != ("ollama", "auto")]


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("wire", "engine"), ROUTES)
@settings(max_examples=share(60), suppress_health_check=SLOW)
@given(data=st.data())
def test_a_member_of_another_type_ends_in_outputs_or_a_clear_error(
    wire: str, engine: str, is_streamed: bool, data: st.DataObject
) -> None:
    """response-choice: An answer of any types ends in outputs or a clear error."""
    streams = is_streamed and (wire, engine) != ("responses", "litellm")  # which DSPy does not stream
    answer = copy.deepcopy(sample(wire, streams))
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from([*places(answer)]))
        put(answer, place, copy.deepcopy(data.draw(st.sampled_from(VALUES))))
    begin, end = ("", "\n") if wire == "ollama" else ("data: ", "\n\n")
    parts = [f"{begin}{json.dumps(event)}{end}" for event in answer] if streams else [json.dumps(answer)]
    LATEST[0] = "".join(parts).encode()
    lm = lm_of(provider(), wire, engine, cache=False, num_retries=0)
    program = dspy.Predict(May)
    adapter = sigadapt.ChatAdapter(on_invalid="keep", tool_calling="native")
    try:
        with no_collection(), dspy.context(lm=lm, adapter=adapter):
            if is_streamed:
                _ = [*sigadapt.stream_sync(program, question="?", tools=[get_weather])]
            else:
                program(question="?", tools=[get_weather])
    except Exception as error:
        if not is_clear(error):
            raise
