"""Requests of one conversation are one, however they were logged."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

import random
from typing import Any

import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from logs.made_logs import CITIES, WEATHER, asks, log, model, result, turns, user

from sigadapt.logs import Adopted, adopt


def names_of(adopted: Adopted) -> set[str]:
    return {row.conversation for row in (*adopted.rows, *adopted.silences)}


def windows(events: list[Any], size: int) -> list[Any]:
    """Requests that hold only the last turns."""
    starts = [number for number, event in enumerate(events) if event["role"] == "user"]
    lines: list[Any] = []
    for number, event in enumerate(events):
        if event["role"] == "assistant":
            start = [each for each in starts if each < number][-size:][0]
            lines += log([*events[start:number], event])[-1:]
    return lines


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_turns_are_one_conversation(count: int, counts: bool) -> None:
    """logs: A conversation is one, whole, trimmed or compacted"""
    lines = log(turns(count, "Ulm", counts=counts))
    assert len(names_of(adopt(lines))) == 1
    assert len(names_of(adopt(lines[::2]))) == 1


@pytest.mark.parametrize("counts", [False, True])
def test_trimmed_requests(counts: bool) -> None:
    """logs: A conversation is one, whole, trimmed or compacted"""
    ulm, bern = (windows(turns(6, tag, counts=counts), 2) for tag in ("Ulm", "Bern"))
    adopted = adopt([line for pair in zip(ulm, bern, strict=True) for line in pair])
    by_name: dict[str, set[str]] = {}
    for row in adopted.rows:
        by_name.setdefault(row.conversation, set()).add(str(row.question).split(":")[0])
    assert sorted(map(sorted, by_name.values())) == [["Bern"], ["Ulm"]]
    assert len(adopted.rows) == 12


@pytest.mark.parametrize("counts", [False, True])
def test_a_compacted_conversation(counts: bool) -> None:
    """logs: A conversation is one, whole, trimmed or compacted"""
    events = turns(6, "Ulm", counts=counts)
    compacted = [user("Summary: the user asks for the weather of Ulm."), *events[8:]]
    adopted = adopt([*log(events[:16]), *log(compacted)[4:]])
    assert len(names_of(adopted)) == 1


def test_conversations_that_begin_alike() -> None:
    """logs: Conversations that begin alike part where they differ"""
    greeting = [user("Hi"), model("Hello! How can I help?")]
    talks = [
        [*greeting, *asks(f"Weather in {city}?", "get_weather", {"city": city}, "1 C", f"call_{n}")]
        for n, city in enumerate(("Lima", "Oslo", "Bonn"), 1)
    ]
    adopted = adopt([line for events in talks for line in log(events)])
    assert len(names_of(adopted)) == adopted.conversations == 3
    # A call with a random id in what they share is of one conversation: the user asked again.
    shared = turns(1, "Ulm")
    again = [[*shared, user(f"And {word}?"), model("I do not know.")] for word in ("now", "then")]
    assert adopt([line for events in again for line in log(events)]).conversations == 1


def test_servers_that_count_alike() -> None:
    """logs: Conversations that begin alike part where they differ"""
    lines = [line for tag in ("Ulm", "Bern", "Gent") for line in log(turns(3, tag, counts=True))]
    assert len(names_of(adopt(lines))) == 3


def said(*texts: str) -> list[Any]:
    """What a user and a model say in turns, too short to be a turn of its own."""
    return [model(text) if number % 2 else user(text) for number, text in enumerate(texts)]


def ask(city: str) -> list[Any]:
    """A turn of a server that counts the ids of its calls."""
    return asks(f"{city}?", "get_weather", {"city": city}, "1 C", "call_1")


SHARED = ask("Ulm")
CHAT = said("Hi.", "Hello.", "How are you?", "Fine.")
BEHIND_HI = CHAT[1:]
MORE_BERN, MORE_ULM = (
    asks("More?", "get_weather", {"city": city}, "1 C", "call_1") for city in ("Bern", "Ulm")
)
ONE_TURN_IN_COMMON: dict[str, tuple[list[Any], list[Any], int]] = {
    "others around it": ([*ask("Bern"), *SHARED, *ask("Gent")], [*ask("Metz"), *SHARED, *ask("Brno")], 2),
    "another before it": ([*ask("Bern"), *SHARED], [*ask("Metz"), *SHARED], 2),
    "others before it": ([*ask("Bern"), *ask("Gent"), *SHARED], [*ask("Metz"), *ask("Brno"), *SHARED], 2),
    "one more before it": ([*ask("Bern"), *SHARED], [*ask("Bern"), *ask("Metz"), *SHARED], 2),
    "the same after it": ([*ask("Bern"), *SHARED, *ask("Gent")], [*ask("Metz"), *SHARED, *ask("Gent")], 2),
    "another after it": ([*SHARED, *ask("Bern")], [*ask("Metz"), *SHARED, *ask("Gent")], 2),
    "trimmed": ([*SHARED, *ask("Bern")], [*ask("Metz"), *SHARED, *ask("Bern")], 1),
    "trimmed earlier": ([*ask("Bern"), *SHARED], [*ask("Metz"), *ask("Bern"), *SHARED], 1),
    "trimmed before words": ([*CHAT, *SHARED], [*ask("Metz"), *CHAT, *SHARED], 1),
    "trimmed before other words": ([*CHAT, *SHARED], [*ask("Brno"), *CHAT, *SHARED], 1),
    "trimmed inside of words": ([*BEHIND_HI, *SHARED], [*ask("Metz"), *CHAT, *SHARED], 1),
    "trimmed inside of other words": ([*BEHIND_HI, *SHARED], [*ask("Brno"), *CHAT, *SHARED], 1),
    "other words before it": ([*BEHIND_HI, *SHARED], [*ask("Metz"), *SHARED], 2),
    "the same question before it": ([*MORE_ULM, *ask("Gent")], [*ask("Metz"), *MORE_BERN, *MORE_ULM], 1),
}


@pytest.mark.parametrize("name", ONE_TURN_IN_COMMON)
@pytest.mark.parametrize("is_turned", [False, True])
def test_one_turn_in_common_joins_only_what_was_trimmed(name: str, is_turned: bool) -> None:
    """logs: A conversation is one, whole, trimmed or compacted"""
    first, second, count = ONE_TURN_IN_COMMON[name]
    lines = [*log(first), *log(second)]
    adopted = adopt(lines[::-1] if is_turned else lines)
    assert len(names_of(adopted)) == adopted.conversations == count


def test_a_trimmed_request_finds_one_of_two_equally_long_ones_in_any_order_of_lines() -> None:
    """logs: A conversation is one, whole, trimmed or compacted"""
    talks = [[*ask("Bern"), *SHARED, *said(word, "Bye.")] for word in ("Thanks.", "Great.")]
    trimmed = log([*SHARED, *said("Thanks.", "Bye.")])
    lines = [line for events in talks for line in log(events)]
    counts = [adopt([*trimmed, *order]).conversations for order in (lines, lines[::-1])]
    assert counts[0] == counts[1]


def test_a_call_of_one_random_id_joins_what_a_summary_parts() -> None:
    """logs: A conversation is one, whole, trimmed or compacted"""
    called = [model(None, ("call_Xy7aB9Qk", "get_weather", {"city": "Ulm"})), result("call_Xy7aB9Qk", "1 C")]
    whole = [user("Ulm?"), *called, model(None, ("c2", "get_weather", {"city": "Bern"}))]
    compacted = [user("The user asked for the weather of Ulm."), *called, model("It is 1 C.")]
    assert adopt([log(whole)[-1], log(compacted)[-1]]).conversations == 1


def test_an_answer_to_instructions_alone_is_of_no_conversation_with_a_user() -> None:
    """logs: Conversations that begin alike part where they differ"""
    lines = [*log([model("One.")], system="Say a number."), *log(said("Hi.", "Hello."))]
    adopted = adopt(lines)
    assert len(names_of(adopted)) == adopted.conversations == 2


def greeted(adopted: Adopted) -> set[str]:
    """The conversations that have the greeting among their rows."""
    return {row.conversation for row in adopted.silences if row.question == "Hi."}


def test_each_conversation_has_the_greeting_that_all_begin_with() -> None:
    """logs: Conversations that begin alike part where they differ"""
    talks = [[*said("Hi.", "Hello."), *ask(city)] for city in ("Lima", "Oslo", "Bonn", "Graz")]
    adopted = adopt([line for events in talks for line in log(events)])
    assert greeted(adopted) == names_of(adopted)
    assert adopted.conversations == 4


@pytest.mark.parametrize("city", ["Lima", "Oslo", "Bonn", "Graz"])
def test_questions_that_were_asked_again_leave_others_their_greeting(city: str) -> None:
    """logs: Conversations that begin alike part where they differ"""
    shared = [*said("Hi.", "Hello."), *turns(1, "Ulm")]
    again = [line for word in CITIES for line in log([*shared, *said(f"And in {word}?", "No.")])[-1:]]
    adopted = adopt([*log(shared), *log([*said("Hi.", "Hello."), *ask(city)]), *again])
    assert greeted(adopted) == names_of(adopted)
    assert adopted.conversations == 2


def test_an_answer_that_nobody_continued_where_others_did_is_a_conversation_of_its_own() -> None:
    """logs: Conversations that begin alike part where they differ"""
    talks = [said("Hi.", word, "And?", "No.") for word in ("Hello.", "Good day.")]
    lines = [line for events in talks for line in log(events)]
    adopted = adopt([*lines, *log(said("Hi.", "What?"))])
    assert len(names_of(adopted)) == adopted.conversations == 3


def test_which_answer_that_nobody_repeats_a_conversation_has_is_no_matter_of_order() -> None:
    """logs: No conversation is in both parts"""
    talks = [said("Hi.", "Hello.", f"{city}?", "No.") for city in ("Lima", "Oslo")]
    continued = [line for events in talks for line in log(events)[1:]]
    calls = [("c1", "get_weather", {"city": city}) for city in ("Bonn", "Graz")]
    lost = [line for call in calls for line in log([user("Hi."), model(None, call)])]
    rows = [
        sorted((row.conversation, str(row.calls)) for row in adopt([*continued, *lines]).rows)
        for lines in (lost, lost[::-1])
    ]
    assert len(dict(rows[0])) == 2
    assert rows[0] == rows[1]


def test_of_two_names_of_one_conversation_the_first_in_the_alphabet_stays() -> None:
    """logs: No conversation is in both parts"""
    lines = [line for name in ("b", "a", "c") for line in log(turns(1, "Ulm"), conversation=name)]
    assert names_of(adopt(lines)) == names_of(adopt(lines[::-1])) == {"a"}


def test_names_of_the_log() -> None:
    """logs: No conversation is in both parts"""
    lines = [
        line
        for number in range(4)
        for city in ("Lima", "Oslo", "Bonn")
        for line in log(asks(f"{city} {number}?", "get_weather", {"city": city}), conversation=city)
    ]
    adopted = adopt(lines)
    assert names_of(adopted) == {"Lima", "Oslo", "Bonn"}
    assert len(adopted.rows) == 12


def test_an_answer_that_nobody_repeats() -> None:
    """logs: A conversation is one, whole, trimmed or compacted"""
    first = log([user("Weather?"), model(None, ("c9", "get_weather", {"city": "lost"}))])
    rest = log(asks("Weather?", "get_weather", {"city": "Oslo"}))
    assert len(names_of(adopt([*first, *rest]))) == 1


TALKS = [line for tag in ("Ulm", "Bern", "Gent", "Metz", "Brno") for line in log(turns(3, tag), [WEATHER])]


@settings(deadline=None, max_examples=share(10))
@given(seed=st.integers(0, 10_000))
def test_the_order_of_lines(seed: int) -> None:
    """logs: No conversation is in both parts"""
    lines = [*TALKS]
    random.Random(seed).shuffle(lines)  # noqa: S311  (no secret)
    first, other = adopt(TALKS), adopt(lines)
    for part in ("train", "heldout"):
        rows, other_rows = getattr(first, part), getattr(other, part)
        assert sorted(map(str, map(dict, rows))) == sorted(map(str, map(dict, other_rows)))
    assert len({row.conversation for row in first.heldout}) == 1


def test_the_split() -> None:
    """logs: Twins are held out together"""
    twins = [*log(turns(2, "Ulm")), *log(turns(2, "Ulm", counts=True))]
    others = [line for tag in ("Bern", "Gent", "Metz") for line in log(turns(2, tag))]
    for seed in range(6):
        adopted = adopt([*twins, *others], seed=seed)
        questions = [
            {row.question.split(":")[0] for row in part} for part in (adopted.train, adopted.heldout)
        ]
        assert not questions[0] & questions[1]
        assert all(questions)
    assert len({frozenset(row.conversation for row in adopt(TALKS, seed=n).heldout) for n in range(9)}) > 1
