"""Asking again after bad calls, over real HTTP: what each further request says, and what comes out of it."""

import json
from typing import Any, NamedTuple

import dspy
import pytest
from sending import history, rows, send
from support import ADAPTERS, ENGINES, May, Must, Turns, get_weather, lm_of

import sigadapt
from sigadapt import ToolCallParseError, ToolCalls, ToolResults
from sigadapt.testing import Answer, Call, LoopbackProvider, Received

MODES = ("sync", "async")
# Every wire by every engine that speaks it, and whether a failed result has a flag of its own there.
ROUTES = [
    ("openai", "auto", False),
    ("openai", "litellm", False),
    ("responses", "auto", False),
    ("responses", "litellm", False),
    ("anthropic", "auto", True),
    ("anthropic", "litellm", False),
    ("gemini", "auto", True),
    ("gemini", "litellm", True),
    ("ollama", "litellm", False),
]


class Theirs(dspy.Signature):
    """Answer with DSPy's own tool types."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


def weather(city: Any, **more: Any) -> Call:
    return Call("get_weather", {"city": city, **more})


PARIS, OSLO, ROME = weather("Paris"), weather("Oslo"), weather("Rome")
WRONG, BROKEN = weather(42), Call("get_weather", '{"city":')


async def ask(
    provider: LoopbackProvider,
    signature: Any = Must,
    *,
    route: tuple[str, str] = ("openai", "auto"),
    mode: str = "sync",
    adapter: Any = sigadapt.ChatAdapter,
    lm: Any = None,
    config: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    wire, engine = route
    lm = lm or lm_of(provider, wire, engine)
    adapter = adapter(tool_calling="native", **{"on_invalid": "reask", **options})
    tools = [dspy.Tool(get_weather)] if signature is Theirs else [get_weather]
    inputs: dict[str, Any] = {"question": "weather?", "tools": tools, "config": config or {}}
    with dspy.context(lm=lm, adapter=adapter, track_usage=True):
        predict = dspy.Predict(signature)
        return await predict.acall(**inputs) if mode == "async" else predict(**inputs)


def arguments(calls: Any) -> list[Any]:
    return [call.args for call in calls]


class Result(NamedTuple):
    id: str | None
    text: str
    flagged: bool


class Turn(NamedTuple):
    """What a request says after the question: the model's text, its calls, and a result a call."""

    text: str
    calls: list[tuple[str | None, str, Any]]
    results: list[Result]


def turn(request: Received, first: Received) -> Turn:
    """The one turn that a request adds to the first one, which a provider takes."""
    before, after = rows(first.body), rows(request.body)
    said = dict.fromkeys(("messages", "input", "contents"))
    assert {**request.body, **said} == {**first.body, **said}
    assert after[: len(before)] == before
    return READ[request.wire](*after[len(before) :])


def chat_turn(said: Any, *results: Any) -> Turn:
    calls = [(call.get("id"), call["function"]) for call in said["tool_calls"]]
    made = [(made, each["name"], decoded(each["arguments"])) for made, each in calls]
    return Turn(
        said["content"], made, [Result(row["tool_call_id"], row["content"], flagged=False) for row in results]
    )


def responses_turn(said: Any, *items: Any) -> Turn:
    made = [(item["call_id"], item["name"], decoded(item["arguments"])) for item in items if "name" in item]
    results = [Result(item["call_id"], item["output"], flagged=False) for item in items if "name" not in item]
    return Turn(said["content"][0]["text"], made, results)


def anthropic_turn(said: Any, answered: Any) -> Turn:
    text, *uses = said["content"]
    results = [
        (block["tool_use_id"], block["content"], block.get("is_error") is True)
        for block in answered["content"]
    ]
    made = [(use["id"], use["name"], use["input"]) for use in uses]
    return Turn(text["text"], made, [Result(*result) for result in results])


def gemini_turn(said: Any, answered: Any) -> Turn:
    text, *parts = said["parts"]
    calls = [part.get("functionCall") or part["function_call"] for part in parts]
    gave = [part.get("functionResponse") or part["function_response"] for part in answered["parts"]]
    told = [(each, next(iter(each["response"].values()))) for each in gave]
    results = [Result(each.get("id"), text, "error" in each["response"]) for each, text in told]
    made = [(call.get("id"), call["name"], call["args"]) for call in calls]
    return Turn(text["text"], made, results)


def decoded(sent: Any) -> Any:
    return json.loads(sent) if isinstance(sent, str) else sent


READ: dict[str, Any] = {
    "openai": chat_turn,
    "responses": responses_turn,
    "anthropic": anthropic_turn,
    "gemini": gemini_turn,
}
READ["ollama"] = chat_turn


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("wire", "engine", "flags"), ROUTES)
async def test_a_reask_goes_on_with_the_conversation(wire: str, engine: str, flags: bool, mode: str) -> None:
    """tool-call-outputs: A reask is one conversation.

    tool-call-outputs: A failed result says what is wrong.
    tool-call-outputs: Good calls are kept and not asked for again.
    """
    answers = [Answer(text="Let me look.", calls=[PARIS, WRONG, OSLO]), Answer(calls=[ROME])]
    with LoopbackProvider(answers) as provider:
        out = await ask(provider, route=(wire, engine), mode=mode)
    first, second = provider.received
    said, calls, results = turn(second, first)
    assert said == "Let me look."
    assert [(name, args) for _, name, args in calls] == [
        ("get_weather", {"city": city}) for city in ("Paris", 42, "Oslo")
    ]
    assert [result.id for result in results] == [call_id for call_id, _, _ in calls] or wire == "ollama"
    assert [result.flagged for result in results] == [False, flags, False]
    assert [result.text.startswith("ERROR: ") for result in results] == [False, not flags, False]
    for part in ("schema_mismatch", "/city", '42 is not of type "string"', "You sent: "):
        assert part in results[1].text
    assert results[0].text == results[2].text == "This call is accepted. Do not repeat it."
    assert arguments(out.calls) == [{"city": "Paris"}, {"city": "Oslo"}, {"city": "Rome"}]
    assert out.calls.invalid == ()


@pytest.mark.parametrize("wire", ["openai", "responses"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("not json", "invalid_json"),
        ('{"city":', "invalid_json"),
        ("{'city': 'Paris'}", "invalid_json"),
        ("[1,2]", "not_an_object"),
        ('{"city":"Paris","city":"Rome"}', "duplicate_key"),
    ],
)
async def test_what_cannot_be_replayed_is_quoted(wire: str, engine: str, sent: str, code: str) -> None:
    """tool-call-outputs: Undecodable arguments go back as none and are quoted."""
    answers = [Answer(text="Hm.", calls=[PARIS, Call("get_weather", sent)]), Answer(calls=[ROME])]
    with LoopbackProvider(answers) as provider:
        out = await ask(provider, route=(wire, engine))
    _, calls, (good, bad) = turn(*reversed(provider.received))
    assert [args for _, _, args in calls] == [{"city": "Paris"}, {}]
    assert bad.text.startswith(f"ERROR: {code}: ")
    assert bad.text.endswith(f"You sent: {sent}")
    assert not good.text.startswith("ERROR: ")
    assert arguments(out.calls) == [{"city": "Paris"}, {"city": "Rome"}]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("reasks", [0, 1, 2])
async def test_it_asks_again_at_most_so_often_and_then_raises(engine: str, mode: str, reasks: int) -> None:
    """tool-call-outputs: A reask is made at most as often as allowed.

    tool-call-outputs: What is bad after the last reask raises.
    """
    with LoopbackProvider(lambda _: Answer(text="Hm.", calls=[PARIS, BROKEN])) as provider:
        lm: Any = dspy.LM(**provider.lm_options("openai", engine=engine))
        with pytest.raises(ToolCallParseError) as caught:
            await ask(provider, lm=lm, mode=mode, max_reasks=reasks)
    assert len(provider.received) == len(lm.history) == 1 + reasks
    error = caught.value
    assert isinstance(error, dspy.utils.exceptions.AdapterParseError)
    assert (error.code, error.field, error.tool) == ("invalid_json", "calls", "get_weather")
    assert error.choice.text == "Hm."
    calls = error.choice.tool_calls
    assert calls is not None
    assert arguments(calls) == [{"city": "Paris"}], "which each answer made again"
    assert [call.arguments for call in calls.invalid] == ['{"city":']


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("engine", ENGINES)
async def test_each_reask_goes_on_with_all_before_it(engine: str, mode: str) -> None:
    """tool-call-outputs: A reask is one conversation.

    tool-call-outputs: Every request of a reask is recorded.
    """
    answers = [
        Answer(text="One.", calls=[PARIS, WRONG], usage=(10, 1)),
        Answer(text="Two.", calls=[BROKEN, OSLO], usage=(20, 2)),
        Answer(text="Three.", calls=[ROME], usage=(40, 4)),
    ]
    with LoopbackProvider(answers) as provider:
        lm = dspy.LM(**provider.lm_options("openai", engine=engine))
        out = await ask(provider, lm=lm, mode=mode, max_reasks=2)
    first, second, third = (request.body["messages"] for request in provider.received)
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert [row["role"] for row in third[len(second) :]] == ["assistant", "tool", "tool"]
    assert [row["content"] for row in third if row["role"] == "assistant"] == ["One.", "Two."]
    assert arguments(out.calls) == [{"city": "Paris"}, {"city": "Oslo"}, {"city": "Rome"}]
    assert [call.turn.text for call in out.calls] == ["One.", "Two.", "Three."]
    entries: list[Any] = lm.history
    assert [entry["outputs"][0]["text"] for entry in entries] == ["One.", "Two.", "Three."]
    usage = out.get_lm_usage()[lm.model]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (70, 7)


def unique(calls: ToolCalls) -> bool:
    every = [*calls, *calls.invalid]
    by_place = sorted(every, key=lambda call: call.index)
    return (
        len({call.id for call in every}) == len(every) == len({call.index for call in every})
        and [call for call in by_place if call in list(calls)] == list(calls)
        and calls.in_order() == by_place
    )


async def test_positions_are_unique_in_the_error_too() -> None:
    """tool-call-outputs: Ids and positions stay unique across reasks."""
    answers = [Answer(calls=[BROKEN, PARIS]), Answer(calls=[OSLO, WRONG]), Answer(calls=[WRONG, ROME])]
    with LoopbackProvider(answers) as provider, pytest.raises(ToolCallParseError) as caught:
        await ask(provider, max_reasks=2)
    calls = caught.value.choice.tool_calls
    assert calls is not None
    assert arguments(calls) == [{"city": "Paris"}, {"city": "Oslo"}, {"city": "Rome"}]
    assert len(calls.invalid) == 1
    assert unique(calls)


async def test_candidates_that_went_wrong_alike_are_told_apart_by_the_cache() -> None:
    """tool-call-outputs: Candidates are asked again each by itself."""
    cities = (f"City {n}" for n in range(100))

    def policy(received: Received) -> Answer:
        again = len(received.body["messages"]) > 2
        return Answer(text="Hm.", calls=[weather(next(cities)) if again else WRONG])

    with LoopbackProvider(policy) as provider:
        lm = dspy.LM(**provider.lm_options("openai", cache=True, temperature=0.77))
        outs = [await ask(provider, lm=lm, config={"n": 2}) for _ in range(2)]
    assert [[calls[0].args["city"] for calls in out.completions.calls] for out in outs] == [
        ["City 0", "City 1"]
    ] * 2
    assert len(provider.received) == 4, "what was asked before is in the cache"


@pytest.mark.parametrize(("wire", "engine", "_"), ROUTES)
async def test_a_call_made_again_comes_out_once_and_goes_back(wire: str, engine: str, _: bool) -> None:
    """tool-call-outputs: A call made again after a reask comes out once."""
    answers = [
        Answer(text="One.", calls=[PARIS, WRONG]),
        Answer(text="Two.", calls=[ROME, PARIS, OSLO]),
        Answer(text="[[ ## answer ## ]]\nDone."),
    ]
    with LoopbackProvider(answers) as provider:
        out = await ask(provider, Turns, route=(wire, engine))
        assert arguments(out.calls) == [{"city": city} for city in ("Paris", "Rome", "Oslo")]
        assert [call.altered for call in out.calls] == [("repeated",), (), ()]
        assert unique(out.calls)
        saved = ToolCalls.model_validate_json(out.calls.model_dump_json())
        assert saved == out.calls
        results = ToolResults.of(saved, ["18 C", "25 C", "3 C"])
        engines = {} if wire == "ollama" else {"engine": engine}
        lm = dspy.LM(**provider.lm_options(wire, **engines))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
            dspy.Predict(Turns)(question="weather?", tools=[get_weather], results=results)
    body = json.dumps(provider.received[2].body)
    places = [body.index(each) for each in ("One.", "Two.")]
    first, second = body[places[0] : places[1]], body[places[1] :]
    assert [part.count(city) for part in (first, second) for city in ("Paris", "Rome", "Oslo")] == [
        1,
        0,
        0,
        1,
        1,
        1,
    ]
    assert second.index("Rome") < second.index("Paris") < second.index("Oslo"), "as the model sent them"
    assert (body.count("18 C"), body.count("25 C"), body.count("3 C")) == (2, 1, 1), "a result for each call"


async def test_a_turn_that_only_repeats_goes_back_too() -> None:
    """tool-call-outputs: A call made again after a reask comes out once."""
    answers = [Answer(text="One.", calls=[PARIS, WRONG]), Answer(text="Two.", calls=[PARIS])]
    with LoopbackProvider([*answers, Answer(text="[[ ## answer ## ]]\nDone.")]) as provider:
        out = await ask(provider, Turns)
        assert arguments(out.calls) == [{"city": "Paris"}]
        assert out.calls.text == "Two."
        event = {"question": "weather?", "calls": out.calls, "results": ToolResults.of(out.calls, ["18 C"])}
    sent = send(history=history(event, saved=True)).body["messages"]
    assert [row.get("content") for row in sent if row["role"] in ("assistant", "tool")] == [
        "One.",
        "18 C",
        "Two.",
        "18 C",
    ]


async def test_marked_text_fills_its_fields_after_a_reask() -> None:
    """tool-call-outputs: A reask answered in text keeps the text."""
    text = "[[ ## answer ## ]]\nSunny.\n\n[[ ## completed ## ]]"
    with LoopbackProvider([Answer(calls=[PARIS, WRONG]), Answer(text=text)]) as provider:
        out = await ask(provider, May)
    assert out.answer == "Sunny."
    assert arguments(out.calls) == [{"city": "Paris"}]


@pytest.mark.parametrize("signature", [Must, May, Theirs])
@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_every_adapter_and_field_type_asks_again(adapter: Any, signature: Any) -> None:
    """tool-call-outputs: A reask is one conversation."""
    answers = [Answer(text="Hm.", calls=[PARIS, BROKEN]), Answer(calls=[ROME])]
    with LoopbackProvider(answers) as provider:
        out = await ask(provider, signature, adapter=adapter)
    assert isinstance(out.calls, dspy.ToolCalls)
    assert arguments(out.calls.tool_calls) == [{"city": "Paris"}, {"city": "Rome"}]
    assert len(turn(*reversed(provider.received)).results) == 2


async def test_nothing_is_salvaged_unless_it_is_asked_for() -> None:
    """asked-for-leniency: Nothing is salvaged unless it is asked for."""
    calls = [Call("get_weather", "{'city': 'Paris'}"), weather("Rome", days="3")]
    with LoopbackProvider([Answer(calls=calls)]) as provider:
        out = await ask(provider, on_invalid="keep")
    assert [call.code for call in out.calls.invalid] == ["invalid_json", "schema_mismatch"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_was_salvaged_is_not_asked_for_again(engine: str) -> None:
    """asked-for-leniency: A salvaged call is checked like any other."""
    calls = [Call("get_weather", "{'city': 'Paris'}"), weather("Rome", days="3")]
    with LoopbackProvider([Answer(calls=calls)]) as provider:
        out = await ask(provider, route=("openai", engine), repair=True, unwrap=True)
    assert [(call.args, call.altered) for call in out.calls] == [
        ({"city": "Paris"}, ("repaired",)),
        ({"city": "Rome", "days": 3}, ("unwrapped",)),
    ]
    assert [call.arguments for call in out.calls] == [call.text for call in calls]
    assert len(provider.received) == 1


async def test_what_was_salvaged_goes_back_as_it_was_accepted() -> None:
    """asked-for-leniency: A salvaged call goes back as it was accepted."""
    salvaged = [Call("get_weather", "{'city': 'Paris'}"), Call("get_weather", json.dumps('{"city":"Oslo"}'))]
    with LoopbackProvider([Answer(text="Hm.", calls=[*salvaged, WRONG]), Answer(calls=[ROME])]) as provider:
        await ask(provider, repair=True, unwrap=True)
    _, calls, results = turn(*reversed(provider.received))
    assert [args for _, _, args in calls] == [{"city": "Paris"}, {"city": "Oslo"}, {"city": 42}]
    assert [result.text.startswith("ERROR: ") for result in results] == [False, False, True]
