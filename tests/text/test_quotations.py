"""What is quoted, in any language and any form, is no call; what only looks quoted is one."""

# ruff: noqa: RUF001  (quotation marks)

from typing import Any

import pytest
from text_cases import CALL, EXAMPLES, PARIS, TAGGED, TextGate, read, streamed, tool

from sigadapt.response import choice_from_text

TOOLS = [
    tool("get_weather", city="string"),
    tool("write_file", path="string", content="string"),
    tool("search", query="string", limit="integer"),
    tool("dial", number=["integer", "string"]),
    tool("now"),
]
SCHEMAS = {each["name"]: each["parameters"] for each in TOOLS}


CALLS = [
    f"Sie sagte „ja“ und «gut».\n{TAGGED}",
    f'A 5" disk and a 3" one. {TAGGED}',
    f"Rock ’n’ roll, ‘tis true. {TAGGED} Don’t wait.",
    f"I said “no” before. {TAGGED} And “yes” now.",
    f"```json\r\n{CALL}\r\n```",
    "```tool_code\nprint(get_weather(city='Paris'))\n```",
    f"<think>First.</think>\n<think>Second.</think>\n{TAGGED}",
    f"<tool_call>\n{CALL}}}\n</tool_call>",
    f"<|tool_call|>[{CALL}]<|/tool_call|>",
    '<invoke name="get_weather">\r\n<parameter name="city">\r\nParis\r\n</parameter>\r\n</invoke>',
]


@pytest.mark.parametrize("text", CALLS)
def test_what_only_looks_quoted_is_a_call(text: str) -> None:
    """text-calls: What is no call stays text."""
    calls = choice_from_text(text, TOOLS).tool_calls
    assert calls is not None
    assert [(call.name, call.args) for call in calls] == PARIS
    assert calls.invalid == ()


CONTENT = "<parameter=content>\n{}\n</parameter>"
QWEN = f"<function=write_file>\n<parameter=path>\na\n</parameter>\n{CONTENT}\n</function>"
INVOKE = (
    '<invoke name="write_file"><parameter name="path">a</parameter>'
    '<parameter name="content">{}</parameter></invoke>'
)
GLM = (
    "<tool_call>write_file<arg_key>path</arg_key><arg_value>a</arg_value>"
    "<arg_key>content</arg_key><arg_value>{}</arg_value></tool_call>"
)


@pytest.mark.parametrize("form", [QWEN, INVOKE, GLM], ids=["qwen", "invoke", "glm"])
@pytest.mark.parametrize("inner", ["x", "It has two lines.\nSo."])
def test_a_value_may_hold_a_call_in_its_own_format(form: str, inner: str) -> None:
    """text-calls: Markup inside of a value is a value."""
    content = f"They write {form.format(inner)} there."
    for deeper in (content, f"Twice: {form.format(content)}"):
        calls = choice_from_text(f"{form.format(deeper)}\n{TAGGED}", TOOLS).tool_calls
        assert calls is not None
        assert [(call.name, call.args) for call in calls] == [
            ("write_file", {"path": "a", "content": deeper}),
            *PARIS,
        ]


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "search", "arguments": {"query": "x"}}, {"limit": 5}</tool_call>',
        '[TOOL_CALLS]search[ARGS]{"query": "x"}, {"limit": 5}',
        (
            '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>search<｜tool▁sep｜>{"query": "x"} {"limit": 5}'
            "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        '<function=search>{"query": "x"}, {"limit": 5}</function>',
        '<invoke name="search"><parameter name="query">x</parameter><limit>5</limit></invoke>',
        "<function=search><parameter=query>x</parameter> limit: 5 </function>",
        f"{QWEN.format('half <function=now><parameter=zone>')}",
    ],
)
def test_a_call_is_never_its_first_half(text: str) -> None:
    """text-calls: A broken call is a bad call with its raw text."""
    calls = choice_from_text(text, TOOLS).tool_calls
    assert calls is not None
    assert (list(calls), len(calls.invalid)) == ([], 1)


@pytest.mark.parametrize(
    ("written", "want"),
    [("+33123456789", "+33123456789"), ("007", "007"), ("1_000", "1_000"), ("12", 12), ("-1.5e3", -1500)],
)
def test_where_a_text_is_allowed_only_jsons_numbers_are_numbers(written: str, want: Any) -> None:
    """text-calls: The schema types what the format does not."""
    calls = choice_from_text(
        f"<function=dial><parameter=number>{written}</parameter></function>", TOOLS
    ).tool_calls
    assert calls is not None
    assert [call.args for call in calls] == [{"number": want}]


@pytest.mark.parametrize("number", ["007", "１２", "0x1G", "1__0", "+-1"])
def test_what_is_no_number_makes_a_bad_call(number: str) -> None:
    """text-calls: Nothing is evaluated."""
    for text in (
        f"[dial(number={number})]",
        f'<tool_call>{{"name": "dial", "arguments": {{"number": {number}}}}}</tool_call>',
    ):
        calls = choice_from_text(text, TOOLS).tool_calls
        assert calls is not None
        assert (list(calls), [call.code for call in calls.invalid]) == ([], ["invalid_json"])


PROSE = "The sun shines over the old town, and people walk along the river. It is warm.\n" * 4
HARMLESS = [
    *("[1] A book.\n", "[docs](https://example.org/a) say so.\n", "{x} is a set.\n", '{"a": 1} is JSON.\n'),
    *(
        "The tag <tool_call> opens it, and so on.\n",
        "The token <|channel|> is one of Harmony's, as you know well.\n",
    ),
    *("```python\nprint(1)\n```\n", 'Config:\n```json\n{"a": 1}\n```\n', f"Refused:\n```json\n{CALL}\n```\n"),
    *(
        "[x]: [y]\n",
        "<b>bold</b> and <function of x> too.\n",
        "Notes [THINK about it].\n",
        "a > b\n> so he said\n",
    ),
    *("「はい」と言った。\n", "&lt;b&gt; is escaped.\n", "[now] or {now}.\n", "```\r\nx\r\n```\r\n"),
]


@pytest.mark.parametrize("head", HARMLESS)
@pytest.mark.parametrize(
    "how", [{}, {"undeclared": True, "call_format": "hermes"}], ids=["recovered", "prompted"]
)
def test_what_can_be_no_part_of_a_call_leaves_at_once(head: str, how: dict[str, Any]) -> None:
    """streaming: Text that cannot be a call is not held back."""
    for text in (head + PROSE, f"It is so.\n{head}{PROSE}"):
        gate, shown = TextGate(SCHEMAS, ["answer"], **how), ""
        for at, char in enumerate(text):
            shown += gate.take(char)
            assert at < len(head) + 80 or at + 1 - len(shown) <= 80, text[len(shown) : at]
        assert shown + gate.remaining(read(text, SCHEMAS, **how).text) == text


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_the_gate_and_the_reader_share_the_beginning_of_a_call(example: str) -> None:
    """streaming: Markup of a call is not shown."""
    for text in (example, example.replace("\n", "\r\n")):
        assert streamed(text, {"get_weather": {}})[0] == ""


FENCE = "```tool_code\nget_weather(city='Paris')\n```"
LAST_FENCES = [
    ("I call it now:\n", FENCE),
    (
        "Would you like me to look? I could.\n\n",
        "```tool_code\nprint(get_weather(city='Paris'))\n```\n<end_of_turn>",
    ),
    ("As an example says.\n\nI look.\n", "```tool_code\n[get_weather(city='Paris')]\n```\n"),
    ("I call it now:\n", f"```tool_call\n{CALL}\n```"),
    ("I call it now:\n```python\nx = 1\n```\nand\n", f"```tool_code\n{CALL}\n```"),
    ("I call it now:\n", FENCE.removesuffix("\n```")),
    # Such words are of the case, and not of the call: the first two are from real support agents.
    ('I look for it, even if it\'s not currently listed as "pending."\n\n', FENCE),
    ("If you don't have a number, we can try again with just the brand to see other options.\n\n", FENCE),
    ("I tried it many times, and the system continues to reject the input.\n\n", FENCE),
    ("Since I cannot reliably assist you with this, a colleague takes over.\n\n", FENCE),
    ("Your card was declined, so I look again:\n", FENCE),
]


@pytest.mark.parametrize(("words", "fence"), LAST_FENCES)
def test_a_fence_of_calls_behind_words_is_a_call(words: str, fence: str) -> None:
    """text-calls: A fence of calls ends an answer."""
    choice = choice_from_text(words + fence, TOOLS)
    assert choice.tool_calls is not None
    assert [(call.name, call.args) for call in choice.tool_calls] == PARIS
    assert choice.tool_calls.invalid == ()
    assert choice.text == words.strip()


REFUSING = (
    *("The page told me to run this, and I will not run it:", "Don't call this:", "Never run:"),
    *("I refuse to do it.", "I did not run it. The call was", "The page says:"),
    *("The email asks me for this:", "I won\u2019t do what it wants:", "This looks like an injection:"),
    *("I am not going to run this:", "You should not under any circumstances execute it:"),
    *("I reject this:", "Here is the call that I declined:", "I ignored its instructions:"),
    *("It is better not to:", "Not this one:"),
)


@pytest.mark.parametrize("words", REFUSING)
@pytest.mark.parametrize("how", [{}, {"undeclared": True}], ids=["recovered", "prompted"])
def test_a_call_that_a_model_quotes_or_refuses_is_none(words: str, how: dict[str, Any]) -> None:
    """text-calls: A fence of calls ends an answer."""
    text = f"I read the page.\n\n{words}\n{FENCE}"
    reading = read(text, SCHEMAS, **how)
    assert (reading.calls, reading.text) == ([], text)


@pytest.mark.parametrize("size", [1, 5, 40])
@pytest.mark.parametrize(("words", "fence"), LAST_FENCES)
def test_no_half_of_such_a_fence_streams(words: str, fence: str, size: int) -> None:
    """text-calls: A fence of calls ends an answer."""
    passed, shown, _ = streamed(words + fence, SCHEMAS, size)
    assert words.startswith(passed)
    assert shown.strip() == words.strip()


BETWEEN_TAGS = [
    f"\ufeff{CALL}",
    f"\ufeff```json\n{CALL}\n```",
    f"<tool_call><!-- a -->{CALL}</tool_call>",
    f"<tool_call>\n<!-- a -->\n<!-- b -->\n```json\n{CALL}\n```\n</tool_call>",
    f"<tool_call>{CALL}\n<!-- a -->\n</tool_call>",
    "<tool_call><!-- a --><function=get_weather>\n<parameter=city>Paris</parameter>\n</function></tool_call>",
    "<function=get_weather><!-- a -->\n<parameter=city>\nParis\n</parameter>\n<!-- b --></function>",
    '<invoke name="get_weather"><!-- a --><parameter name="city">Paris</parameter><!-- b --></invoke>',
    f"<tool_calls><!-- a --><tool_call>{CALL}</tool_call><!-- b --></tool_calls>",
]


@pytest.mark.parametrize("text", BETWEEN_TAGS)
def test_what_stands_between_tags_says_nothing(text: str) -> None:
    """text-calls: What stands between tags says nothing."""
    choice = choice_from_text(text, TOOLS)
    assert choice.tool_calls is not None
    assert [(call.name, call.args) for call in choice.tool_calls] == PARIS
    assert (choice.tool_calls.invalid, choice.text) == ((), None)
    assert streamed(text, SCHEMAS)[1] == ""
