"""Calls compared with expected ones, as DSPy metrics and beside the public benchmark's verdicts."""

import datetime as dt
import enum
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast

import dspy
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import CORPUS, May, get_weather, serving
from tables import table

from sigadapt import ToolCalls, ToolDecls, metrics
from sigadapt.errors import InvalidOption
from sigadapt.metrics import F1, ExactMatch, SubsetMatch, compare
from sigadapt.testing import Answer, Call


class Place(pydantic.BaseModel):
    city: str
    country: str = "FR"


def plan(places: list[Place], days: int = 3, note: Annotated[str | None, "free"] = None) -> None:
    """Plan."""


def call(name: str = "f", /, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args}


@pytest.mark.parametrize(("expected", "made", "same"), table(__file__, "COMPARED"))
def test_arguments_are_compared_as_json(expected: Any, made: Any, same: bool):
    """evaluation: Arguments are compared as JSON."""
    assert compare([expected], [made]).exact is same
    assert compare([made], [expected]).exact is same


class Colour(enum.Enum):
    RED = "red"


def book(place: Place, day: dt.date, colours: set[Colour], sizes: tuple[int, int] = (1, 2)) -> None:
    """Book."""


def written_as_a_call(name: str, /, **args: Any) -> Any:
    return ToolCalls([call(name, **args)])[0]


@pytest.mark.parametrize("written", [call, written_as_a_call])
def test_expected_python_values_are_compared_as_json(written: Any):
    """evaluation: Expected Python values are compared as JSON."""
    day = dt.date(2020, 1, 1)
    args: dict[str, Any] = {
        "place": Place(city="Paris"),
        "day": day,
        "colours": {Colour.RED},
        "sizes": (1, 2),
    }
    sent = {"place": {"city": "Paris"}, "day": "2020-01-01", "colours": ["red"]}
    gold = dspy.Example(calls=[written("book", **args)])
    assert F1(tools=[book])(gold, dspy.Prediction(calls=ToolCalls([call("book", **sent)]))) == 1.0
    wrong = compare(gold.calls, [call("book", **{**sent, "day": "2020-01-02"})], [book])
    assert wrong.feedback == 'In book, /day is "2020-01-02", expected "2020-01-01".'
    assert args["day"] is day, "nothing is changed in place"


@pytest.mark.parametrize("value", [object(), float("nan"), [lambda: 1]])
def test_an_expected_value_without_a_json_form_is_refused(value: Any):
    """evaluation: Expected Python values are compared as JSON."""
    with pytest.raises(InvalidOption, match="the argument 'a' of f is a") as caught:
        compare([call(a=value)], [])
    assert caught.value.field == "expected"


@pytest.mark.parametrize(("expected", "made", "same"), table(__file__, "DEFAULTS"))
def test_a_default_that_is_left_out_is_the_default(expected: Any, made: Any, same: bool):
    """evaluation: A default that is left out is the default."""
    assert compare([expected], [made], [plan]).exact is same
    assert not compare([expected], [made]).exact


def test_each_expected_call_matches_once():
    """evaluation: Each expected call matches once."""
    one, two = call(a=1), call(a=2)
    twice = compare([one, one], [one, two])
    assert (twice.matched, len(twice.missing), len(twice.unexpected)) == (1, 1, 1)
    more = compare([one], [one, one])
    assert (more.exact, more.subset, more.precision, more.recall) == (False, True, 0.5, 1.0)
    assert more.f1 == pytest.approx(2 / 3)
    nothing = compare(None, [])
    assert (nothing.exact, nothing.f1, nothing.precision, nothing.recall) == (True, 1.0, 1.0, 1.0)
    assert compare([one], None).f1 == compare(None, [one]).f1 == 0.0


def test_order_and_ids_count_where_asked_for():
    """evaluation: Order and ids count where asked for."""
    one, two, three = (call(a=n) for n in range(3))
    assert compare([one, two], [two, one]).exact
    assert compare([one, two, three], [three, one, two], ordered=True).matched == 2
    assert compare([one, three], [one, two, three], ordered=True).subset
    mine, other = {**one, "id": "x"}, {**one, "id": "y"}
    assert compare([mine], [other]).exact
    assert not compare([mine], [other], ids=True).exact
    assert compare([mine], [mine], ids=True).exact


def test_a_bad_call_matches_nothing():
    """evaluation: A bad call matches nothing."""
    made = ToolCalls([call("get_weather", city="Paris"), call("get_weather", town="Rome")])
    made = made.validated(ToolDecls(get_weather))
    expected = [call("get_weather", city="Paris"), call("get_weather", town="Rome")]
    for calls in (made, made.handed_on()):
        found = compare(expected, calls)
        assert (found.matched, len(found.missing), len(found.unexpected)) == (1, 1, 1)
        assert "is invalid" in found.feedback


def at(when: dt.datetime | None = None, others: list[dt.datetime] | None = None) -> None:
    """A tool of times."""


@pytest.mark.parametrize(("one", "other", "same"), table(__file__, "TIMES"))
def test_times_with_offsets(one: str, other: str, same: bool):
    """evaluation: Times compare as times."""
    for first, second in (
        (call("at", when=one), call("at", when=other)),
        (call("at", others=[one]), call("at", others=[other])),
    ):
        assert compare([first], [second], [at]).exact is same
        assert compare([first], [second]).exact is (one == other)


@pytest.mark.parametrize("gold", table(__file__, "FAULTY"))
def test_a_faulty_expected_call(gold: Any):
    """evaluation: A faulty expected call is an error of the data."""
    with pytest.raises(InvalidOption) as caught:
        ExactMatch(tools=[at])(dspy.Example(calls=[gold]), dspy.Prediction(calls=[gold]))
    assert caught.value.field == "expected"


@pytest.mark.parametrize("ordered", [False, True])
def test_thousands_of_calls(ordered: bool, monkeypatch: pytest.MonkeyPatch):
    """evaluation: The work grows with the number of calls."""
    # Each call is written in a comparable form once; nothing else looks into arguments.
    forms: list[Any] = []
    comparable_form = metrics._hashable  # pyright: ignore[reportPrivateUsage]

    def counted(value: Any) -> Any:
        forms.append(value)
        return comparable_form(value)

    monkeypatch.setattr(metrics, "_hashable", counted)
    first, second = ([call("f", a=n % 7, b=n) for n in range(start, start + 2_000)] for start in (0, 1_000))
    found = compare(first, second, ordered=ordered)
    assert (found.matched, len(found.missing), len(found.unexpected)) == (1_000, 1_000, 1_000)
    assert len(forms) <= 3 * 4_000


@pytest.mark.parametrize("value", ["add(1, 2)", 1, [1], {"a": 1}])
def test_what_holds_no_calls_is_refused(value: Any):
    with pytest.raises(InvalidOption, match="holds no calls"):
        compare(value, [])
    for metric in (ExactMatch(), SubsetMatch(), F1()):
        with pytest.raises(InvalidOption, match="no field 'calls'") as caught:
            metric(dspy.Example(tool_calls=[]), dspy.Prediction(calls=None))
        assert f"{type(metric).__name__}(field=...)" in (caught.value.fix or "")


jsons = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 0.5, "", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
some_calls = st.lists(st.builds(call, st.sampled_from("fg"), a=jsons), max_size=4)


@given(some_calls, some_calls, st.booleans())
def test_the_measures_agree(expected: list[Any], made: list[Any], ordered: bool):
    found = compare(expected, made, ordered=ordered)
    back = compare(made, expected, ordered=ordered)
    assert found.matched == back.matched
    assert found.exact == back.exact == (found.f1 == 1.0) == (found.subset and back.subset)
    assert (found.precision, found.recall) == (back.recall, back.precision)
    assert found.matched <= compare(expected, made).matched
    assert compare(expected, expected, ordered=ordered).exact
    assert (found.feedback == "All calls are as expected.") == found.exact


GOLD = [call("get_weather", city="Paris"), call("get_weather", city="Rome", days=2)]


def weather(*places: dict[str, Any]) -> Answer:
    return Answer(calls=[Call("get_weather", place) for place in places])


PARIS, ROME, OSLO = {"city": "Paris", "days": 3}, {"days": 2, "city": "Rome"}, {"city": "Oslo", "days": 1}
ANSWERS = [
    weather(ROME, PARIS),
    weather({"city": "Paris"}, {"city": "Oslo"}),
    weather(PARIS, ROME, OSLO),
    Answer(text="I cannot."),
]


@pytest.mark.parametrize(
    ("metric", "scores"),
    [(ExactMatch(), [1, 0, 0, 0]), (SubsetMatch(), [1, 0, 1, 0]), (F1(), [1.0, 0.5, 0.8, 0.0])],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize(
    "gold", [GOLD, ToolCalls(GOLD), dspy.ToolCalls.from_dict_list(GOLD)], ids=["dicts", "ours", "dspy"]
)
def test_an_evaluation(metric: Any, scores: list[float], gold: Any):
    """evaluation: An evaluation scores exact, subset and F1 matches."""
    devset = [
        dspy.Example(question=str(n), tools=[get_weather], calls=gold).with_inputs("question", "tools")
        for n in range(len(ANSWERS))
    ]

    def reply(received: Any) -> Answer:
        return ANSWERS[int(received.body["messages"][-1]["content"].split("\n")[1])]

    with serving(reply):
        result = dspy.Evaluate(devset=devset, metric=metric, num_threads=2, display_progress=False)(
            dspy.Predict(May)
        )
    rows_of = cast("Any", result).results
    assert [score for _, _, score in rows_of] == pytest.approx(scores)
    assert result.score == pytest.approx(100 * sum(scores) / len(scores), abs=0.01)


@pytest.mark.parametrize(
    "metric", [ExactMatch(), SubsetMatch(), F1()], ids=lambda value: type(value).__name__
)
def test_what_optimizers_ask_for(metric: Any):
    """evaluation: An optimizer that collects examples gets a verdict.

    evaluation: GEPA gets a feedback.
    """
    gold = dspy.Example(question="?", calls=GOLD)
    half, whole = dspy.Prediction(calls=ToolCalls(GOLD[:1])), dspy.Prediction(calls=ToolCalls(GOLD))
    assert metric(gold, half, []) is False
    assert metric(gold, whole, []) is True
    told = metric(gold, half, None, "predict", [])
    assert told.score == float(metric(gold, half))
    assert told.feedback == "The call get_weather(city='Rome', days=2) is missing."
    assert dspy.GEPA(metric=metric, auto="light", reflection_lm=dspy.LM("openai/gpt-4o-mini"))


# The benchmark: the Berkeley leaderboard's answers, judged by its rules, which say of each parameter what
# values are right and, by an empty text, whether it may be left out.

PAGES = ["simple_python", "multiple", "parallel", "live_simple"]


def rows(page: str) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The rows whose answers are plain values, of which there are not too many."""
    folder = Path(str(CORPUS)) / "bfcl"
    truths = {
        row["id"]: row["ground_truth"]
        for row in map(
            json.loads, (folder / "possible_answer" / f"BFCL_v4_{page}.json").read_text().splitlines()
        )
    }
    for row in map(json.loads, (folder / f"BFCL_v4_{page}.json").read_text().splitlines()):
        truth = truths.get(row["id"])
        counts = [len(list(itertools.islice(answers(each), 65))) for each in truth or ()]
        if truth and len(counts) <= 5 and 0 < min(counts) <= max(counts) <= 64:
            yield row, truth


def answers(truth: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every call that the benchmark takes for one of its possible answers."""
    ((name, parameters),) = truth.items()
    for values in itertools.product(*parameters.values()):
        yield call(name, **{key: value for key, value in zip(parameters, values, strict=True) if value != ""})


def is_right(made: dict[str, Any], truth: dict[str, Any]) -> bool:
    """The benchmark's rule: every argument is possible, and what is left out may be."""
    ((name, parameters),) = truth.items()
    args = made["args"]
    return (
        made["name"] == name
        and all(key in parameters and args[key] in parameters[key] for key in args)
        and all("" in parameters[key] for key in parameters if key not in args)
    )


def variants(made: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """A right answer in other words, and answers that may be wrong."""
    first, *rest = made
    args = first["args"]
    yield made
    yield made[::-1]
    yield [call(first["name"], **dict(reversed(args.items()))), *rest]
    yield rest
    yield [first, first, *rest]
    yield [{**first, "name": "another"}, *rest]
    yield [call(first["name"], **args, another=1), *rest]
    for key, value in args.items():
        yield [call(first["name"], **{k: v for k, v in args.items() if k != key}), *rest]
        yield [call(first["name"], **{**args, key: [value, "x"]}), *rest]
        if type(value) is int:
            yield [call(first["name"], **{**args, key: value + 1_000_003}), *rest]
            yield [call(first["name"], **{**args, key: float(value)}), *rest]


@pytest.mark.skipif(CORPUS is None, reason="SIGADAPT_CORPUS names no corpus")
@pytest.mark.parametrize("page", PAGES)
def test_the_verdicts_are_the_benchmarks(page: str):
    """evaluation: The verdicts are the benchmark's."""
    judged = [0, 0]
    for _, truth in rows(page):
        possible = [list(answers(each)) for each in truth]
        for made in variants([each[-1] for each in possible]):
            if not all(
                type(value) in (str, int, float, bool, list)
                for each in made
                for value in each["args"].values()
            ):
                continue
            orders = itertools.permutations(made)
            right = any(len(order) == len(truth) and all(map(is_right, order, truth)) for order in orders)
            expected = [
                next((each for each in options if is_right(each, one) and each in made), options[0])
                for options, one in zip(possible, truth, strict=True)
            ]
            ours = compare(expected, made).exact
            assert ours is right, (truth, made)
            judged[right] += 1
    assert min(judged) > 100


def test_credit() -> None:
    """evaluation: Credit grows with each right argument."""
    gold = dspy.Example(calls=[{"name": "find", "args": {"city": "Reno, NV", "date": "2026-05-02"}}])

    def credit(*calls: Any) -> float:
        made = ToolCalls(list(calls)) if calls else None
        return float(metrics.Credit()(gold, dspy.Prediction(calls=made)))

    def find(**args: Any) -> dict[str, Any]:
        return {"name": "find", "args": args}

    right = {"city": "Reno, NV", "date": "2026-05-02"}
    worse = {"city": "Reno", "date": "May 2"}
    better = [find(**worse), find(**{**worse, "city": "Reno, NV"}), find(**right, kind="any"), find(**right)]
    grows = [credit(), *map(credit, better)]
    assert grows == sorted(set(grows))
    assert (grows[0], grows[-1], credit({"name": "other", "args": right})) == (0, 1, 0)
    assert credit(find(**right), find(city="x")) < 1
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "date": {"type": "integer"}}}
    typed = ToolCalls([find(**right)]).validated([{"name": "find", "parameters": schema}])
    assert len(typed.invalid) == 1
    for calls in (typed, typed.handed_on()):
        assert 0 < float(metrics.Credit()(gold, dspy.Prediction(calls=calls))) < 1
