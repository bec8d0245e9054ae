"""What LiteLLM leaves out of a tool's schema on its way to Gemini is recorded, or refused beforehand."""

import json
from typing import Any

import dspy
import pytest
from support import LITELLM, NATIVE, Ask

import sigadapt
from sigadapt import InvalidToolDecl, ToolCallParseError, ToolDecls
from sigadapt.adapters.request.lowering import lowered
from sigadapt.testing import Answer, Call, LoopbackProvider

TEXT = {"type": "string"}
AT = "/tools/0/function/parameters"


def schema_of(a: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": a}, **more}


def tool(schema: Any) -> dict[str, Any]:
    return {"name": "t", "parameters": schema}


def asked(tools: list[Any], engine: str = "litellm", answer: Answer | None = None) -> tuple[Any, Any, Any]:
    """The tools as they arrive, the record of changes, and the prediction."""
    with LoopbackProvider([answer or Answer(text="Hi.")]) as provider:
        lm = dspy.LM(**provider.lm_options("gemini", engine=engine))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
            out = dspy.Predict(Ask)(question="?", tools=tools)
        history: list[Any] = lm.history
        changes: Any = history[-1].get("changes", ())
        return provider.received[-1].body["tools"], changes, out


def arrived(schema: Any) -> tuple[Any, list[str]]:
    """The property `a` as it arrives, and where something is recorded."""
    tools, changes, _ = asked([tool(schema)])
    assert all(change.what == "lowered" and change.why for change in changes)
    parameters = tools[0]["function_declarations"][0]["parameters"]
    return parameters["properties"].get("a"), [change.where.removeprefix(AT) for change in changes]


LOST: dict[str, tuple[Any, list[str]]] = {
    "oneOf": ({"oneOf": [TEXT, {"const": 1}]}, ["oneOf"]),
    "allOf": ({"allOf": [TEXT]}, ["allOf"]),
    "not": ({"type": "string", "not": {"const": "x"}}, ["not"]),
    "const": ({"type": "string", "const": "x"}, ["const"]),
    "patternProperties": ({"type": "object", "patternProperties": {"^x": TEXT}}, ["patternProperties"]),
    "additionalProperties": ({"type": "object", "additionalProperties": TEXT}, ["additionalProperties"]),
    "prefixItems": ({"type": "array", "items": TEXT, "prefixItems": [TEXT]}, ["prefixItems"]),
    "uniqueItems": ({"type": "array", "items": TEXT, "uniqueItems": True}, ["uniqueItems"]),
    "exclusiveMinimum": ({"type": "integer", "exclusiveMinimum": 0}, ["exclusiveMinimum"]),
    "multipleOf": ({"type": "integer", "multipleOf": 2}, ["multipleOf"]),
    "examples": ({"type": "string", "examples": ["x"]}, ["examples"]),
    "format": ({"type": "string", "format": "date"}, ["format"]),
    "enum of numbers": ({"type": "integer", "enum": [1, 2]}, ["enum"]),
    "empty enum text": ({"type": "string", "enum": ["", "x"]}, ["enum"]),
    "beside anyOf": ({"anyOf": [TEXT, {"type": "null"}], "default": None}, ["default"]),
    "beside types": ({"type": ["string", "null"], "minLength": 2}, ["minLength"]),
    "overwritten": ({"description": "D", "anyOf": [{**TEXT, "description": "d"}]}, ["anyOf/0/description"]),
    "no type": ({"description": "Anything."}, ["type"]),
    "no items": ({"type": "array"}, ["items"]),
}
KEPT: dict[str, Any] = {
    "numbers": {"type": "integer", "minimum": 1, "maximum": 3, "default": 2, "title": "T"},
    "text": {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^a", "description": "D"},
    "enum": {"type": "string", "enum": ["a", "b"]},
    "format": {"type": "string", "format": "date-time"},
    "array": {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3},
    "object": {"type": "object", "properties": {"b": TEXT}, "required": ["b"], "minProperties": 1},
    "anyOf": {"anyOf": [TEXT, {"type": "integer"}]},
}


@pytest.mark.parametrize(("a", "lost"), LOST.values(), ids=LOST)
def test_a_keyword_that_is_lost_is_recorded(a: Any, lost: list[str]) -> None:
    """request-shaping: A schema keyword that does not get through is recorded."""
    before = json.dumps(a)
    sent, where = arrived(schema_of(a))
    assert where == [f"/properties/a/{path}" for path in lost]
    assert sent != a
    assert json.dumps(a) == before, "the declaration is not changed"


@pytest.mark.parametrize("a", KEPT.values(), ids=KEPT)
def test_a_keyword_that_arrives_is_not_recorded(a: Any) -> None:
    assert arrived(schema_of(a)) == (a, [])


def test_a_definition_is_written_out_in_place() -> None:
    schema = schema_of({"$ref": "#/$defs/X"}, **{"$defs": {"X": {**TEXT, "minLength": 1}}})
    assert arrived(schema) == ({**TEXT, "minLength": 1}, [])
    schema["properties"]["a"] = {"$ref": "#/$defs/X", "description": "D"}
    assert arrived(schema) == ({**TEXT, "minLength": 1}, ["/properties/a/description"])


def test_a_property_named_strict_is_recorded() -> None:
    """request-shaping: A schema keyword that does not get through is recorded."""
    schema = {"type": "object", "properties": {"strict": TEXT, "a": TEXT}}
    assert arrived(schema) == (TEXT, ["/properties/strict"])


def test_a_keyword_is_recorded_once_a_tool_with_all_its_places() -> None:
    """request-shaping: A schema keyword that does not get through is recorded."""
    closed = schema_of({**schema_of(TEXT), "additionalProperties": False}, additionalProperties=False)
    _, changes, _ = asked([tool(closed), {"name": "other", "parameters": schema_of({"const": 1, **TEXT})}])
    assert [change.where for change in changes] == [
        f"{AT}/additionalProperties",
        "/tools/1/function/parameters/properties/a/const",
    ]
    assert "/properties/a/additionalProperties" in changes[0].why


NODE = schema_of({"$ref": "#/$defs/X"})
REFUSED: dict[str, tuple[Any, str]] = {
    "recursive": (schema_of(NODE, **{"$defs": {"X": NODE}}), "/$defs/X/properties/a/$ref"),
    "mutual": (
        schema_of(
            {"$ref": "#/$defs/X"}, **{"$defs": {"X": schema_of({"$ref": "#/$defs/Y"}), "Y": {"items": NODE}}}
        ),
        "/$defs/",
    ),
    "the root": (schema_of({"type": "array", "items": {"$ref": "#"}}), "/properties/a/items/$ref"),
    "no definition": (schema_of({"$ref": "#/properties/b"}) | {"required": []}, "/properties/a/$ref"),
    "true": (schema_of(True), "/properties/a"),
    "true items": (schema_of({"type": "array", "items": True}), "/properties/a/items"),
    "true way": (schema_of({"anyOf": [TEXT, True]}), "/properties/a/anyOf/1"),
    "nulls": (schema_of({"anyOf": [{"type": "null"}]}), "/properties/a/anyOf"),
    "named $ref": ({"type": "object", "properties": {"$ref": TEXT}}, "/properties/$ref"),
}
REFUSED["no definition"][0]["properties"]["b"] = TEXT


@pytest.mark.parametrize(("schema", "path"), REFUSED.values(), ids=REFUSED)
def test_a_schema_that_cannot_travel_is_refused(schema: Any, path: str) -> None:
    """request-shaping: A schema that cannot travel is refused."""
    with LoopbackProvider([Answer(text="Hi.")]) as provider:
        lm = dspy.LM(**provider.lm_options("gemini", engine="litellm"))
        adapter = sigadapt.ChatAdapter(tool_calling="native")
        with dspy.context(lm=lm, adapter=adapter), pytest.raises(InvalidToolDecl) as caught:
            dspy.Predict(Ask)(question="?", tools=[tool(schema)])
        assert not provider.received
    assert (caught.value.code, caught.value.tool) == ("not_portable", "t")
    assert (caught.value.path or "").startswith(path)
    assert 'engine="lm15"' in (caught.value.fix or "")


def test_the_native_engine_takes_what_cannot_travel() -> None:
    """request-shaping: A schema that cannot travel is refused."""
    recursive = REFUSED["recursive"][0]
    sent, changes, _ = asked([tool(recursive)], engine="lm15")
    assert sent[0]["functionDeclarations"][0]["parametersJsonSchema"] == recursive
    assert changes == ()


def test_the_answer_is_validated_against_the_schema_as_declared() -> None:
    """request-shaping: A schema keyword that does not get through is recorded."""
    even = tool(schema_of({"type": "integer", "multipleOf": 2}))
    with pytest.raises(ToolCallParseError) as caught:
        asked([even], answer=Answer(calls=[Call("t", {"a": 3})]))
    calls = caught.value.choice.tool_calls
    assert calls is not None
    (bad,) = calls.invalid
    assert (bad.code, bad.path) == ("schema_mismatch", "/a")
    _, _, out = asked([even], answer=Answer(calls=[Call("t", {"a": 4})]))
    assert out.calls[0].args == {"a": 4}


NATIVES: list[tuple[Any, bool, bool]] = [  # alone, beside a function
    ({"type": "web_search"}, True, False),
    ({"google_search": {}}, True, False),
    ({"urlContext": {}}, True, False),
    ({"code_execution": {}}, True, True),
    ({"googleMaps": {}}, True, True),
    ({"type": "web_search_20250305", "name": "web_search"}, False, False),
]


@pytest.mark.parametrize(("native", "alone", "beside"), NATIVES)
def test_a_native_tool_that_does_not_get_through_is_recorded(native: Any, alone: bool, beside: bool) -> None:
    """request-shaping: What a wire cannot take is recorded."""
    sent, changes, _ = asked([native])
    assert ("function_declarations" not in sent[0], changes == ()) == (alone, alone)
    sent, changes, _ = asked([tool(schema_of(TEXT)), native])
    assert (len(sent) == 2, changes == ()) == (beside, beside)
    assert [(change.where, change.what) for change in changes] == [("/tools/1", "dropped")] * (not beside)


def test_only_litellms_route_loses_anything() -> None:
    request: Any = {"model": "m", "messages": [], "tools": ToolDecls([tool(schema_of({}))]).to_openai()}
    assert len(lowered(request, LITELLM["gemini"]).changes) == 1
    assert lowered(request, NATIVE["gemini"]).changes == ()
