"""Each row of the table reads what it shows, alone and among all; and what each family tolerates."""

# ruff: noqa: RUF001  (tokens of models hold full-width bars)

import re
from typing import Any

import dspy
import pytest
from support import Must, get_weather, lm_of
from text_cases import CALL, EXAMPLES, MARKED, PARIS

import sigadapt
from sigadapt.errors import InvalidOption, MissingToolCalls
from sigadapt.response import choice_from_text
from sigadapt.testing import Answer, LoopbackProvider

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "near": {"type": "object", "properties": {"km": {"type": "number"}}},
        },
        "required": ["city"],
    },
}
TOOLS: list[Any] = [WEATHER, {"name": "now", "parameters": {"type": "object", "properties": {}}}]
UNSURE = ("command-r-plus", "functionary-v3.2", "bracket-calling", "gemma3-tool-code")
"""Formats whose markup prose and code may hold, too."""


def calls(text: str, **options: Any) -> list[tuple[str, Any]]:
    """Return the good calls of a text; there are no bad ones."""
    read = choice_from_text(text, TOOLS, **options).tool_calls
    assert read is None or read.invalid == ()
    return [(call.name, call.args) for call in read or ()]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_format_reads_its_example(name: str) -> None:
    """text-calls: Every format of the table is read."""
    assert calls(EXAMPLES[name], formats=[name]) == calls(EXAMPLES[name]) == PARIS
    assert choice_from_text(EXAMPLES[name], TOOLS, formats=[name]).text is None


@pytest.mark.parametrize("name", sorted(MARKED.keys() - {"harmony", "gemma3-tool-code"}))
def test_the_text_around_a_call_stays(name: str) -> None:
    """text-calls: What is no call stays text."""
    choice = choice_from_text(f"Let me look.\n{EXAMPLES[name]}\nOne moment.", TOOLS)
    assert [call.name for call in choice.tool_calls or ()] == ["get_weather"]
    said = (choice.text or "").split("\n")
    assert said[0] == "Let me look."
    assert said[-1] == "One moment."
    assert set(said[1:-1]) <= {""}


@pytest.mark.parametrize("name", EXAMPLES)
def test_another_tools_call_is_a_bad_call_if_its_markup_says_so(name: str) -> None:
    """text-calls: Only declared tools are called."""
    choice = choice_from_text(EXAMPLES[name], [{"name": "other"}])
    if name not in MARKED or name in UNSURE:
        assert (choice.tool_calls, choice.text) == (None, EXAMPLES[name])
        return
    assert choice.text is None
    assert choice.tool_calls is not None
    [call] = choice.tool_calls.invalid
    assert (call.code, call.name, "Paris" in call.arguments) == ("unknown_tool", "get_weather", True)


def test_the_closest_format_is_found_for_a_name_of_any_length() -> None:
    """text-calls: Formats are chosen by name."""
    for name, fix in (("hermess", "Did you mean 'hermes'?"), ("x" * 1_000_000, "Use one of hermes, ")):
        with pytest.raises(InvalidOption, match=re.escape(fix)):
            choice_from_text("", TOOLS, formats=[name])


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - {"lfm2-json", "llama4-pythonic"}))
def test_a_call_looks_like_its_format(name: str) -> None:
    """text-calls: A text says what it looks like."""
    seen = ".*" if name in ("longcat-pairs", "tool-calls-list") else re.escape(name)  # which others read, too
    with (
        LoopbackProvider([Answer(text=EXAMPLES[name])]) as provider,
        dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter(tool_calling="native")),
        pytest.raises(MissingToolCalls, match=f"looks like a {seen} call of 'get_weather'"),
    ):
        dspy.Predict(Must)(question="?", tools=[get_weather])


NOW: tuple[str, Any] = ("now", {})
BOTH = [*PARIS, NOW]


TWO_DAYS: list[tuple[str, Any]] = [("get_weather", {"city": "Paris", "days": 2})]
DSML = """<｜DSML｜tool_calls><｜DSML｜invoke name="get_weather">
<｜DSML｜parameter name="tags" string="false">["a"]</｜DSML｜parameter>
<｜DSML｜parameter name="city" string="true">7</｜DSML｜parameter>
</｜DSML｜invoke>"""
INVOKE = """<invoke name="get_weather">
<parameter name="city">Paris</parameter>
<parameter name="days">2</parameter>
</invoke>"""
SEED = """<seed:tool_call>
<function=get_weather>
<parameter=city>Paris</parameter>
</function>
</seed:tool_call>"""
TWICE_CLOSED = "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</parameter>\n</function>"
CLOSER_INSIDE = "<function=get_weather><parameter=city>a</parameter> b</parameter></function>"
FLAGGED = '<invoke name="get_weather"><parameter name="n" string="{}">3</parameter></invoke>'
UNCLOSED = "<function=get_weather><parameter=city>Paris</function>"
GLM = "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>"
GLM_OPEN = (
    "<tool_call>get_weather\n<arg_key>city</arg_key><arg_value>Paris<arg_key>days</arg_key><arg_value>2"
)
MIXED = '<|tool_call>call:get_weather{"city":"Paris","near":{km:2.5},tags:[<|"|>a, b<|"|>]}<tool_call|>'
IN_ROLE = "<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>"
DEEPSEEK = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather```json\n{}<｜tool▁call▁end｜>"
NESTED = '{"type":"function","function":{"name":"get_weather","arguments":{"city":"Paris"}}}'
ESCAPED: Any = {"city": "New_York", "tags": ["a_b"], "near": {"k_m": 1}}
MADE: list[tuple[str, list[tuple[str, Any]]]] = [
    # Calls as Python writes them
    (r'[get\_weather(city="New\_York", tags=["a\_b"], near={"k\_m": 1})]', [("get_weather", ESCAPED)]),
    ('[\'get_weather(city="Paris")]', PARIS),  # the quote around the call is not closed
    (r"""["get_weather(city='a\\nb')"]""", [("get_weather", {"city": "a\nb"})]),
    ('[get_weather(city="Paris")].', PARIS),
    (r'[get_weather(city="a\_b")]', [("get_weather", {"city": r"a\_b"})]),  # its name is not escaped
    # Hermes and other JSON behind markers
    ('<tool_call>{"arguments": {"city": "Paris"}, "name": "get_weather"}', PARIS),
    ('<tool_call>[{"name":"get_weather","arguments":{"city":"Paris"}},{"name":"now"}]</tool_call>', BOTH),
    ('<tool_call>\n{"name":"get_weather","arguments":{"city":"Paris"}}\n{"name":"now"}\n</tool_call>', BOTH),
    ("<tool_call>{'name': 'get_weather', 'arguments': {'city': 'Paris'}}</tool_call>", PARIS),
    ('<tool_call>```json\n{"name":"get_weather","arguments":{"city":"Paris"}}\n```</tool_call>', PARIS),
    ('<tool_call>{"name":"get_weather","arguments":"{\\"city\\":\\"Paris\\"}"}</tool_call>', PARIS),
    (f"<tool_call>{NESTED}", PARIS),
    ('<|tool_call|> [{"name": "get_weather", "arguments": {"city": "Paris"}}]', PARIS),
    ('{"name":"get_weather","arguments":{"city":"Paris"}}</tool_call>', PARIS),
    # GLM's line breaks are the value's; a flag types what the schema does not
    (GLM.replace("Paris", "\nParis\n"), [("get_weather", {"city": "\nParis\n"})]),
    *((FLAGGED.format(flag), [("get_weather", {"n": n})]) for flag, n in (("false", 3), ("true", "3"))),
    # Qwen3-Coder
    ('<function=get_weather>{"city": "Paris"}', PARIS),
    ('<function=get_weather><parameter=arguments>{"city": "Paris"}</parameter></function>', PARIS),
    ("<function=get_weather><parameter=city>Paris</function><function=now></function>", BOTH),
    (UNCLOSED + UNCLOSED.replace("Paris", "Rome</parameter>"), [*PARIS, ("get_weather", {"city": "Rome"})]),
    ("<function=get_weather><parameter=city>Paris</parameter></function><function=now></function>", BOTH),
    ("<function=get_weather>\n<parameter=city>\nParis\n<parameter=days>\n2</parameter></function>", TWO_DAYS),
    (f"<tool_call>\n{TWICE_CLOSED}", PARIS),
    ('<function=get_weather>{"city": "Paris"}</function>', PARIS),
    (f"<tool_call>{CLOSER_INSIDE}</tool_call>", [("get_weather", {"city": "a</parameter> b"})]),
    ("<function=get_weather><parameter=city>Paris</parameter></tool_call>", PARIS),
    (SEED, PARIS),
    # Invoke and its kin
    (INVOKE, TWO_DAYS),
    (DSML, [("get_weather", {"tags": ["a"], "city": "7"})]),
    # GLM
    (f"{GLM}<tool_call>now</tool_call>", BOTH),
    ("<tool_call>get_weather\n<arg_key>city</arg_key>\nParis</arg_value></tool_call>", PARIS),
    (f"{GLM_OPEN}</tool_call>", TWO_DAYS),
    (f"{GLM.replace('</arg_value>', '')}<tool_call>now</tool_call>", BOTH),
    (GLM.replace("city", "\ncity\n"), PARIS),
    ('<tool_call>get_weather city="Paris"</tool_call>', PARIS),
    # Mistral, DeepSeek, Kimi
    ('[TOOL_CALLS]get_weather[CALL_ID]abcdefghi[ARGS]{"city": "Paris"}[TOOL_CALLS]now{}', BOTH),
    ('<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Paris"}```', PARIS),
    ('<|tool_call_begin|>get_weather:3<|tool_call_argument_begin|>{"city": "Paris"}', PARIS),
    # Gemma
    ('<|tool_call>call:get_weather{city:<|"|>Paris<|"|>}call:now{}<tool_call|>', BOTH),
    (MIXED, [("get_weather", {"city": "Paris", "near": {"km": 2.5}, "tags": ["a, b"]})]),
    ("<|tool_call>call:get_weather{city:Paris,days:2}<tool_call|>", TWO_DAYS),
    ('<|tool_call>call:get_weather{city:<|"|>Paris}<tool_call|>', PARIS),
    ("<|tool_call>call:get_weather{city:'Paris'<|\"|>,days:2}<tool_call|>", TWO_DAYS),
    # Python
    ("[get_weather(city='Paris'), now()]", BOTH),
    ("<|tool_call_start|>get_weather(city='Paris')<|tool_call_end|>", PARIS),
    ("<function_calls>get_weather(city='Paris')\nnow()</function_calls>", BOTH),
    ("```tool_code\nprint(get_weather(city='Paris'))\n```", PARIS),
    ("Let me see.\n\n[get_weather(city='Paris')]", PARIS),
    ("<|python_tag|>get_weather.call(city='Paris')", PARIS),
    # Harmony
    (f'{IN_ROLE}{{"city":"Paris"}}<|call|>', PARIS),
    ('analysisHm.assistantcommentary to=functions.get_weather json{"city":"Paris"}', PARIS),
    ("<|channel|>commentary to=functions.now<|message|><|call|>", [NOW]),
    ('assistantcommentary to=functions.get_weather json{"city":"Paris"}', PARIS),
    # Functionary, whose first marker the prompt holds
    ('get_weather\n{"city": "Paris"}', PARIS),
    # Several fences
    (f"```json\n{CALL}\n```\n```json\n{CALL}\n```", PARIS * 2),
]


@pytest.mark.parametrize(("text", "want"), MADE)
def test_what_models_make_of_a_format(text: str, want: list[tuple[str, Any]]) -> None:
    """text-calls: What models leave out is tolerated."""
    assert calls(text) == want


@pytest.mark.parametrize(
    ("text", "code", "sent"),
    [
        ('<|tool_call>call:get_weather{"\\q":1}<tool_call|>', "invalid_json", '{"\\q":1}'),
        (GLM.replace("</arg_key>", ""), "invalid_json", "<arg_key>city<arg_value>Paris</arg_value>"),
        (f"<tool_call>{NESTED[:-10]}", "truncated", '{"city":'),
        (r'[get\_weather(near={"a\_b": 1, "a\_b": 2})]', "duplicate_key", '{"near":{"a_b":1,"a_b":2}}'),
        ('[get_weather(ab{"city": "Paris"})]', "invalid_json", 'ab{"city": "Paris"}'),
        ('<|python_tag|>get_weather(city="Par', "truncated", 'get_weather(city="Par'),
        ('<|tools_prefix|>[{"get_weather": {"city": "Pa', "truncated", '{"city": "Pa'),
        ('{"name": "get_weather", "arguments": "{\\"city\\": \\"Pa', "truncated", '"{\\"city\\": \\"Pa'),
        (INVOKE[:40], "truncated", INVOKE[:40]),
        ("<|channel|>commentary to=functions.get_weather <|constrain|>json", "truncated", ""),
        (DEEPSEEK.replace("{}", '{"city": "Paris"}'), "invalid_json", '```json\n{"city": "Paris"}'),
        (DEEPSEEK.replace("{}", "{city}\n```"), "invalid_json", "```json\n{city}\n```"),
    ],
)
def test_a_call_that_is_broken_or_cut_off_is_a_bad_call(text: str, code: str, sent: str) -> None:
    """text-calls: A broken call is a bad call with its raw text."""
    choice = choice_from_text(text, TOOLS)
    assert choice.tool_calls is not None
    bad = [(call.name, call.code, call.arguments) for call in choice.tool_calls.invalid]
    assert (bad, choice.text) == ([("get_weather", code, sent)], None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<tool_call>{"arguments": {"city": "Paris"}, "name": "get_weather"', None),
        (f"<tool_call>{CALL}</tool_call>\n```python\nprint()\n```", "```python\nprint()\n```"),
        ("<|python_start|>[get_weather(city='Paris')]<|python_end|><|eot|>", None),
        (f"<tool_call>{CALL}</tool_call>Sure.<turn|>\n", "Sure."),
        ('<|channel|>commentary to=get_weather<|message|>{"city":"Paris"}<|call|>So.', "So."),
    ],
)
def test_beside_a_call_stands_what_was_said(text: str, said: str | None) -> None:
    """text-calls: What is no call stays text."""
    choice = choice_from_text(text, TOOLS)
    assert [call.name for call in choice.tool_calls or ()] == ["get_weather"]
    assert choice.text == said


@pytest.mark.parametrize(
    "empty",
    [
        '<|open|>tools<|sep|><|open|>call index="1"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
        "<tool_call></tool_call>",
        "<tool_calls>[]</tool_calls>",
        "<|START_ACTION|>[]<|END_ACTION|>",
        "[TOOL_CALLS] []",
    ],
)
def test_empty_markup_says_nothing(empty: str) -> None:
    choice = choice_from_text(f"Nothing to do.{empty}", TOOLS)
    assert (choice.text, choice.tool_calls) == ("Nothing to do.", None)


def test_ids_that_models_write_are_kept() -> None:
    """text-calls: An id in the text is kept."""
    kimi = choice_from_text(EXAMPLES["kimi-k2"], TOOLS).tool_calls
    other = choice_from_text(EXAMPLES["hermes"], TOOLS).tool_calls
    assert kimi is not None
    assert other is not None
    assert (kimi[0].id, other[0].id) == ("functions.get_weather:0", "call_1")


LISTS = [{"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}]
END = "<tool_call|>"


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ('{<|"|>n<|"|>:7}' + END, {"n": 7}),
        ("{x:12,y:word}" + END, {"x": 12, "y": "word"}),
        ("{n:twelve,city:Rome}" + END, {"n": "twelve", "city": "Rome"}),
        ("{n:1}}}" + END, {"n": 1}),
        ("{n:1}}" + END, {"n": 1}),
        ("{n:1}}", {"n": 1}),
        ("{n:1}", {"n": 1}),
        ("{l:" + "[" * 50 + "]" * 50 + "}" + END, 50),
        ("{l:" + "[" * 70 + "]" * 70 + "}" + END, "invalid_json"),
        ('{<|"|>n:1}' + END, "invalid_json"),
        ('{<|"|>n<|"|> 1}' + END, "invalid_json"),
        ("{n 1}" + END, "invalid_json"),
        ("{n:1," + END, "invalid_json"),
        ("{n:1", "truncated"),
        ('{city:<|"|>Par', "truncated"),
    ],
)
def test_what_gemma_writes_is_read_to_the_letter(written: str, want: Any) -> None:
    """text-calls: What models leave out is tolerated."""
    choice = choice_from_text(f"<|tool_call>call:f{written}", LISTS)
    calls = choice.tool_calls
    assert choice.text is None
    assert calls is not None
    if isinstance(want, str):
        assert [(bad.code, bad.arguments) for bad in calls.invalid] == [(want, written.removesuffix(END))]
    elif isinstance(want, int):
        assert [len(str(call.args["l"])) for call in calls] == [2 * want]
    else:
        assert [call.args for call in calls] == [want]
