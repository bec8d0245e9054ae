"""What is no call, whatever it looks like: prose, code, examples, quotes, JSON answers, declarations."""

import json
from typing import Any

import pytest
from support import CORPUS, RECORDINGS, recorded

from sigadapt import ToolDecls
from sigadapt.response import choice_from_text

TOOLS: list[dict[str, Any]] = [
    {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
    {"name": "write_file", "parameters": {"type": "object", "properties": {"content": {"type": "string"}}}},
]
CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
TAGGED = f"<tool_call>{CALL}</tool_call>"


@pytest.mark.parametrize(
    "text",
    [
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
        "<tool_call>I am not sure which tool to use.</tool_call>",
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
    ],
)
def test_prose_is_no_call(text: str) -> None:
    """text-calls: Prose, code and examples are no calls."""
    choice = choice_from_text(text, TOOLS)
    assert choice.tool_calls is None
    assert choice.text == text
    assert choice.reasoning is None


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
