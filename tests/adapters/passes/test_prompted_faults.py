"""Faulty calls in words: each has the outcome that the same fault has natively, but for `EXCEPTIONS`."""

import json
from functools import cache
from typing import Any, cast

import dspy
import pytest
from faults import FAULTS, Fault, get_weather, now
from support import ENGINES, May, Must, lm_of, place_or_id
from text_cases import WRITERS

import sigadapt
from sigadapt import ToolCallParseError, ToolCalls
from sigadapt.errors import MissingToolCalls
from sigadapt.testing import Answer, Call, LoopbackProvider

FORMS = list(WRITERS)


_JSON_OBJECT = ("hermes", "llama3-json", "mistral-json", "glm-4.5", "plain-json", "fenced-json")
"""Forms whose JSON object holds name and arguments. GLM's is Hermes' where a value has markup in it."""
_BRACE = "the brace behind the arguments closes them, and the object around them lacks its own"
_TEXT = "a string in an object with a name is OpenAI's way to write arguments, and is read as that"
_NAMES = "an object that only names something is an answer, not a call; the prompt asks for the arguments"
_MARKUP = "parameters are tags, so an unfinished call is quoted with its markup, and no parameter is {}"
_OPEN = "nothing closes the arguments, so what stands behind them is text, and stays text"

EXCEPTIONS: dict[tuple[str, str], tuple[str, str]] = {
    **{("an object left open", form): ("is good", _BRACE) for form in _JSON_OBJECT},
    **{("good, cut short, good", form): ("says otherwise", _BRACE) for form in _JSON_OBJECT},
    **{("encoded twice", form): ("is good", _TEXT) for form in _JSON_OBJECT},
    **{
        (fault, form): ("is text", _NAMES)
        for fault in ("no arguments, none needed", "nothing, where a parameter is required")
        for form in ("plain-json", "fenced-json")
    },
    **{
        (fault, "qwen3-coder-xml"): ("says otherwise", _MARKUP)
        for fault in (
            "no arguments, none needed",
            "cut off before the arguments",
            "nothing, where a parameter is required",
        )
    },
    ("text after the object", "mistral-args"): ("is good", _OPEN),
}
"""By fault and form: what comes out instead, and why that is right."""


def in_words(form: str, fault: Fault) -> str:
    """The calls in a form, with the arguments' text where the form writes its JSON."""
    marks = [{"mark": f"</parameter></arg_value>{number}"} for number in range(len(fault.calls))]
    said: str = WRITERS[form]([(name, mark) for (name, _), mark in zip(fault.calls, marks, strict=True)], {})
    for (_, arguments), mark in zip(fault.calls, marks, strict=True):
        before, found, after = said.partition(json.dumps(mark, separators=(",", ":")))
        assert found, f"{form} has no place for JSON"
        is_last = mark is marks[-1]
        if is_last and fault.is_cut:
            return before + arguments
        if not arguments and before.endswith(":"):  # nothing is said by leaving the member away
            before = before[: before.rindex(",")]
        said = before + arguments + after
    return said


def asked(
    answer: Any, *, signature: Any = Must, wire: str = "openai", engine: str = "auto", **how: Any
) -> Any:
    """What a program gets: its calls; or the error, with the calls in it and the text."""
    with LoopbackProvider([answer] * 3) as provider:
        lm = lm_of(provider, wire, engine, cache=False, num_retries=0)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(**how)):
            try:
                out: Any = dspy.Predict(signature)(question="weather?", tools=[get_weather, now])
            except MissingToolCalls as error:
                return ("missing", error.code, error.field, error.choice.finish_reason)
            except ToolCallParseError as error:
                reason = error.reason
                for call in (error.choice.tool_calls or ToolCalls()).in_order():
                    reason = reason.replace(call.id, place_or_id(call))
                said = (error.code, error.tool, error.path, reason, error.field)
                return (said, seen(error.choice.tool_calls), len(provider.received))
    return seen(out.calls), len(provider.received)


def seen(calls: Any) -> Any:
    """The calls, without the mark of those that were read from text, and space around their arguments."""
    good = [(place_or_id(call), call.name, call.args, call.arguments.strip(), call.index) for call in calls]
    bad = [
        (place_or_id(c), c.name, c.code, c.path, c.message, c.arguments.strip(), c.index)
        for c in calls.invalid
    ]
    return good, bad


@cache
def natively(name: str, **how: Any) -> Any:
    fault = FAULTS[name]
    calls = [Call(tool, arguments, id=f"call_{n}") for n, (tool, arguments) in enumerate(fault.calls, 1)]
    return asked(Answer(calls=calls, finish=fault.finish), tool_calling="native", **how)


def alike(outcome: Any, form: str) -> Any:
    """An outcome without what a form has of its own: Kimi's ids."""
    text = json.dumps(outcome, default=str)
    for number in range(3):
        for tool in ("get_weather", "now", "rm_rf"):
            text = text.replace(f"functions.{tool}:{number}", f"call_{number + 1}")
    return json.loads(text) if form == "kimi-k2" else json.loads(json.dumps(outcome))


JSON_FORMS = [form for form in FORMS if form != "pythonic"]
KEPT, RAISED = {"on_invalid": "keep"}, {"on_invalid": "raise"}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_its_code_natively(name: str) -> None:
    """response-choice: One bad call does not cost the good ones."""
    good, bad = natively(name, **KEPT)[0]
    codes = {call[-1]: None for call in good} | {call[-1]: call[2] for call in bad}
    assert [codes[place] for place in sorted(codes)] == FAULTS[name].codes


@pytest.mark.parametrize("form", JSON_FORMS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_words_has_the_outcome_that_it_has_natively(name: str, form: str) -> None:
    """prompted-calling: Faults have the codes of native calling."""
    text = in_words(form, FAULTS[name])
    answer = Answer(text=text, finish=FAULTS[name].finish)
    for policy in (KEPT, RAISED):
        native = natively(name, **policy)
        words = asked(answer, tool_calling="prompted", call_format=form, **policy)
        same = alike(words, form) == alike(native, form)
        assert same == ((name, form) not in EXCEPTIONS), (native, words)
        if not same:
            check_exception(EXCEPTIONS[name, form][0], native, words)


def check_exception(what: str, native: Any, words: Any) -> None:
    """An exception is never a call that was lost, and has the code of the native fault unless it is good."""
    if what == "is text":
        assert words[:2] == ("missing", "missing_tool_calls")
        return
    good, bad = words[-2]
    if what == "is good":
        assert [call[2] for call in good] == [{"city": "Paris"}]
        assert not bad
    else:
        assert [one[2:4] for one in bad] == [one[2:4] for one in native[-2][1]]
        assert [one[2] for one in good] == [one[2] for one in native[-2][0]]


def test_every_exception_is_of_a_fault_and_a_form() -> None:
    assert {fault for fault, _ in EXCEPTIONS} <= set(FAULTS)
    assert {form for _, form in EXCEPTIONS} <= set(FORMS)
    assert all(reason for _, reason in EXCEPTIONS.values())


PYTHON = {
    "a good call": 'get_weather(city="Paris")',
    "two good calls": 'get_weather(city="Paris"), get_weather(city="Rome")',
    "no arguments, none needed": "now()",
    "cut off inside a string": ...,
    "not JSON": "get_weather(not json)",
    "an array": "get_weather([1,2])",
    "a number": "get_weather(42)",
    "encoded twice": 'get_weather("{\\"city\\":\\"Paris\\"}")',
    "NaN": 'get_weather(city="Paris", days=NaN)',
    "a number too large": 'get_weather(city="Paris", days=1e999)',
    "a key twice": 'get_weather(city="Paris", city="Rome")',
    "a wrong type": "get_weather(city=42)",
    "two wrong types": 'get_weather(city=42, days="soon")',
    "a parameter that is not declared": 'get_weather(city="Paris", x=1)',
    "a parameter missing": "get_weather()",
    "a tool that nobody declared": "rm_rf()",
    "good, bad, good": 'get_weather(city="Paris"), get_weather(city=42), get_weather(city="Rome")',
    "good, not JSON, good": 'get_weather(city="Paris"), get_weather(not json), get_weather(city="Rome")',
    "good, cut short, good": 'get_weather(city="Paris"), get_weather(city=), get_weather(city="Rome")',
    "500 brackets": "get_weather(city=" + "[" * 500 + "]" * 500 + ")",
}
CUT = {
    "cut off inside a string": '[get_weather(city="Par',
    "cut off before the arguments": "[get_weather(",
    "cut off by a filter": '[get_weather(city="Par',
    "left open, finish reason stop": '[get_weather(city="Par',
    "a good call, and one cut off": '[get_weather(city="Paris"), get_weather(city="Ro',
    "100,000 brackets": "[get_weather(city=" + "[" * 100_000,
}
TAGS: dict[str, tuple[str, str]] = {  # in Qwen3-Coder's tags, and in GLM's pairs
    "a good call": ("city=Paris", ""),
    "a key twice": ("city=Paris city=Rome", ""),
    "a parameter that is not declared": ("city=Paris x=1", ""),
    "a parameter missing": ("", ""),
    "cut off inside a string": ("city=Par", "cut"),
    "cut off by a filter": ("city=Par", "cut"),
    "left open, finish reason stop": ("city=Par", "cut"),
}


def python_of(name: str) -> str:
    return CUT[name] if name in CUT else f"[{PYTHON[name]}]"


def tags_of(form: str, name: str) -> str:
    pairs, cut = TAGS[name]
    open_call, pair, close_call = (
        ("<tool_call>\n<function=get_weather>\n", "<parameter={}>\n{}", "</function>\n</tool_call>")
        if form == "qwen3-coder-xml"
        else ("<tool_call>get_weather\n", "<arg_key>{}</arg_key>\n<arg_value>{}", "</tool_call>")
    )
    end = "\n</parameter>\n" if form == "qwen3-coder-xml" else "</arg_value>\n"
    said = end.join(pair.format(*each.split("=")) for each in pairs.split())
    return open_call + said + ("" if cut else (end if pairs else "") + close_call)


OWN_WORDS = [
    *(("pythonic", name, python_of(name)) for name in {**PYTHON, **CUT}),
    *((form, name, tags_of(form, name)) for form in ("qwen3-coder-xml", "glm-4.5") for name in TAGS),
]


@pytest.mark.parametrize(("form", "name", "text"), OWN_WORDS, ids=[f"{f}: {n}" for f, n, _ in OWN_WORDS])
def test_a_fault_without_json_has_the_code_that_it_has_natively(form: str, name: str, text: str) -> None:
    """prompted-calling: Faults have the codes of native calling.

    Only the words differ that quote the arguments, since these are no JSON.
    """
    answer = Answer(text=text, finish=FAULTS[name].finish)
    words = asked(answer, tool_calling="prompted", call_format=form, **KEPT)[0]
    native = natively(name, **KEPT)[0]
    assert [(name, args) for _, name, args, _, _ in words[0]] == [
        (name, args) for _, name, args, _, _ in native[0]
    ]
    paths = [(tool, code, path) for _, tool, code, path, _, _, _ in words[1]]
    expected = [(tool, code, path) for _, tool, code, path, _, _, _ in native[1]]
    if (form, name) == ("pythonic", "a number too large"):  # the value was decoded, so its place is known
        expected = [(tool, code, "/days") for tool, code, _ in expected]
    assert paths == expected
    if words[1] and words[1][0][2] in ("schema_mismatch", "unknown_tool", "not_an_object", "duplicate_key"):
        assert [one[4] for one in words[1]] == [one[4] for one in native[1]]


COLUMNS = [
    *(("openai", engine) for engine in ENGINES),
    *(("anthropic", engine) for engine in ENGINES),
    ("responses", "auto"),
    ("gemini", "auto"),
    ("ollama", "litellm"),
]


@pytest.mark.parametrize(("wire", "engine"), COLUMNS)
def test_the_default_form_has_these_outcomes_on_every_wire(wire: str, engine: str) -> None:
    """prompted-calling: Faults have the codes of native calling."""
    for name, fault in FAULTS.items():
        if fault.finish == "content_filter" and wire != "openai":
            continue  # these providers block the prompt, or answer with another reason
        answer = Answer(text=in_words("hermes", fault), finish=fault.finish)
        words = asked(answer, wire=wire, engine=engine, tool_calling="prompted", **KEPT)
        native = natively(name, **KEPT)
        assert (words == native) == ((name, "hermes") not in EXCEPTIONS), (name, words, native)


@pytest.mark.parametrize("form", FORMS)
def test_a_bad_call_is_asked_for_again_as_natively(form: str) -> None:
    """prompted-calling: Faults have the codes of native calling."""
    told: list[str] = []
    for mode in ("native", "prompted"):
        wrong: Any = {"city": 42}
        bad = (
            Answer(calls=[Call("get_weather", wrong, id="call_1")])
            if mode == "native"
            else Answer(text=WRITERS[form]([("get_weather", wrong)], {"get_weather": {}}))
        )
        if mode == "prompted" and form in ("qwen3-coder-xml", "glm-4.5"):
            bad = Answer(text=in_words(form, FAULTS["a wrong type"]))
        adapter = sigadapt.ChatAdapter(tool_calling=mode, call_format=form, on_invalid="reask", max_reasks=2)
        with (
            LoopbackProvider([bad]) as provider,
            dspy.context(lm=lm_of(provider, cache=False), adapter=adapter),
            pytest.raises(ToolCallParseError) as caught,
        ):
            dspy.Predict(Must)(question="weather?", tools=[get_weather, now])
        assert (caught.value.code, len(provider.received)) == ("schema_mismatch", 3)
        told.append(json.dumps(provider.received[1].body["messages"][-1]["content"]))
    sentence = "the arguments do not fit get_weather: /city: 42 is not of type"
    assert all(sentence in said for said in told)


HANDED_ON = [name for name, fault in FAULTS.items() if len(fault.calls) == 1 and name != "100,000 brackets"]


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_dspy")
@pytest.mark.parametrize("form", JSON_FORMS)
def test_a_loop_gets_a_bad_call_as_it_does_natively(form: str) -> None:
    """conversations: A bad call fails in somebody's loop before its tool runs."""
    for name in HANDED_ON:
        if (name, form) in EXCEPTIONS:
            continue
        adapters = [
            sigadapt.ChatAdapter(tool_calling=mode, call_format=form) for mode in ("native", "prompted")
        ]
        outcomes = [looped(name, adapters[0]), looped(name, adapters[1], form)]
        assert outcomes[0] == outcomes[1], name


def looped(name: str, adapter: Any, form: str = "") -> Any:
    """How a ReActV2 ends whose model makes a faulty call, natively or in words, and then submits."""
    ran: list[str] = []

    def get_weather(city: str, days: int = 3) -> str:
        """Weather for a city."""
        ran.append(f"{city} {days}")
        return "sunny"

    def now() -> str:
        """The time."""
        ran.append("now")
        return "noon"

    fault, done = FAULTS[name], Fault([("submit", '{"answer":"mixed"}')])
    script = (
        [Answer(calls=[Call(*each) for each in one.calls], finish=one.finish) for one in (fault, done)]
        if not form
        else [Answer(text=in_words(form, one), finish=one.finish) for one in (fault, done)]
    )
    task = cast("Any", dspy.Signature)("question -> answer")
    with (
        LoopbackProvider(script) as provider,
        dspy.context(lm=lm_of(provider, cache=False, num_retries=0), adapter=adapter),
    ):
        out: Any = dspy.ReActV2(task, tools=[get_weather, now])(question="Where?")
    results = [
        (result.name, str(result.value).splitlines()[0], result.is_error)
        for event in out.history.messages
        for result in event["tool_calls"].tool_call_results.tool_call_results
    ]
    return out.answer, out.termination_reason, results, ran, len(provider.received)


NAMELESS = ['{"arguments":{}}', '{"name":null,"arguments":{}}', '{"name":"","arguments":{}}']


@pytest.mark.parametrize("body", NAMELESS)
@pytest.mark.parametrize("signature", [Must, May])
def test_a_call_without_a_name_is_a_bad_one_and_not_the_answer(body: str, signature: Any) -> None:
    """prompted-calling: Faults have the codes of native calling."""
    answer = Answer(text=f"<tool_call>\n{body}\n</tool_call>")
    (good, bad), _ = asked(answer, signature=signature, tool_calling="prompted", **KEPT)
    nameless = {"id": "call_1", "type": "function", "function": {"name": "", "arguments": "{}"}}
    body_sent = {"choices": [{"message": {"role": "assistant", "tool_calls": [nameless]}}]}
    native = sigadapt.choice_from_response(body_sent).tool_calls  # DSPy's client refuses such an answer
    assert native is not None
    assert (good, bad) == ([], seen(native)[1])


@pytest.mark.parametrize("member", ["name", "arguments"])
def test_a_member_of_the_call_that_repeats_is_a_repeated_key(member: str) -> None:
    """prompted-calling: Faults have the codes of native calling."""
    first = '"name":"now"' if member == "name" else '"arguments":{"city":"Rome"}'
    text = f'<tool_call>\n{{{first},"name":"get_weather","arguments":{{"city":"Paris"}}}}\n</tool_call>'
    (good, bad), _ = asked(Answer(text=text), tool_calling="prompted", **KEPT)
    assert (good, [one[2] for one in bad]) == ([], ["duplicate_key"])
