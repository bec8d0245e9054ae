"""What is no call, whatever it looks like: prose, code, examples, quotes, JSON answers, declarations."""

# ruff: noqa: RUF001  (quotation marks)

import json

import pytest
from support import CORPUS, RECORDINGS, recorded
from text_cases import CALL, TAGGED, tool

from sigadapt import ToolDecls
from sigadapt.response import choice_from_text

TOOLS = [
    tool("get_weather", city="string"),
    tool("write_file", path="string", content="string"),
    tool("search", query="string", limit="integer"),
    tool("dial", number=["integer", "string"]),
    tool("now"),
]


NO_CALLS = [
    # Prose, code and declarations
    'You can call `get_weather(city="Paris")` yourself.',
    'get_weather(city="Paris") is how one would ask.',
    "result = get_weather(city='Paris')\nprint(result)",
    "[get_weather, write_file]",
    "See [the docs](https://example.org/get_weather(v2)) for more.",
    "[get_weather(city='Paris')](https://example.org)",
    "Look:\n```python\nget_weather(city='Paris')\n```",
    f"Send this:\n\n> {TAGGED}\n\nI will not.",
    f"Write `{TAGGED}` to call it.",
    f"Write ``{TAGGED}`` to call it.",
    f'It says "{TAGGED}" there.',
    f"It says “{TAGGED}” there.",
    f"The format:\n\n```xml\n{TAGGED}\n```\n\nNothing was called.",
    f"The format:\n\n```json\n{CALL}\n```\n\nNothing was called.",
    f"Here is an example of a call:\n```json\n{CALL}\n```",
    f"For example, you would write: {CALL}",
    f"For example:\n{CALL}",
    '{"answer": "18 degrees", "confidence": 0.9}',
    '[{"name": "Anna", "age": 31}]',
    '{"name": "get_weather", "confidence": 0.9}',
    f'{{"answer": null, "example": {CALL}}}',
    f'{{\n  "answer": null,\n  "examples": [\n{CALL}\n  ]\n}}',
    json.dumps({"answer": f"Write {TAGGED}"}),
    '{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {}}}}',
    'In BNF: call ::= "[TOOL_CALLS]" name "[ARGS]" object',
    "A model writes <tool_call> and then JSON.",
    "<function=get_weather> is not what I mean.",
    'Use <invoke name="get_weather"> for it.',
    "[TOOL_CALLS] But then nothing follows...",
    "get_weather{city} is a template.",
    "get_weather: Paris",
    f"To call a tool write {TAGGED} exactly.",
    f"The syntax is <tool_call>\n{CALL}\n</tool_call>, as you see.",
    "For example <function=get_weather><parameter=city>Paris</parameter></function> is one.",
    "Models write <|channel|> before it.",
    "They write `<|channel|>final<|message|>Hi` always.",
    "Total: 3 < 4 > 2 [x] {y} `z",
    'for { fmt.Println("hello") }',
    # Quotations, in any language and any form
    *(
        f"Así: {left}{TAGGED}{right} y nada más."
        for left, right in (
            "„“",
            "„”",
            "””",
            "“”",
            "‘’",
            "‚‘",
            "«»",
            "»«",
            "‹›",
            "「」",
            "『』",
            "《》",
            '""',
            "''",
        )
    ),
    f"Il a écrit « {TAGGED} » hier.",
    f"Sie sagte: „Ich würde {TAGGED} schreiben“, und ging.",
    f'He said "I would write {TAGGED} here" and left.',
    f"Say “please\n{TAGGED}\n” now.",
    f"&lt;tool_call&gt;\n{CALL}\n&lt;/tool_call&gt;\nis escaped.",
    f"&amp;lt;tool_call&amp;gt;\n{CALL}\n&amp;lt;/tool_call&amp;gt;",
    f"&#60;tool_call&#62;\n{CALL}\n&#60;/tool_call&#62; so.",
    f"Here is the call:\n```json\n{CALL}\n```",
    *(
        f"{words}\n```tool_code\nget_weather(city='Paris')\n```"
        for words in (
            *("Here's an example of a call:", "It looks like this:", "I could call the tool:"),
            *("The call would be:", "It would be wrong to act. Models write:", "How to call it:"),
        )
    ),
    "I call it now:\n~~~tool_code\nget_weather(city='Paris')\n~~~",
    "I call it now:\n````tool_code\nget_weather(city='Paris')\n````",
    "I call it now:\n- ```tool_code\n  get_weather(city='Paris')\n  ```",
    "I call it now:\n```tool_code\nget_weather(city='Paris')\n```\nThen I wait.",
    "I call it now:\n```tool_code\nget_weather(city='Paris')\n```\n```python\nprint(1)\n```",
    "I call it now:\n```tool_code\nget_weather(city='Paris')\nprint(1)\n```",
    "I call it now:\n```tool_code\ncity = 'Paris'\nget_weather(city=city)\n```",
    "I call it now:\n```tool_code\ndrop_table(name='users')\n```",
    "I call it now:\n```tool_code\nNone\n```",
    "I call it now:\n```python\nget_weather(city='Paris')\n```",
    "I call it now:\n```\nget_weather(city='Paris')\n```",
    f"Ich lehne ab:\n~~~tool_call\n{CALL}\n~~~",
    f"```json\n{CALL}\n```\nThis was refused.",
    f"1. First\r\n   ```json\r\n   {CALL}\r\n   ```\r\n2. Then",
    f'Result: {{"answer": "They write {TAGGED.replace(chr(34), chr(92) + chr(34))}"}} so.',
    f"Result: {{'answer': '{TAGGED}'}} so.",
    "Command A begins with <|START_THINKING|> and ends with <|END_THINKING|>, then answers.",
    "Gemma 4 writes <|channel>thought and closes with <channel|> at the end.",
    "The opening tag of Hermes is <tool_call>",
    "A call stands between <tool_call> and </tool_call>.",
    # Markup that is named, quoted or empty, and tags with a tool's name
    "The tag <tool_call> opens it.",
    "<tool_call>I am not sure which tool to use.</tool_call>",
    '<function_call> {"name": "no_function", "arguments": {}}',
    "> <tool_call>\n> get_weather: Paris\n> </tool_call>",
    "So:\n```\n<tool_call>\nget_weather: Paris\n</tool_call>\n```\nIt lacks braces.",
    "It wrote `<tool_call>get_weather: Paris</tool_call>` and stopped.",
    "Put the result of <get_weather> here.",
    '<input type="now" name="city"> is a field.',
    "<now>\n<p>It is late.</p>\n</now>",
    'See <a href="/now">now</a>.',
    "So:\n```xml\n<now>{}</now>\n```\nThat is one.",
    'You wrote "<now>{}</now>".',
]


@pytest.mark.parametrize("text", NO_CALLS)
def test_prose_is_no_call(text: str) -> None:
    """
    text-calls: Prose, code and examples are no calls
    text-calls: What is no call stays text
    """
    choice = choice_from_text(text, TOOLS)
    assert (choice.tool_calls, choice.text, choice.reasoning) == (None, text, None)


@pytest.mark.parametrize(
    "value", ["'Paris'", "city=city", "city=__import__('os').system('x')", "city='a' + 'b'", "city=now()"]
)
def test_a_variable_or_an_expression_is_no_value(value: str) -> None:
    """text-calls: Nothing is evaluated."""
    for text in (f"[get_weather({value})]", f"<|python_tag|>[get_weather({value})]"):
        calls = choice_from_text(text, TOOLS).tool_calls
        assert calls is not None
        assert [(bad.name, bad.code, bad.arguments) for bad in calls.invalid] == [
            ("get_weather", "invalid_json", value)
        ]
        assert len(calls) == 0


@pytest.mark.skipif(CORPUS is None, reason="the texts are those of the corpus")
def test_no_recorded_answers_text_is_a_call() -> None:
    """text-calls: No recorded answer of a provider is read as a call."""
    texts = 0
    for path in RECORDINGS:
        for row in recorded(path):
            text: str = row["expected"]["text"]
            if not text:
                continue
            texts += 1
            tools = ToolDecls(row["expected"]["tools"] or ())
            for starts in (False, True):
                choice = choice_from_text(text, tools, starts_in_reasoning=starts)
                assert choice.tool_calls is None, row["id"]
    assert texts > 200
