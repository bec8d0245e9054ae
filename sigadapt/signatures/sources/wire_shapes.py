"""Dicts as a source of tools: the shapes that providers and MCP use, each told by a key that only it has.

| shape | told by | function under | schema under |
|---|---|---|---|
| OpenAI chat | `function` | `function` | `parameters` |
| OpenAI responses | `"type": "function"` | | `parameters` |
| Anthropic | `input_schema` | | `input_schema` |
| MCP | `inputSchema` | | `inputSchema` |
| Bedrock Converse | `toolSpec` | `toolSpec` | `inputSchema.json` |
| Gemini | `functionDeclarations` | each of the list | `parametersJsonSchema` or `parameters` |
| bare | `name` | | `parameters` |

A schema passes through as the same object. One in Gemini's words is no JSON Schema and becomes one
(`gemini_words.py`): Gemini's own `parameters`, and in any shape a schema of type `OBJECT`, in capitals.

What a dict says beside the function (`cache_control`, `defer_loading`, `annotations`) is kept as `extras`.
The bare shape is what a declaration is saved as, and nobody's protocol, so an unknown key in it is an error.
"""

from typing import Any, NamedTuple, NoReturn, TypeGuard, cast

from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.arguments import shown
from sigadapt.signatures.near_miss import near_miss
from sigadapt.signatures.schema import check_json
from sigadapt.signatures.sources.facts import Facts
from sigadapt.signatures.sources.gemini_words import in_json_schema
from sigadapt.signatures.subschemas import Json


class _Shape(NamedTuple):
    schema: str = "parameters"
    returns: str = ""
    under: str = ""
    schema_in: str = ""


_SHAPES = {
    "function": _Shape(under="function"),
    "input_schema": _Shape("input_schema"),
    "inputSchema": _Shape("inputSchema", "outputSchema"),
    "toolSpec": _Shape("inputSchema", under="toolSpec", schema_in="json"),
    "parametersJsonSchema": _Shape("parametersJsonSchema", "responseJsonSchema"),
    "parameters_json_schema": _Shape("parameters_json_schema", "response_json_schema"),
    "parameters": _Shape(),
}
_GEMINI_LISTS = ("functionDeclarations", "function_declarations")
_GEMINI_OWN = _Shape(returns="response")
_MARKS = (*_SHAPES, *_GEMINI_LISTS)
_BARE = (
    "name",
    "description",
    "parameters",
    "returns",
    "strict",
    "long_running",
    "requires_confirmation",
    "extras",
)


def reads(source: object) -> TypeGuard[Json]:
    """Whether the source is a dict that some shape of declaration could be."""
    return isinstance(source, dict) and any(key in source for key in ("name", "type", *_MARKS))


def read(source: Json, parameters: Json | None) -> list[Facts]:
    """Say what a dict declares: one tool, or in Gemini's shape any number.

    Args:
        source: the dict; not changed.
        parameters: a schema to use in place of its own.

    Raises:
        InvalidToolDecl: `unknown_source` for no shape, several shapes, or a tool that its provider runs.

    Example:
        >>> schema = {"type": "object", "properties": {"q": {"type": "string"}}}
        >>> [facts] = read({"name": "search", "input_schema": schema}, None)
        >>> facts.parameters is schema
        True
    """
    marks = [mark for mark in _MARKS if mark in source]
    _check_kind(source, marks)
    if marks and marks[0] in _GEMINI_LISTS:
        facts = _gemini(source, marks[0])
    elif marks in ([], ["parameters"]) and source.get("type") is None:
        facts = [_bare(source)]
    else:
        facts = [_facts(source, _SHAPES[marks[0] if marks else "parameters"])]
    return facts if parameters is None else [fact._replace(parameters=parameters) for fact in facts]


def _check_kind(source: Json, marks: list[str]) -> None:
    kind = source.get("type")
    if kind == "object":
        _refuse(
            source, "a JSON Schema alone declares no tool", fix="Give {'name': …, 'parameters': the schema}."
        )
    if kind not in (None, "function") and (kind, marks) != ("custom", ["input_schema"]):
        reason = f"a tool of type {shown(repr(kind))}, which its provider runs, is no function"
        _refuse(source, reason, fix="Give it to ToolDecls as it is, beside the functions.")
    if len(marks) > 1:
        _refuse(source, f"it is of several shapes at once ({', '.join(map(repr, marks))})")


def _facts(source: Json, shape: _Shape) -> Facts:
    function = _part(source, shape.under) if shape.under else source
    schema = function.get(shape.schema)
    if shape.schema_in and schema is not None:
        schema = _part(function, shape.schema).get(shape.schema_in)
    if _is_gemini(schema):
        schema = _translated(schema, function)
    beside = _rest(source, "type", shape.under) if shape.under else {}
    extras = beside | _rest(function, "type", "name", "description", "strict", shape.schema, shape.returns)
    return Facts(
        function.get("name"),
        function.get("description"),
        schema,
        function.get(shape.returns),
        function.get("strict"),
        extras=extras or None,
    )


def _bare(source: Json) -> Facts:
    unknown = _rest(source, *_BARE)
    if unknown:
        key = next(iter(unknown))
        near = near_miss(str(key), _BARE)
        fix = f"Did you mean {near!r}?" if near else None
        _refuse(source, f"a bare declaration has no key {shown(repr(key))}", fix=fix)
    return _facts(source, _Shape(returns="returns"))._replace(
        extras=source.get("extras"),
        long_running=source.get("long_running") or False,
        requires_confirmation=source.get("requires_confirmation") or False,
    )


def _gemini(source: Json, key: str) -> list[Facts]:
    others = ", ".join(map(repr, _rest(source, key)))
    if others:
        _refuse(source, f"beside functions it holds {others}, which its provider runs", fix="Part them.")
    declarations: object = source[key]
    if not isinstance(declarations, list):
        _refuse(source, f"{key!r} is not a list")
    return [_gemini_function(source, one) for one in cast("list[object]", declarations)]


def _gemini_function(source: Json, declaration: object) -> Facts:
    if not isinstance(declaration, dict):
        _refuse(source, "one of its function declarations is not an object")
    function = cast("Json", declaration)
    marks = [mark for mark in _SHAPES if function.get(mark) is not None]
    if len(marks) > 1:
        _refuse(function, f"it has several schemas ({', '.join(map(repr, marks))})")
    if marks and marks != ["parameters"]:
        return _facts(function, _SHAPES[marks[0]])
    facts = _facts(function, _GEMINI_OWN)
    return facts._replace(
        parameters=_translated(facts.parameters, function), returns=_translated(facts.returns, function)
    )


def _is_gemini(schema: object) -> bool:
    return isinstance(schema, dict) and cast("Json", schema).get("type") == "OBJECT"


def _translated(schema: object, function: Json) -> Any:
    name = function.get("name")
    check_json(schema, tool=name if isinstance(name, str) else None)  # so that translating comes to an end
    return in_json_schema(schema)


def _part(source: Json, key: str) -> Json:
    part: object = source[key]
    if not isinstance(part, dict):
        _refuse(source, f"{key!r} is not an object")
    return cast("Json", part)


def _rest(source: Json, *known: str) -> Json:
    return {key: value for key, value in source.items() if key not in known}


def _refuse(source: Json, reason: str, *, fix: str | None = None) -> NoReturn:
    name: Any = source.get("name")
    tool = name if isinstance(name, str) else None
    raise InvalidToolDecl(reason, code="unknown_source", tool=tool, fix=fix)
