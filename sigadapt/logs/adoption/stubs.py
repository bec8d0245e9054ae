"""Declarations as typed Python functions to fill in: names, annotations and docstrings, as people write them.

Whatever a log says is a literal in the text: no name, description or value of it becomes code.
"""

import inspect
import keyword
from ast import literal_eval
from collections.abc import Iterable, Iterator
from typing import Any

from sigadapt.schemas.json_values import Json, is_array, is_object
from sigadapt.signatures.tool_decl import ToolDecl

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
}
_MOST_LEVELS = 4
_MOST_LITERALS = 24
_QUOTES = '"""'


def stub_of(decl: ToolDecl, name: str) -> str:
    """Return the text of a function of this name that raises NotImplementedError."""
    parameters = [*_parameters(decl.parameters)]
    text = docstring(_description(decl, dict(parameters).keys()), "    ")
    reason = f"{decl.name} is a stub: put your own function here"
    returns = annotation(decl.returns) if decl.returns else "Any"
    head = f"def {name}({', '.join(part for _, part in parameters)}) -> {returns}:"
    body = [head, *([f"    {text}"] if text else []), f"    raise NotImplementedError({literal(reason)})"]
    return "\n".join(body)


def names_of(decls: Iterable[ToolDecl], taken: Iterable[str]) -> dict[str, str]:
    """Return the names of the functions of declarations, none of which is taken twice."""
    names: dict[str, str] = {}
    used = {*taken}
    for decl in decls:
        name = "".join(
            char if char.isascii() and (char.isalnum() or char == "_") else "_" for char in decl.name
        )
        if not name.isidentifier():
            name = f"tool_{name}"
        while name in used or keyword.iskeyword(name) or keyword.issoftkeyword(name):
            name += "_"
        used.add(name)
        names[decl.name] = name
    return names


def _parameters(schema: Json) -> Iterator[tuple[str, str]]:
    """Yield the names and the texts of a function's parameters, those without a default first."""
    properties = schema.get("properties")
    required: Any = schema.get("required") or ()
    optional: list[tuple[str, str]] = []
    has_strange_names = False
    for name, part in (properties if is_object(properties) else {}).items():
        is_name = name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
        if not is_name or name.startswith("__"):
            has_strange_names = True
        elif name in required:
            yield name, f"{name}: {annotation(part)}"
        else:
            optional.append((name, f"{name}: {_with_default(part)}"))
    yield from optional
    if has_strange_names:
        yield "**", "**others: Any"


def _with_default(schema: Any) -> str:
    """Return the annotation and the default of a parameter that may be left out."""
    kind = annotation(schema)
    default = schema.get("default") if is_object(schema) else None
    if default is not None and isinstance(default, (str, int, float, bool)):
        return f"{kind} = {literal(default)}"
    is_optional = kind == "Any" or kind.endswith("None")
    return f"{kind} = None" if is_optional else f"{kind} | None = None"


def annotation(schema: Any, levels: int = _MOST_LEVELS) -> str:
    """Return the Python annotation of a JSON Schema; `Any` for what Python has no short word for."""
    if not is_object(schema) or not levels:
        return "Any"
    if options := _literals(schema):
        return f"Literal[{', '.join(options)}]"
    for key in ("anyOf", "oneOf"):
        if is_array(schema.get(key)) and schema[key]:
            return _union(annotation(part, levels - 1) for part in schema[key])
    kind = schema.get("type")
    if is_array(kind):
        return _union(annotation({**schema, "type": each}, levels - 1) for each in kind)
    name = _TYPES.get(kind, "Any") if isinstance(kind, str) else "Any"
    if kind == "array":
        name = f"list[{annotation(schema.get('items'), levels - 1)}]"
    return _union((name, "None")) if schema.get("nullable") is True else name


def _literals(schema: Json) -> list[str]:
    """Return the values of a schema that lists them, as Python literals; none for another one."""
    options: Any = schema.get("enum")
    if "const" in schema:
        options = [schema["const"]]
    if not is_array(options) or len(options) > _MOST_LITERALS:
        return []
    is_plain = all(isinstance(option, (str, int)) or option is None for option in options)
    return [*map(literal, options)] if is_plain else []


def _union(kinds: Iterable[str]) -> str:
    """Return the union of annotations, None last."""
    names = [*dict.fromkeys(kinds)]
    if "Any" in names:
        return "Any"
    names.sort(key=lambda name: name == "None")
    return " | ".join(names) or "Any"


def _description(decl: ToolDecl, names: Iterable[str]) -> str:
    """Return what a stub's docstring says: the description, and one line for each described parameter."""
    lines = [decl.description] if decl.description else []
    properties = decl.parameters.get("properties")
    arguments: list[str] = []
    for name in names:
        part = properties.get(name) if is_object(properties) else None
        text = part.get("description") if is_object(part) else None
        if text:
            arguments.append(f"    {name}: {' '.join(str(text).split())}")
    if arguments:
        lines += ["", "Args:", *arguments]
    return "\n".join(lines).strip("\n")


def docstring(text: str, indent: str) -> str:
    """Return a literal of a text as a docstring that reads well; an empty text for none.

    Python cleans a docstring. A text that would not survive this is one literal in one line.
    """
    if not text:
        return ""
    start = text.rstrip('"')
    body = "".join(map(_escape, start.replace("\\", "\\\\").replace(_QUOTES, '\\"\\"\\"')))
    body += '\\"' * (len(text) - len(start))
    lines = [
        f"{indent}{line}" if line.strip() and number else line for number, line in enumerate(body.split("\n"))
    ]
    end = f"\n{indent}" if len(lines) > 1 else ""
    quoted = "\n".join([f"{_QUOTES}{lines[0]}", *lines[1:]]) + f"{end}{_QUOTES}"
    return quoted if inspect.cleandoc(literal_eval(quoted)) == text else literal(text)


def _escape(char: str) -> str:
    """Return a character as it stands in a literal of several lines."""
    return char if char == "\n" or char.isprintable() else literal(char)[1:-1]


def literal(value: Any) -> str:
    """Return a scalar as a Python literal, a text in double quotes where that is shorter."""
    text = repr(value)
    if isinstance(value, str) and text.startswith("'") and '"' not in text:
        return f'"{text[1:-1]}"'
    return text
