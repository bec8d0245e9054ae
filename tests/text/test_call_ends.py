"""Where a call ends that the model did not end: it is read, or it is a bad call, or it stays text."""

# ruff: noqa: E501  (what models write)

from typing import Any

import pytest

from sigadapt.response import choice_from_text

STRING, ANY_OBJECT = {"type": "string"}, {"type": "object"}
WEATHER = {"city": STRING, "days": {"type": "integer"}, "near": ANY_OBJECT}
TOOLS: list[Any] = [
    {"name": "get_weather", "parameters": {"properties": WEATHER, "required": ["city"]}},
    {"name": "now", "parameters": {"properties": {}}},
    {"name": "ask", "parameters": {"properties": {"a": STRING, "arguments": ANY_OBJECT}}},
    {"name": "free", "parameters": ANY_OBJECT},
]
ENDS: list[tuple[str, list[Any], list[Any], str | None]] = [
    (
        '<function=get_weather>\n{"city": "Paris" "days"}</function> and more',
        [],
        [("invalid_json", '{"city": "Paris" "days"}')],
        "and more",
    ),
    ('<function=get_weather>\n{"city": "Paris"', [], [("truncated", '{"city": "Paris"')], None),
    (
        '<function=get_weather>\n{"city": "Paris"} said I</function> so.',
        [],
        [("invalid_json", '{"city": "Paris"} said I')],
        "so.",
    ),
    (
        '<function=get_weather>\n{"city": "Paris"}\n<function=now>\n</function>',
        [("get_weather", {"city": "Paris"}), ("now", {})],
        [],
        None,
    ),
    (
        '<function=get_weather>\n{"city": "Paris"}\n<b>x</b></function>',
        [("get_weather", {"city": "Paris"})],
        [],
        "<b>x</b>",
    ),
    ("<function=now>\nhello", [("now", {})], [], "hello"),
    ("<function=get_weather>\nhello", [], [("malformed_call", "<function=get_weather>\nhello")], None),
    ("<function=now>hello", [], [("malformed_call", "<function=now>hello")], None),
    ("<function=now></function> hello", [("now", {})], [], "hello"),
    (
        "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</tool_call> ok",
        [("get_weather", {"city": "Paris"})],
        [],
        "ok",
    ),
    (
        "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\nAnd so.",
        [("get_weather", {"city": "Paris"})],
        [],
        "And so.",
    ),
    (
        "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\ndays: 3</function> ok",
        [],
        [("invalid_json", "\n<parameter=city>\nParis\n</parameter>\ndays: 3")],
        "ok",
    ),
    (
        "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<days>3</days>",
        [],
        [("truncated", "\n<parameter=city>\nParis\n</parameter>\n<days>3</days>")],
        None,
    ),
    (
        "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<param",
        [],
        [("truncated", "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<param")],
        None,
    ),
    (
        "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n",
        [],
        [("truncated", "<function=get_weather>\n<parameter=city>\nParis\n</parameter>")],
        None,
    ),
    (
        "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</func",
        [],
        [("truncated", "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</func")],
        None,
    ),
    (
        "<tool_call>ask\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n<arg_key>arguments</arg_key><arg_value>{}</arg_value>",
        [("ask", {"a": "x", "arguments": {}})],
        [],
        None,
    ),
    (
        "<tool_call>ask\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>",
        [],
        [("truncated", "<tool_call>ask\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>")],
        None,
    ),
    ("<tool_call>now\n</tool_call> ok", [("now", {})], [], "ok"),
    (
        "<tool_call>ask\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n<arg_key>b</tool_call> ok",
        [],
        [("invalid_json", "\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n<arg_key>b")],
        "ok",
    ),
    (
        '<tool_call>{"name": "ask", "arguments": {"a": "x"}}<tool_call>{"name": "now", "arguments": {}}</tool_call>',
        [("ask", {"a": "x"}), ("now", {})],
        [],
        None,
    ),
    (
        '<tool_call>get_weather city="Paris" days=3</tool_call> ok',
        [("get_weather", {"city": "Paris", "days": 3})],
        [],
        "ok",
    ),
    (
        '<function=ask>\n<parameter=arguments>\n{"a": "x"}\n</parameter>\n</function>',
        [("ask", {"arguments": {"a": "x"}})],
        [],
        None,
    ),
    (
        '<function=get_weather>\n<parameter=arguments>\n{"city": "Paris", "zip": 2}\n</parameter>\n</function>',
        [("get_weather", {"arguments": {"city": "Paris", "zip": 2}})],
        [],
        None,
    ),
    (
        '<function=get_weather>\n<parameter=arguments>\n{"zip": 2, "city": "Paris"}\n</parameter>\n</function>',
        [("get_weather", {"arguments": {"zip": 2, "city": "Paris"}})],
        [],
        None,
    ),
    (
        "<function=get_weather>\n<parameter=city>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</parameter>\n</function> ok",
        [
            (
                "get_weather",
                {"city": "<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n</function>"},
            )
        ],
        [],
        "ok",
    ),
    (
        "<function=get_weather>\n<parameter=city>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>",
        [],
        [
            (
                "truncated",
                "<function=get_weather>\n<parameter=city>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>",
            )
        ],
        None,
    ),
    (
        "<function=get_weather>\n<parameter=city>\nParis\n</parameter></parameter> b </function> ok",
        [("get_weather", {"city": "Paris"})],
        [],
        "</parameter> b </function> ok",
    ),
    (
        "<function=get_weather>\n<parameter=city>\nParis <parameter=zip> 3\n</parameter>\n</function> ok",
        [("get_weather", {"city": "Paris <parameter=zip> 3"})],
        [],
        "ok",
    ),
    (
        "<function=get_weather>\n<parameter=city>\nParis",
        [],
        [("truncated", "<function=get_weather>\n<parameter=city>\nParis")],
        None,
    ),
    (
        "<function=get_weather>\n<parameter=city>\nParis\n<parameter=days>\n3",
        [],
        [("truncated", "<function=get_weather>\n<parameter=city>\nParis\n<parameter=days>\n3")],
        None,
    ),
    (
        "<function=free>\n<parameter=x>\n1\n<parameter=y>\n2\n</function>",
        [("free", {"x": "1", "y": "2"})],
        [],
        None,
    ),
    (
        '<function name="get_weather"><param name="city"><![CDATA[<b>Paris</b>]]></param><param name="days">3</param></function> ok',
        [("get_weather", {"city": "<b>Paris</b>", "days": 3})],
        [],
        "ok",
    ),
    (
        "<function=get_weather>\n<parameter=city>\n <![CDATA[a\nb]]> \n</parameter>\n</function>",
        [("get_weather", {"city": "a\nb"})],
        [],
        None,
    ),
    (
        "<function=get_weather>\n<parameter=city>\r\nParis\r\n</parameter>\r\n</function>",
        [("get_weather", {"city": "Paris"})],
        [],
        None,
    ),
    (
        '<invoke name="get_weather"><parameter name="city">Paris\n</parameter></invoke>',
        [("get_weather", {"city": "Paris\n"})],
        [],
        None,
    ),
    (
        '<invoke name="get_weather"><parameter name="city">\nParis\n\n</parameter></invoke>',
        [("get_weather", {"city": "Paris\n"})],
        [],
        None,
    ),
    (
        '<|open|>call tool="free" index="1"<|sep|><|open|>argument key="x" type="string"<|sep|>3<|close|>argument<|sep|><|open|>argument key="y" type="number"<|sep|>3<|close|>argument<|sep|><|open|>argument key="z" type="text"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|> ok',
        [("free", {"x": "3", "y": 3, "z": "3"})],
        [],
        "ok",
    ),
    (
        '<|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="number"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|>',
        [("get_weather", {"city": "3"})],
        [],
        None,
    ),
    (
        '<|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|><|close|>call<|s',
        [],
        [
            (
                "truncated",
                '<|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|><|close|>call<|s',
            )
        ],
        None,
    ),
    (
        '<a:invoke name="get_weather"><b:parameter name="city">Paris</b:parameter></a:invoke>',
        [],
        [("invalid_json", '<b:parameter name="city">Paris</b:parameter>')],
        None,
    ),
    ("now(); get_weather(city='Paris');", [("now", {}), ("get_weather", {"city": "Paris"})], [], None),
    ("get_weather(city='Paris');", [("get_weather", {"city": "Paris"})], [], None),
    ("get_weather(city='Paris'); done", [], [], "get_weather(city='Paris'); done"),
    ("[free(a\\_b=1)]", [("free", {"a_b": 1})], [], None),
    ("[get_weather(city='", [], [("truncated", "get_weather(city='")], None),
    ("[get_weather(city=", [], [("truncated", "get_weather(city=")], None),
    ("['now()', 'hello']", [], [], "['now()', 'hello']"),
    ("'now()'", [("now", {})], [], None),
    ("[get_weather('Paris')]", [], [("invalid_json", "'Paris'")], None),
    ("[get_weather(city='a', city='b')]", [], [("duplicate_key", '{"city":"a","city":"b"}')], None),
    ("[now()] Observation:", [], [], "[now()] Observation:"),
    (
        "<|python_start|>[get_weather(city='Paris')]<|python_end|> ok",
        [("get_weather", {"city": "Paris"})],
        [],
        "ok",
    ),
    ("<|python_start|>[get_weather(city='Par", [], [("truncated", "get_weather(city='Par")], None),
    ("get_weather(city='Paris')\nok", [], [], "get_weather(city='Paris')\nok"),
    ("[get_weather(city={'a': 'é'})]", [("get_weather", {"city": {"a": "é"}})], [], None),
]


@pytest.mark.parametrize(("text", "good", "bad", "said"), ENDS)
def test_what_was_written_is_read_or_told_or_text(text: str, good: Any, bad: Any, said: str | None) -> None:
    """text-calls: A broken call is a bad call with its raw text."""
    choice = choice_from_text(text, TOOLS)
    calls = choice.tool_calls
    assert [(call.name, call.args) for call in calls or ()] == good
    assert [(call.code, call.arguments) for call in (calls.invalid if calls is not None else ())] == bad
    assert choice.text == said
