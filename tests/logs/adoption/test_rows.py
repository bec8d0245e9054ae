"""A row is its request: its own tools, settings and instructions."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

import asyncio
from typing import Any

import dspy
import pytest
from logs.made_logs import CLOCK, WEATHER, asks, log, tool, weather_log

from sigadapt.errors import InvalidOption
from sigadapt.logs import Adopted, adopt
from sigadapt.testing import Answer, LoopbackProvider

BANK = tool("move_money", "Move money.", to="string", cents="integer")
OLD_WEATHER = tool("get_weather", "Weather.", city="string", unit="string")
SEARCH = {"type": "web_search"}


def apps() -> list[Any]:
    """The log of two applications, and of one of them before its tool changed."""
    old = log(
        asks("Weather in Rome, in C?", "get_weather", {"city": "Rome", "unit": "C"}),
        [OLD_WEATHER],
        "You are a weather desk.",
    )
    bank = [
        line
        for city in ("Lima", "Oslo")
        for line in log(
            asks(f"Send {city} 5", "move_money", {"to": city, "cents": 5}),
            [BANK],
            "You are a bank.",
            tool_choice="required",
            parallel_tool_calls=False,
        )
    ]
    return [*old, *bank, *weather_log("You are a weather desk.", temperature=0.25)]


ADOPTED = adopt(apps())


def row_of(question: str, adopted: Adopted = ADOPTED) -> dspy.Example:
    return next(row for row in adopted.rows if row.question == question)


def sent_for(question: str, adopted: Adopted = ADOPTED, wire: str = "openai") -> dict[str, Any]:
    with LoopbackProvider([Answer(text="ok")]) as provider:
        lm = dspy.LM(**provider.lm_options(wire))
        with dspy.context(lm=lm):
            adopted.program(**row_of(question, adopted).inputs())
    return provider.received[0].body


def names_of(body: dict[str, Any]) -> list[str]:
    return [(each.get("function") or each)["name"] for each in body["tools"]]


def test_its_tools() -> None:
    """logs: A row is its request"""
    assert row_of("Send Lima 5").tools == ["move_money"]
    assert names_of(sent_for("Send Lima 5")) == ["move_money"]
    assert names_of(sent_for("Weather in Lima?")) == ["get_weather", "get_time"]
    old = sent_for("Weather in Rome, in C?")["tools"][0]["function"]
    assert set(old["parameters"]["properties"]) == {"city", "unit"}
    assert ADOPTED.drifted == 1


def test_its_settings() -> None:
    """logs: A row is its request"""
    bank, weather = sent_for("Send Lima 5"), sent_for("Weather in Lima?")
    assert (bank["tool_choice"], bank["parallel_tool_calls"]) == ("required", False)
    assert "temperature" not in bank
    assert weather["temperature"] == 0.25
    billed = {"user": "ada", "service_tier": "flex", "store": True, "prompt_cache_key": "k", "stream": True}
    adopted = adopt(weather_log(**billed, max_tokens=77))
    assert adopted.rows[0].settings == {"max_tokens": 77}


def test_its_instructions() -> None:
    """logs: A row is its request"""
    assert sent_for("Send Lima 5")["messages"][0]["content"] == "You are a bank."
    assert sent_for("Weather in Lima?")["messages"][0]["content"] == "You are a weather desk."
    assert row_of("Send Lima 5").instructions == "You are a bank."
    assert "instructions" not in row_of("Weather in Lima?")


def test_a_tool_of_one_provider() -> None:
    """logs: A row is its request"""
    searching = log(asks("Weather in Nice?", "get_weather", {"city": "Nice"}), [WEATHER, SEARCH])
    adopted = adopt([*weather_log(), *searching])
    assert [decl.name for decl in adopted.tools] == ["get_weather", "get_time"]
    assert adopted.own_tools == 1
    row = row_of("Weather in Nice?", adopted)
    assert (row.tools, row.wire) == (["get_weather", SEARCH], "openai-chat")
    assert "wire" not in row_of("Weather in Lima?", adopted)
    assert names_of(sent_for("Weather in Lima?", adopted, "anthropic")) == ["get_weather", "get_time"]
    assert names_of(sent_for("Weather in Nice?", adopted, "anthropic")) == ["get_weather"]


def test_a_name_that_is_no_tool() -> None:
    """logs: A row is its request"""
    inputs = {**row_of("Send Lima 5").inputs(), "tools": ["move_monye"]}
    with pytest.raises(InvalidOption, match="Did you mean 'move_money'"):
        ADOPTED.program(**inputs)
    assert len(adopt(weather_log()).rows) == 8
    assert CLOCK["function"]["name"] in [decl.name for decl in ADOPTED.tools]


def test_an_unknown_input_is_refused() -> None:
    """logs: The program of a log runs."""
    adopted = adopt(apps())
    for run in (adopted.program, lambda **row: asyncio.run(adopted.program.acall(**row))):
        with pytest.raises(InvalidOption) as caught:
            run(qestion="Hi.")
        assert (caught.value.field, caught.value.fix) == ("qestion", "Did you mean 'question'?")
