"""Dicts as tools: the shapes that providers and MCP use, and the fields that each becomes in a `ToolDecl`.

Each shape is recognised by a key of its own.

| shape | recognised by | function under | schema under |
|---|---|---|---|
| OpenAI chat | `function` | `function` | `parameters` |
| OpenAI responses | `"type": "function"` | | `parameters` |
| OpenAI custom tool | `"type": "custom"` | or `custom` | none: it takes text |
| OpenAI namespace | `"type": "namespace"` | each of `tools` | as each of them says |
| Anthropic | `input_schema` | | `input_schema` |
| MCP | `inputSchema` | | `inputSchema` |
| Bedrock Converse | `toolSpec` | `toolSpec` | `inputSchema.json` |
| Gemini | `functionDeclarations` | each of the list | `parametersJsonSchema` or `parameters` |
| bare | `name` | | `parameters` |

A JSON Schema is kept as the same object. A schema in Gemini's format is translated (`in_json_schema`):
Gemini's `parameters`, and in any shape a schema with the type `OBJECT`, in capitals.

Other keys (`cache_control`, `defer_loading`, `annotations`, and unknown keys) are kept as
`extras`, as they are written. So is the schema of a result, beside `returns`, because providers name it
differently. The bare shape is sigadapt's own, in which declarations are saved; a misspelt key in it is an
error. A tool of a namespace has the extra `namespace`: the namespace's own fields. Each shape may also be
JSON text, of one dict or of a list of dicts.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypedDict, TypeGuard

import jiter

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, closest, cut, is_array, is_object
from sigadapt.schemas.checking import check_json
from sigadapt.schemas.subschemas import rebuilt

Fields: TypeAlias = dict[str, Any]
"""Arguments of `ToolDecl` as a source has them, unchecked; one that is missing or None has its default."""


class DeclFields(TypedDict, total=False):
    """The arguments of `ToolDecl` that a person may write: in a dict of a tool, or over any source."""

    name: str
    description: str | None
    parameters: Json | None
    returns: Json | None
    strict: bool | None
    long_running: bool
    requires_confirmation: bool | Callable[[dict[str, Any]], Any]
    extras: Json | None
    format: Json | None
    timeout: float | None
    sequential: bool
    instructions: str | None
    check_result: bool
    external: bool


DECL_FIELDS = tuple(DeclFields.__annotations__)
"""Their names, in order."""


class _Shape(NamedTuple):
    """The key of the function, and within it those of its schema and of its result's."""

    schema: str = "parameters"
    returns: str = ""
    under: str = ""


_SHAPES = {
    "function": _Shape(under="function"),
    "input_schema": _Shape("input_schema"),
    "inputSchema": _Shape("inputSchema", "outputSchema"),
    "toolSpec": _Shape("inputSchema", under="toolSpec"),
    "parametersJsonSchema": _Shape("parametersJsonSchema", "responseJsonSchema"),
    "parameters_json_schema": _Shape("parameters_json_schema", "response_json_schema"),
    "parameters": _Shape(returns="output_schema"),
}
_GEMINI_LISTS = ("functionDeclarations", "function_declarations")

GEMINI_SEARCHES = frozenset(
    {"google_search", "google_search_retrieval", "enterprise_web_search", "url_context"}
) | {"googleSearch", "googleSearchRetrieval", "enterpriseWebSearch", "urlContext"}
"""The keys of Gemini's native tools that search."""

_GEMINI_OTHERS = frozenset({"google_maps", "code_execution", "file_search", "computer_use", "retrieval"}) | {
    *("mcp_servers", "googleMaps", "codeExecution", "fileSearch", "computerUse", "mcpServers")
}

PROVIDER_TOOL_KEYS = GEMINI_SEARCHES | _GEMINI_OTHERS | {"systemTool", "cachePoint"}
"""The keys of Gemini's and Bedrock's native tools, which the provider runs itself."""

MARKS = {*_SHAPES, *_GEMINI_LISTS}
"""The keys by which a shape is recognised."""


_CAMEL = {
    "any_of": "anyOf",
    "additional_properties": "additionalProperties",
    "defs": "$defs",
    "max_items": "maxItems",
    "max_length": "maxLength",
    "max_properties": "maxProperties",
    "min_items": "minItems",
    "min_length": "minLength",
    "min_properties": "minProperties",
    "property_ordering": "propertyOrdering",
    "ref": "$ref",
}
_SIZES = ("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties")


def accepts(source: object) -> TypeGuard[Json]:
    """Return whether the source is a dict with a key of one of the shapes."""
    return is_object(source) and any(key in source for key in ("name", "type", *MARKS))


def describe(source: Json, parameters: Json | None) -> list[Fields]:
    """Describe a dict as tools: one tool, or in Gemini's shape any number."""
    if source.get("type") == "namespace":
        return _namespace(source)
    kind = source.get("type")
    marks = [mark for mark in (*_SHAPES, *_GEMINI_LISTS) if mark in source]
    if kind == "custom" and not marks:
        return [_custom(source)]
    _refuse_other_kinds(source, kind, marks)
    if marks and marks[0] in _GEMINI_LISTS:
        tools = _gemini(source, marks[0])
    elif marks in ([], ["parameters"]) and kind is None:
        tools = [_bare(source)]
    else:
        shape = _SHAPES[marks[0]] if marks else _SHAPES["parameters"]
        tools = [_fields(source, shape)]
    return tools if parameters is None else [{**one, "parameters": parameters} for one in tools]


def _refuse_other_kinds(source: Json, kind: object, marks: list[str]) -> None:
    # People pass the schema alone, whose `type` would read as a kind of tool.
    if kind == "object":
        fix = "Give {'name': …, 'parameters': the schema}."
        _refuse(source, "expected a tool, got a JSON Schema", fix)
    # Anthropic calls the function that the program runs a tool of type `custom`.
    if kind not in (None, "function") and (kind, marks) != ("custom", ["input_schema"]):
        reason = f"expected a function, got a tool of type {cut(repr(kind))}, which its provider runs"
        _refuse(source, reason, "Give it to ToolDecls as it is, beside the functions.")
    if len(marks) > 1:
        reason = f"it mixes several shapes ({', '.join(map(repr, marks))})"
        _refuse(source, reason, "Keep the keys of one.")


def _fields(source: Json, shape: _Shape) -> Fields:
    function = _part(source, shape.under) if shape.under else source
    schema = function.get(shape.schema)
    if shape.under == "toolSpec" and schema is not None:
        schema = _part(function, shape.schema).get("json")
    # A declaration of Gemini's that was put into the shape of another provider.
    if is_object(schema) and schema.get("type") == "OBJECT":  # Gemini's capitals
        schema = _translate(schema, function)
    beside = _rest(source, "type", shape.under) if shape.under else {}
    extras = _join(source, beside, _rest(function, "type", "name", "description", "strict", shape.schema))
    named = {key: function.get(key) for key in ("name", "description", "strict")}
    return {**named, "parameters": schema, "returns": function.get(shape.returns), "extras": extras or None}


def _bare(source: Json) -> Fields:
    beside = _rest(source, *DECL_FIELDS)
    for key in beside:
        near = closest(str(key), DECL_FIELDS)
        if near:
            _refuse(source, f"the key {cut(repr(key))} is unknown", f"Did you mean {near!r}?")
    extras = source.get("extras")
    if beside and (extras is None or is_object(extras)):
        extras = {**(extras or {}), **beside}
    own = {key: source[key] for key in source if key in DECL_FIELDS}
    return {**own, **_fields(source, _Shape(returns="returns")), "extras": extras}


def _custom(source: Json) -> Fields:
    """Describe a custom tool, in the shape of OpenAI's Responses or of its chat completions."""
    is_chat = "custom" in source
    tool = _part(source, "custom") if is_chat else source
    form: object = tool.get("format")
    if is_object(form) and is_object(grammar := form.get("grammar")):
        form = {**_rest(form, "grammar"), **grammar}
    beside = _rest(source, "type", "custom") if is_chat else {}
    extras = _join(source, beside, _rest(tool, "type", "name", "description", "format"))
    form = {} if form is None else form
    named = {key: tool.get(key) for key in ("name", "description")}
    return {**named, "extras": extras or None, "format": form}


def _namespace(source: Json) -> list[Fields]:
    """Describe the tools of a namespace; each has the namespace's own fields as an extra."""
    tools: object = source.get("tools")
    if not is_array(tools):
        _refuse(source, "its 'tools' is not a list")
    fields = _rest(source, "type", "tools")
    described: list[Fields] = []
    for tool in tools:
        if not is_object(tool) or tool.get("type") not in ("function", "custom"):
            _refuse(source, "it holds something that is neither a function nor a custom tool")
        described += describe(tool, None)
    return [{**each, "extras": {**(each["extras"] or {}), "namespace": fields}} for each in described]


def _gemini(source: Json, key: str) -> list[Fields]:
    others = ", ".join(map(repr, _rest(source, key)))
    if others:
        reason = f"beside functions it holds {others}, which the provider runs"
        _refuse(source, reason, "Put them into a dict of their own.")
    declarations: object = source[key]
    if not is_array(declarations):
        _refuse(source, f"{key!r} is not a list")
    described: list[Fields] = []
    for function in declarations:
        if not is_object(function):
            _refuse(source, "one of its function declarations is not an object")
        marks = [mark for mark in _SHAPES if function.get(mark) is not None]
        if len(marks) > 1:
            _refuse(function, f"it has several schemas ({', '.join(map(repr, marks))})", "Keep one.")
        if marks and marks != ["parameters"]:
            described.append(_fields(function, _SHAPES[marks[0]]))
        else:
            tool = _fields(function, _Shape(returns="response"))
            schemas = {name: _translate(tool[name], function) for name in ("parameters", "returns")}
            described.append({**tool, **schemas})
    return described


def _translate(schema: object, function: Json) -> Any:
    name = function.get("name")
    tool = name if isinstance(name, str) else None
    check_json(schema, tool=tool)  # bounds the recursion of translating
    return in_json_schema(schema)


def _part(source: Json, key: str) -> Json:
    part: object = source[key]
    if not is_object(part):
        _refuse(source, f"{key!r} is not an object")
    return part


def _join(source: Json, beside: Json, within: Json) -> Json:
    """Return the fields beside a function and those within it, unless these contradict each other."""
    # OpenAI's two APIs put a field beside the function or within it; a tool copied from both may differ.
    for key in beside.keys() & within.keys():
        if beside[key] != within[key]:
            _refuse(source, f"it says {cut(repr(key))} twice, with two values", "Keep one.")
    return beside | within


def _rest(source: Json, *names: str) -> Json:
    return {key: value for key, value in source.items() if key not in names}


def _refuse(source: Json, reason: str, fix: str | None = None) -> NoReturn:
    name: Any = source.get("name")
    tool = name if isinstance(name, str) else None
    raise InvalidToolDecl(reason, code="unknown_source", tool=tool, fix=fix)


def is_json_text(source: object) -> TypeGuard[str]:
    """Return whether a value is text that begins like a JSON object or array."""
    return isinstance(source, str) and source.lstrip()[:1] in ("{", "[")


def decode(text: str) -> Any:
    """Decode JSON text of tools."""
    try:
        return jiter.from_json(text.encode(), allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise InvalidToolDecl(f"not JSON ({error}): {cut(text)}", code="invalid_json") from error


def in_json_schema(schema: Any) -> Any:
    """Return a schema in Gemini's format as JSON Schema: the same object if nothing differs."""
    # Types in capitals, `nullable`, sizes as text (64-bit numbers in protobuf's JSON), the SDK's snake case.
    # Source: `Schema` of the Gemini API, v1beta.
    if not is_object(schema):
        return schema
    words: Json = {_CAMEL.get(key, key): value for key, value in schema.items()}
    declared = words.get("type")
    if isinstance(declared, str) and declared.isupper():
        words["type"] = declared.lower()
    for key in _SIZES:
        if isinstance(size := words.get(key), str) and size.isdecimal():
            words[key] = int(size)
    if words.pop("nullable", None) is True:
        _allow_null(words)
    words = rebuilt(words, lambda subschema, _: in_json_schema(subschema))
    return schema if words == schema else words


def _allow_null(schema: Json) -> None:
    if type(schema.get("type")) is str:
        schema["type"] = [schema["type"], "null"]
    if is_array(alternatives := schema.get("anyOf")):
        schema["anyOf"] = [*alternatives, {"type": "null"}]
    if is_array(allowed := schema.get("enum")) and None not in allowed:
        schema["enum"] = [*allowed, None]
