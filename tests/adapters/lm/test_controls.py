"""The settings of a call: what goes beside a request, what goes into it, and what a model cannot take."""

from typing import Any

import dspy
import pytest
from internals import controls_of, executions_of

from sigadapt.errors import InvalidOption

NAMED = dspy.LM("openai/gpt-4o-mini", temperature=0.5, max_tokens=100, api_key="own", stop=["x"])


def test_what_governs_the_sending_is_no_part_of_the_request() -> None:
    """request-shaping: Generation settings reach the provider."""
    settings = {"n": 1, "cache": False, "rollout_id": 7, "prompt_cache": "auto", "temperature": 0.9}
    controls, generation = controls_of(NAMED, settings)
    assert (controls.cache, controls.rollout_id, controls.prompt_cache) == (False, 7, "auto")
    assert {"cache", "rollout_id", "n", "prompt_cache", "api_key"} & set(generation) == set()
    assert (generation["temperature"], generation["max_tokens"], generation["stop"]) == (0.9, 100, ["x"])


def test_connection_settings_are_those_of_the_call_alone() -> None:
    """request-shaping: Connection settings stay out of the request."""
    assert controls_of(NAMED, {})[0].client == {}
    controls, generation = controls_of(NAMED, {"api_key": "other", "api_base": "http://127.0.0.1:9"})
    assert controls.client == {"api_key": "other", "api_base": "http://127.0.0.1:9"}
    assert "api_key" not in generation


def test_none_unsets() -> None:
    assert "temperature" not in controls_of(NAMED, {"temperature": None})[1]


@pytest.mark.parametrize("name", ["n", "num_generations"])
@pytest.mark.parametrize("count", [0, None])
def test_no_number_of_answers_is_one(name: str, count: Any) -> None:
    assert controls_of(NAMED, {name: count})[0].candidates == 1


@pytest.mark.parametrize("name", ["n", "num_generations"])
@pytest.mark.parametrize("count", [-1, 2.0, "2", True])
def test_a_number_of_answers_is_a_positive_integer(name: str, count: Any) -> None:
    with pytest.raises(InvalidOption) as caught:
        controls_of(NAMED, {name: count})
    assert caught.value.field == "n"


CANDIDATES: list[Any] = [
    ({}, [{}]),
    ({"cache": True}, [{"cache": True}]),
    ({"rollout_id": 3}, [{"rollout_id": 3}]),
    ({"n": 3}, [{}, {"rollout_id": "#1"}, {"rollout_id": "#2"}]),
    (
        {"n": 2, "rollout_id": 3, "cache": False},
        [{"cache": False, "rollout_id": 3}, {"cache": False, "rollout_id": "3#1"}],
    ),
]


@pytest.mark.parametrize(("settings", "executions"), CANDIDATES)
def test_each_candidate_is_kept_apart_in_the_cache(settings: Any, executions: list[Any]) -> None:
    """request-shaping: Cached candidates stay distinct."""
    controls, _ = controls_of(NAMED, settings)
    assert executions_of(controls) == executions
    assert [
        each for n in range(len(executions)) for each in executions_of(controls.candidate(n))
    ] == executions
