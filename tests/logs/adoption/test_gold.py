"""Gold is right, or is no gold."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from pathlib import Path
from typing import Any

import pytest
from logs.made_logs import REFUND, WEATHER, asks, log, model, result, tool, user, weather_log

from sigadapt.logs import adopt
from sigadapt.logs.adoption.gold import ADMISSIONS

FAILED = '{"error": "amount exceeds the order"}'


def golds(lines: list[Any]) -> list[tuple[list[Any], str]]:
    """The gold arguments of each row, in order, and why they are gold."""
    return [([call["args"] for call in row.calls], row.why) for row in adopt(lines).rows]


def two_calls(first: Any, value: str, text: str | None, second: Any, question: str = "Refund it") -> Any:
    name = "refund" if "order" in first else "get_weather"
    events = [
        user(question),
        model(None, ("k1", name, first)),
        result("k1", value),
        model(text, ("k2", name, second)),
        result("k2", "done"),
        model("Done."),
    ]
    return log(events, [REFUND, WEATHER])


WRONG, RIGHT = {"order": 1, "cents": 1200}, {"order": 1, "cents": 12}


def test_a_failed_call_is_corrected() -> None:
    """logs: The gold of a row is the call that was right"""
    lines = two_calls(WRONG, FAILED, None, RIGHT)
    assert golds(lines) == [([RIGHT], "corrected"), ([RIGHT], "result")]
    assert adopt(lines).failures == [{"code": "tool_failed", "tool": "refund", "path": None, "count": 1}]


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, I made a mistake with the amount. Let me correct it.",
        "I apologize for the confusion, that was the wrong order.",
        "The tool reports an error.",
    ],
)
def test_a_model_admits_a_mistake(text: str) -> None:
    """logs: A model's own words correct a call"""
    lines = two_calls(WRONG, "The amount is larger than the order.", text, RIGHT)
    assert golds(lines) == [([RIGHT], "corrected"), ([RIGHT], "result")]
    assert [failure["code"] for failure in adopt(lines).failures] == ["tool_failed"]


@pytest.mark.parametrize("text", [None, "And Oslo.", "I'm sorry to hear that. Now Oslo."])
def test_another_call_corrects_nothing(text: str | None) -> None:
    """logs: A model's own words correct a call"""
    lines = two_calls({"city": "Lima"}, "18 C", text, {"city": "Oslo"}, "Weather, please")
    assert golds(lines) == [([{"city": "Lima"}], "result"), ([{"city": "Oslo"}], "result")]


def test_what_the_user_asked_for_both() -> None:
    """logs: The gold of a row is the call that was right"""
    asked = "Weather in Lima and Oslo?"
    failed = two_calls({"city": "Lima"}, "Error: no data", None, {"city": "Oslo"}, asked)
    assert golds(failed) == [([{"city": "Oslo"}], "result")]
    admitted = two_calls({"city": "Lima"}, "18 C", "Sorry, an error.", {"city": "Oslo"}, asked)
    assert golds(admitted) == [([{"city": "Lima"}], "result"), ([{"city": "Oslo"}], "result")]


def test_an_outage_corrects_nothing() -> None:
    """logs: The gold of a row is the call that was right"""
    lines = two_calls({"order": 7, "cents": 5}, "Error: 503 Service Unavailable", None, RIGHT)
    assert golds(lines) == [([RIGHT], "result")]


def test_the_call_that_was_meant() -> None:
    """logs: A model's own words correct a call"""
    both = [("a", "refund", {"order": 1, "cents": 5}), ("b", "refund", {"order": 2, "cents": 900})]
    events = [
        user("Refund both"),
        model(None, *both),
        result("a", "done"),
        result("b", "more than was paid"),
        model("Sorry, the amount was wrong.", ("c", "refund", {"order": 2, "cents": 9})),
        result("c", "done"),
        model("Done."),
    ]
    first, last = golds(log(events, [REFUND]))
    assert first == ([{"order": 1, "cents": 5}, {"order": 2, "cents": 9}], "corrected")
    assert last == ([{"order": 2, "cents": 9}], "result")


def test_a_result_that_never_came() -> None:
    """logs: The gold of a row is the call that was right"""
    [row] = adopt(log(asks("?", "get_weather", {"city": "Rome"}))[:1]).rows
    assert (row.why, row.confirmed) == ("unconfirmed", False)
    [row, *_] = adopt(log(asks("?", "get_weather", {"city": "Rome"}))).rows
    assert (row.why, row.confirmed) == ("result", True)
    interrupted = [user("?"), model(None, ("c1", "get_weather", {"city": "Rome"})), user("Well?"), model(".")]
    [row] = adopt(log(interrupted)).rows
    assert (row.why, row.confirmed) == ("unconfirmed", False)


def test_results_of_another_conversation() -> None:
    """logs: The gold of a row is the call that was right"""
    bad = log([user("Weather?"), model(None, ("c1", "get_weather", {"zip": 1}))])
    others = [log(asks("Weather?", "get_weather", {"city": city})) for city in ("Lima", "Oslo")]
    adopted = adopt([*bad, *others[0], *others[1]])
    assert sorted(row.calls[0]["args"]["city"] for row in adopted.rows) == ["Lima", "Oslo"]


def test_every_row_of_a_good_log() -> None:
    """logs: The gold of a row is the call that was right"""
    adopted = adopt(weather_log())
    assert {row.question: row.calls[0]["args"]["city"] for row in adopted.rows} == {
        f"Weather in {city}?": city
        for city in ["Lima", "Oslo", "Bonn", "Kyiv", "Riga", "Cork", "Graz", "Pisa"]
    }
    assert {row.why for row in adopted.rows} == {"result"}


def test_the_page_lists_the_words() -> None:
    """logs: A model's own words correct a call"""
    page = (Path(__file__).resolve().parents[3] / "docs" / "guides" / "logs.md").read_text("utf-8")
    assert [word for word in ADMISSIONS if f"`{word}`" not in page] == []


def test_an_answer_that_was_asked_for_again_is_no_gold() -> None:
    """logs: The gold of a row is the call that was right"""
    question = user("Weather in Lima?")
    wrong, right = (model(None, (call_id, "get_weather", {"city": city})) for call_id, city in RETRIES)
    first = log([question, wrong])
    rest = log([question, right, result("call_bB2cC3dD4", "18 C"), model("18 C.")])
    adopted = adopt([*first, *rest])
    assert [row.calls[0]["args"]["city"] for row in adopted.rows] == ["Lima"]
    assert [(each["code"], each["count"]) for each in adopted.failures] == [("replaced", 1)]
    # An answer that nobody continued is not known to be wrong.
    assert [row.why for row in adopt([*first, *rest[:1]]).rows] == ["unconfirmed", "unconfirmed"]


RETRIES = (("call_aA1bB2cC3", "Rome"), ("call_bB2cC3dD4", "Lima"))


def test_arguments_that_a_client_wrote_in_another_way_are_the_same_call() -> None:
    """logs: The gold of a row is the call that was right"""
    call = ("call_aA1bB2cC3", "get_weather", {"city": "Lima", "unit": None})
    kept = ("call_aA1bB2cC3", "get_weather", {"city": "Lima"})
    tools = [{"type": "function", "function": {"name": "get_weather", "description": "Weather."}}]
    lines = log([user("Weather?"), model(None, call)], tools)
    lines += log([user("Weather?"), model(None, kept), result(call[0], "18 C"), model("18 C.")], tools)[1:]
    assert [row.why for row in adopt(lines).rows] == ["unconfirmed"]


def test_equal_calls_of_one_answer_have_each_its_result() -> None:
    """logs: The gold of a row is the call that was right"""
    calls = [(call_id, "get_weather", {"city": "Lima"}) for call_id in ("c1", "c2")]
    events = [user("Weather?"), model(None, *calls), result("c1", "Error: busy"), result("c2", "18 C")]
    adopted = adopt(log([*events, model("18 C.")]))
    assert golds(log([*events, model("18 C.")])) == [([{"city": "Lima"}], "result")]
    assert [(each["code"], each["count"]) for each in adopted.failures] == [("tool_failed", 1)]


NO_ANSWERS = [
    ({"content": None}, "stop", "empty"),
    ({"content": ""}, "length", "cut_off"),
    ({"content": "I"}, "content_filter", "filtered"),
    ({"content": None, "refusal": "No."}, "stop", "refused"),
]


@pytest.mark.parametrize(("message", "finish", "code"), NO_ANSWERS)
def test_an_answer_that_says_nothing_is_no_silence(message: Any, finish: str, code: str) -> None:
    """logs: Turns without a call are rows of their own"""
    [line] = log([user("Weather?"), {"role": "assistant", **message}])
    line["response"]["choices"][0]["finish_reason"] = finish
    adopted = adopt([*weather_log(), line])
    assert "Weather?" not in [row.question for row in adopted.silences]
    assert adopted.failures == [{"code": code, "tool": None, "path": None, "count": 1}]


def test_a_call_that_a_server_left_as_text_is_no_silence() -> None:
    """logs: Turns without a call are rows of their own"""
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Lima"}}\n</tool_call>'
    lines = log([user("Weather?"), model(call)]) + log([user("Why?"), model("Because (I say so).")])
    adopted = adopt(lines)
    assert [row.question for row in adopted.silences] == ["Why?"]
    assert [(each["code"], each["tool"]) for each in adopted.failures] == [("call_in_text", "get_weather")]


ASKED_FOR_BOTH = [
    "Lima or Oslo?",
    "Limassol, Lima and Oslo",
    "Lima, Limassol, Oslo",
    "Limas Lima Limas: Oslo",
]
ASKED_FOR_ONE = ["Limassol and Oslo", "InLima, Oslo", "Lima_2 and Oslo", "Oslo", "2Lima, Oslo"]


@pytest.mark.parametrize("question", ASKED_FOR_BOTH + ASKED_FOR_ONE)
def test_a_user_asks_for_a_value_by_a_word_of_its_own(question: str) -> None:
    """logs: The gold of a row is the call that was right"""
    lines = two_calls({"city": "Lima"}, "Error: no data", None, {"city": "Oslo"}, question)
    corrected = [([{"city": "Oslo"}], "corrected")] if question in ASKED_FOR_ONE else []
    assert golds(lines) == [*corrected, ([{"city": "Oslo"}], "result")]


FREE = [{"type": "function", "function": {"name": "find", "description": "Find."}}]


@pytest.mark.parametrize(
    ("first", "second", "question"),
    [
        ({}, {"unit": "c"}, "In none, or c?"),
        ({"unit": {"a": 1}}, {"unit": {"b": 2}}, "{'a': 1} or {'b': 2}"),
        ({"unit": [1]}, {"unit": [2]}, "[1] or [2]"),
    ],
    ids=["nothing", "objects", "lists"],
)
def test_a_user_names_no_structure(first: Any, second: Any, question: str) -> None:
    """logs: The gold of a row is the call that was right"""
    events = [
        user(question),
        model(None, ("k1", "find", first)),
        result("k1", "Error: no data"),
        model(None, ("k2", "find", second)),
        result("k2", "done"),
        model("Done."),
    ]
    assert golds(log(events, FREE)) == [([second], "corrected"), ([second], "result")]


def rounds_of(*steps: tuple[str | None, list[tuple[str, Any, str]]]) -> list[Any]:
    """The log of a turn: what the model said in each round, and its calls with their results."""
    events = [user("Refund it")]
    for number, (text, calls) in enumerate(steps):
        ids = [f"k{number}_{place}" for place in range(len(calls))]
        events.append(
            model(text, *((key, name, args) for key, (name, args, _) in zip(ids, calls, strict=True)))
        )
        events += [result(key, value) for key, (_, _, value) in zip(ids, calls, strict=True)]
    return log([*events, model("Done.")], [REFUND, WEATHER, NOTE])


NOTE = tool("note", "Note a refund.", order="integer", cents="integer")
WORSE = {"order": 1, "cents": 9000}
LOOKED = ("get_weather", {"city": "Lima"}, "18 C")
UNKNOWN_WORDS = "The amount is larger than the order."


def test_a_correction_is_neither_another_tools_nor_one_that_failed() -> None:
    """logs: The gold of a row is the call that was right"""
    lines = rounds_of(
        (None, [("refund", WRONG, FAILED)]),
        (None, [LOOKED, ("refund", WORSE, FAILED), ("refund", RIGHT, "done")]),
    )
    assert golds(lines)[0] == ([RIGHT], "corrected")


def test_a_correction_may_come_after_a_round_about_something_else() -> None:
    """logs: A model's own words correct a call"""
    lines = rounds_of(
        (None, [("refund", WRONG, UNKNOWN_WORDS)]),
        (None, [LOOKED]),
        ("Sorry, the amount was wrong.", [("refund", RIGHT, "done")]),
    )
    assert golds(lines)[0] == ([RIGHT], "corrected")


def test_a_call_that_is_made_again_was_not_corrected() -> None:
    """logs: A model's own words correct a call"""
    lines = rounds_of(
        (None, [("refund", WRONG, UNKNOWN_WORDS)]),
        ("Sorry, I try again.", [("refund", WRONG, "done")]),
        (None, [("refund", RIGHT, "done")]),
    )
    assert golds(lines) == [([WRONG], "result"), ([WRONG], "result"), ([RIGHT], "result")]


def test_a_call_of_another_tool_is_not_what_was_corrected() -> None:
    """logs: A model's own words correct a call"""
    lines = rounds_of(
        (None, [("refund", WRONG, UNKNOWN_WORDS), ("note", RIGHT, "noted")]),
        ("Sorry, the amount was wrong.", [("refund", RIGHT, "done")]),
    )
    assert golds(lines)[0] == ([RIGHT, RIGHT], "corrected")


@pytest.mark.parametrize(
    "beside", [("refund", WRONG, "done"), LOOKED], ids=["the same again", "another tool's"]
)
def test_a_correction_differs_from_what_it_corrects(beside: Any) -> None:
    """logs: A model's own words correct a call"""
    lines = rounds_of(
        (None, [("refund", WRONG, UNKNOWN_WORDS)]),
        ("Sorry, the amount was wrong.", [beside, ("refund", RIGHT, "done")]),
    )
    assert golds(lines)[0] == ([RIGHT], "corrected")


def test_words_after_the_next_call_admit_nothing_about_the_one_before() -> None:
    """logs: A model's own words correct a call"""
    lines = rounds_of(
        (None, [("refund", WRONG, UNKNOWN_WORDS)]),
        ("And the other one.", [("refund", RIGHT, "done")]),
        ("Sorry, an error.", [LOOKED]),
    )
    assert [gold for gold in golds(lines) if gold[1] != "result"] == []


def test_gold_does_not_depend_on_the_order_of_lines() -> None:
    """logs: The gold of a row is the call that was right"""
    lines = rounds_of(
        (None, [("refund", WRONG, UNKNOWN_WORDS)]),
        (None, [LOOKED]),
        ("Sorry, the amount was wrong.", [("refund", RIGHT, "done")]),
    )
    assert sorted(map(str, golds(lines[::-1]))) == sorted(map(str, golds(lines)))


def test_a_question_that_is_asked_again_has_its_own_results() -> None:
    """logs: The gold of a row is the call that was right"""
    first = asks("Weather in Lima?", "get_weather", {"city": "Lima"}, "Error: no data")
    second = asks("Weather in Lima?", "get_weather", {"city": "Lima"}, "18 C", "c2")
    adopted = adopt(log([*first, *second]))
    assert golds(log([*first, *second])) == [([{"city": "Lima"}], "result")]
    assert [(each["code"], each["count"]) for each in adopted.failures] == [("tool_failed", 1)]


@pytest.mark.parametrize("call_id", ["call_aA1bB2cC3", "c2"], ids=["random id", "counted id"])
@pytest.mark.parametrize("value", ["18 C", "Error: no data"])
def test_the_results_of_a_call_after_its_history_was_trimmed(call_id: str, value: str) -> None:
    """logs: The gold of a row is the call that was right"""
    earlier = asks("Weather in Oslo?", "get_weather", {"city": "Oslo"})
    turn = asks("Weather in Lima?", "get_weather", {"city": "Lima"}, value, call_id)
    lines = log([*earlier, *turn[:2]], conversation="a") + log(turn, conversation="a")[1:]
    lima = [([{"city": "Lima"}], "result")] if value == "18 C" else []
    assert golds(lines) == [([{"city": "Oslo"}], "result"), *lima]


def test_two_calls_that_failed_have_two_corrections() -> None:
    """logs: The gold of a row is the call that was right"""
    other = {"order": 2, "cents": 9}
    lines = rounds_of(
        (None, [("refund", WRONG, FAILED), ("refund", WORSE, FAILED)]),
        (None, [("refund", RIGHT, "done"), ("refund", other, "done")]),
    )
    assert golds(lines)[0] == ([RIGHT, other], "corrected")
