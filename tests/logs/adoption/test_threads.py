"""Requests of one conversation are one, however they were logged."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

import random
from typing import Any

import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from logs.made_logs import WEATHER, asks, log, model, turns, user

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


def ask(city: str) -> list[Any]:
    """A turn of a server that counts the ids of its calls."""
    return asks(f"{city}?", "get_weather", {"city": city}, "1 C", "call_1")


SHARED = ask("Ulm")
ONE_TURN_IN_COMMON: dict[str, tuple[list[Any], list[Any], int]] = {
    "others around it": ([*ask("Bern"), *SHARED, *ask("Gent")], [*ask("Metz"), *SHARED, *ask("Brno")], 2),
    "another before it": ([*ask("Bern"), *SHARED], [*ask("Metz"), *SHARED], 2),
    "others before it": ([*ask("Bern"), *ask("Gent"), *SHARED], [*ask("Metz"), *ask("Brno"), *SHARED], 2),
    "one more before it": ([*ask("Bern"), *SHARED], [*ask("Bern"), *ask("Metz"), *SHARED], 2),
    "the same after it": ([*ask("Bern"), *SHARED, *ask("Gent")], [*ask("Metz"), *SHARED, *ask("Gent")], 2),
    "another after it": ([*SHARED, *ask("Bern")], [*ask("Metz"), *SHARED, *ask("Gent")], 2),
    "trimmed": ([*SHARED, *ask("Bern")], [*ask("Metz"), *SHARED, *ask("Bern")], 1),
    "trimmed earlier": ([*ask("Bern"), *SHARED], [*ask("Metz"), *ask("Bern"), *SHARED], 1),
}


@pytest.mark.parametrize("name", ONE_TURN_IN_COMMON)
@pytest.mark.parametrize("is_turned", [False, True])
def test_one_turn_in_common_joins_only_what_was_trimmed(name: str, is_turned: bool) -> None:
    """logs: A conversation is one, whole, trimmed or compacted"""
    first, second, count = ONE_TURN_IN_COMMON[name]
    talks = [second, first] if is_turned else [first, second]
    adopted = adopt([line for events in talks for line in log(events)])
    assert len(names_of(adopted)) == adopted.conversations == count


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
