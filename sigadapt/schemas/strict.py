"""Make a tool's schema compatible with strict mode, or refuse it (nothing silent, strict on request).

In strict mode, every object has `"additionalProperties": false` and requires all of its properties. An object
that names its properties and says nothing of others is closed here, and the caller gets its place. What would
change the arguments that the tool accepts is refused: a free-form object, an optional property, a value of
any type. So are a keyword that strict mode does not support, and a reference to a schema that was not closed.
Providers differ in what they take: `StrictRules` says it for one of them.
"""

from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple
from urllib.parse import unquote

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, Keys, is_array, is_object, pointer
from sigadapt.schemas.subschemas import rebuilt

_UNKNOWN = (
    *("allOf", "oneOf", "not", "if", "then", "else", "contains", "patternProperties"),
    *("unevaluatedProperties", "unevaluatedItems", "propertyNames", "minProperties", "maxProperties"),
    *("dependencies", "dependentRequired", "dependentSchemas", "additionalItems"),
    *("prefixItems", "uniqueItems"),  # a tuple's and a set's
    *("$dynamicRef", "$recursiveRef"),
)
_SAYS_WHAT = ("type", "enum", "const", "anyOf", "$ref", "properties")


class StrictRules(NamedTuple):
    """What the strict mode of one provider takes."""

    # The defaults are OpenAI's. Source: "Supported schemas" of its structured outputs guide.
    requires_all: bool = True  # every property must be required
    refused: frozenset[str] = frozenset()  # keywords, beyond those that no strict mode takes
    most: tuple[tuple[str, int], ...] = ()  # the largest value of a keyword, by keyword
    recursion: bool = True  # a schema may refer to itself


class StrictTool(NamedTuple):
    """A tool for strict mode, and the JSON Pointers of the objects in its schema that were closed."""

    tool: Json
    closed: tuple[str, ...]


_OF_OPENAI = StrictRules()


def strict_tool(tool: Json, rules: StrictRules = _OF_OPENAI) -> StrictTool:
    """Return the tool with a schema that strict mode accepts; refuse it where strict mode would."""
    function = tool["function"]
    closing = _Closing(function["name"], rules)
    parameters = closing.schema(function["parameters"], ())
    closing.check_references()
    return StrictTool(
        {**tool, "function": {**function, "parameters": parameters}}, tuple(sorted(closing.closed))
    )


class _Closing:
    """Walks one schema, and records which places it saw, which it closed and which are referred to."""

    # A walk is as deep as a declared schema may be (`SCHEMA_LEVELS`), so recursion is safe.
    def __init__(self, tool: str, rules: StrictRules) -> None:
        self._tool = tool
        self._rules = rules
        self._seen: set[str] = set()
        self._references: list[tuple[str, Keys]] = []
        self.closed: list[str] = []

    def schema(self, schema: Any, path: Keys) -> Any:
        """Return a copy of the schema with its objects closed."""
        if schema is True:
            self._refuse("strict mode takes no value of any type", path, fix="Give it a type.")
        if not is_object(schema):
            return schema
        self._seen.add(pointer(path))
        self._check_words(schema, path)

        def close(subschema: Any, keys: Keys) -> Any:
            if keys[0] == "additionalProperties":  # `_close` judges it
                return subschema
            return self.schema(subschema, (*path, *keys))

        copy = rebuilt(schema, close)
        declared = schema.get("type")
        types = declared if is_array(declared) else [declared]
        if "array" in types and "items" not in schema:
            self._refuse("strict mode takes no array of any items", path, fix="Give it `items`.")
        if "properties" in schema or "object" in types:
            self._close(copy, path)
        return copy

    def check_references(self) -> None:
        """Refuse a reference to a place that the walk did not see."""
        for reference, path in self._references:
            if not reference.startswith("#") or unquote(reference[1:]) not in self._seen:
                self._refuse(f"strict mode cannot follow {reference!r}", path, fix="Put it under `$defs`.")
        if self._rules.recursion:
            return
        uses: dict[str, set[str]] = {}
        for reference, path in self._references:
            uses.setdefault(_definition(pointer(path)), set()).add(_definition(unquote(reference[1:])))
        try:
            TopologicalSorter(uses).prepare()
        except CycleError as error:
            inside = error.args[1][1]
            reference_path = next(
                path for _, path in self._references if _definition(pointer(path)) == inside
            )
            self._refuse("this provider's strict mode takes no recursive schema", reference_path)

    def _check_words(self, schema: Json, path: Keys) -> None:
        for word in _UNKNOWN:
            if word in schema:
                self._refuse(f"strict mode does not support {word!r}", (*path, word))
        for word in self._rules.refused & schema.keys():
            self._refuse(f"this provider's strict mode does not support {word!r}", (*path, word))
        for word, limit in self._rules.most:
            if schema.get(word, 0) > limit:
                self._refuse(f"this provider's strict mode takes {word!r} up to {limit}", (*path, word))
        if path and not any(word in schema for word in _SAYS_WHAT):
            self._refuse("strict mode takes no value of any type", path, fix="Give it a type.")
        if isinstance(schema.get("$ref"), str):
            self._references.append((schema["$ref"], (*path, "$ref")))

    def _close(self, schema: Json, path: Keys) -> None:
        if "additionalProperties" not in schema and "properties" in schema:
            self.closed.append(pointer(path))
            schema["additionalProperties"] = False
        elif schema.get("additionalProperties") is not False:
            fault_path = (*path, "additionalProperties") if "additionalProperties" in schema else path
            self._refuse("strict mode takes closed objects only", fault_path, fix="Name its `properties`.")
        required: list[str] = schema.get("required", [])
        properties: Json = schema.setdefault("properties", {})
        optional = [name for name in properties if name not in required]
        if optional and self._rules.requires_all:
            name = optional[0]
            self._refuse(
                f"{name!r} is optional, and strict mode requires every property",
                (*path, "properties", name),
                fix="Require it, with null among its types if it may be left out.",
            )
        for name in required:
            if name not in properties:
                self._refuse(f"{name!r} is required and not among the properties", (*path, "required"))
        schema["required"] = list(required)

    def _refuse(self, reason: str, path: Keys, fix: str | None = None) -> None:
        raise InvalidToolDecl(reason, code="not_strict", tool=self._tool, path=pointer(path), fix=fix)


def _definition(path: str) -> str:
    """Return the pointer of the definition that a place is in; an empty text outside of definitions."""
    keys = path.split("/")
    return "/".join(keys[:3]) if keys[1:2] in (["$defs"], ["definitions"]) else ""
