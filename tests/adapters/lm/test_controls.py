"""The settings of a call: what goes beside a request, what goes into it, and what a model cannot take."""

from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from support import May, get_weather, lm_of

import sigadapt
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer, LoopbackProvider, Received

SAID = Answer(text="[[ ## answer ## ]]\nFine.")


@pytest.fixture
def provider() -> Iterator[LoopbackProvider]:
    with LoopbackProvider(lambda _: SAID) as served:
        yield served


def ask(provider: LoopbackProvider, settings: Any, *, question: str = "?", **options: Any) -> list[Received]:
    """The requests that arrive of a call with these settings."""
    lm = lm_of(provider, api_key="own", temperature=0.5, max_tokens=100, stop=["x"], cache=True)
    before = len(provider.received)
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native", **options)):
        dspy.Predict(May)(question=question, tools=[get_weather], config=settings)
    return [*provider.received[before:]]


def test_connection_settings_are_those_of_the_call_alone(provider: LoopbackProvider) -> None:
    """request-shaping: Connection settings stay out of the request."""
    (sent,) = ask(provider, {"cache": False})
    assert sent.headers["authorization"] == "Bearer own"
    with LoopbackProvider([SAID]) as other:
        assert ask(provider, {"api_key": "other", "api_base": other.base_url("openai"), "cache": False}) == []
    (elsewhere,) = other.received
    assert elsewhere.headers["authorization"] == "Bearer other"
    assert elsewhere.body == sent.body


@pytest.mark.parametrize("name", ["n", "num_generations"])
@pytest.mark.parametrize("count", [-1, 2.0, "2", True])
def test_a_number_of_answers_is_a_positive_integer(name: str, count: Any, provider: LoopbackProvider) -> None:
    with pytest.raises(InvalidOption) as caught:
        ask(provider, {name: count})
    assert caught.value.field == "n"
    assert provider.received == ()
