"""Tool choices, in sigadapt's words or in those of any provider, as one canonical form.

| canonical | means |
|---|---|
| `auto`, `required`, `none` | the modes |
| `{"type": "function", "function": {"name": ...}}` | this function; `custom` for a custom tool |
| `{"type": "allowed_tools", "allowed_tools": {"mode": ..., "tools": [...]}}` | one of several |
| `{"type": <type>, ...}` | the declared tool of this type, which the provider runs |

The mode of several is `auto`, `required`, or `validated`: the model may call one, and the provider checks the
arguments. Sources: the references of OpenAI (`tool_choice` of chat completions and Responses), Anthropic
(`tool_choice`), Google (`FunctionCallingConfig`) and Bedrock (`ToolChoice`); read on 2026-11-21.
"""

from collections.abc import Mapping
from typing import Any

from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import Json, cut, is_array, is_mapping, is_sequence
from sigadapt.signatures.native_tools import NativeTool
from sigadapt.signatures.tool_decls import ToolDecls

MODES = ("auto", "required", "none")

_MODE_WORDS = {
    **{mode: mode for mode in MODES},
    "any": "required",
    "AUTO": "auto",
    "ANY": "required",
    "NONE": "none",
    "VALIDATED": "validated",
}


def object_choice(choice: Mapping[str, Any], decls: ToolDecls) -> str | Json:
    """Return a tool choice that is an object, in its canonical form.

    Raises:
        InvalidOption: for an undeclared tool, and for an object that is not a tool choice.
    """
    config = choice.get("functionCallingConfig") or choice.get("function_calling_config") or choice
    if is_mapping(config) and "mode" in config and "type" not in config:
        return _of_config(config, decls)
    kind = choice.get("type") or next(iter(choice), None)
    inner = choice.get(kind) if isinstance(kind, str) else None
    part = inner if is_mapping(inner) else choice
    if kind == "allowed_tools":
        return _several(part.get("mode", "auto"), part.get("tools"), decls, choice)
    if kind in _MODE_WORDS:
        return _MODE_WORDS[kind]
    if kind in ("function", "custom", "tool") and isinstance(part.get("name"), str):
        return chosen(part["name"], decls)
    own = _of_type(decls, kind) if isinstance(kind, str) else None
    if own is None:
        raise not_a_choice(choice)
    return {"type": kind, **({"name": own.spec["name"]} if "name" in own.spec else {}), **choice}


def chosen(name: str, decls: ToolDecls) -> Json:
    """Return the canonical choice of one tool: a function, a custom tool, or one that the provider runs.

    Raises:
        InvalidOption: for an undeclared tool.
    """
    if name in decls:
        kind = "function" if decls[name].format is None else "custom"
        return {"type": kind, kind: {"name": name}}
    own = _of_name(decls, name)
    if own is not None:
        return {key: own.spec[key] for key in ("type", "name", "server_label") if key in own.spec}
    raise InvalidOption(
        f"the tool {cut(repr(name))} is not declared",
        field="tool_choice",
        tool=name,
        fix=f"Declared tools: {', '.join(decl.name for decl in decls) or 'none'}.",
    )


def not_a_choice(choice: object) -> InvalidOption:
    """Return the error for a value that is not a tool choice."""
    return InvalidOption(
        f"expected a tool choice, got {cut(repr(choice))}",
        field="tool_choice",
        fix="Use 'auto', 'required', 'none', a tool's name, or a list of names.",
    )


def form_of(choice: str | Json) -> str:
    """Return the form of a canonical tool choice, as `Route.choices` names it."""
    if isinstance(choice, str):
        return choice
    if choice["type"] == "allowed_tools":
        return "validated" if choice["allowed_tools"]["mode"] == "validated" else "subset"
    return {"function": "named", "custom": "custom"}.get(choice["type"], "own")


def forces_call(choice: str | Json | None) -> bool:
    """Return whether a canonical tool choice forces a call that the program runs."""
    if choice is None or isinstance(choice, str):
        return choice == "required"
    if choice["type"] == "allowed_tools":
        return choice["allowed_tools"]["mode"] == "required"
    return choice["type"] in ("function", "custom")


def _of_config(config: Mapping[str, Any], decls: ToolDecls) -> str | Json:
    mode = _MODE_WORDS.get(config["mode"]) if isinstance(config["mode"], str) else None
    given: object = config.get("allowedFunctionNames") or config.get("allowed_function_names") or []
    names: list[object] = given if is_array(given) else [given]
    if mode is None or not all(isinstance(name, str) for name in names):
        raise not_a_choice(config)
    entries = [chosen(str(name), decls) for name in names]
    if mode == "required" and len(entries) == 1:
        return entries[0]
    if not entries and mode != "validated":
        return mode
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": entries}}


def _several(mode: Any, tools: Any, decls: ToolDecls, choice: Mapping[str, Any]) -> Json:
    if mode not in ("auto", "required") or not is_sequence(tools) or not tools:
        raise not_a_choice(choice)
    entries: list[Json] = []
    for tool in tools:
        entry = object_choice(tool, decls) if is_mapping(tool) else ""
        if not isinstance(entry, dict) or entry["type"] == "allowed_tools":
            raise not_a_choice(choice)
        entries.append(entry)
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": entries}}


def _of_type(decls: ToolDecls, kind: str) -> NativeTool | None:
    """Return the declared tool of this type that the provider runs."""
    own = (entry for entry in decls.entries if isinstance(entry, NativeTool))
    return next((entry for entry in own if entry.kind == kind), None)


def _of_name(decls: ToolDecls, name: str) -> NativeTool | None:
    """Return the declared tool with this name that the provider runs; else the one of this type."""
    own = (entry for entry in decls.entries if isinstance(entry, NativeTool))
    return next((entry for entry in own if entry.spec.get("name") == name), None) or _of_type(decls, name)
