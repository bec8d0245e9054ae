"""The program that a command runs for a signature or a module, and values for what it takes."""

import inspect
import json
import types
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import dspy
from pydantic.fields import FieldInfo

from sigadapt import ToolDecls
from sigadapt.adapters.plan import plan_of
from sigadapt.errors import InvalidOption
from sigadapt.signatures.native_tools import NativeTool


class Program(NamedTuple):
    """A program, and what it is given."""

    name: str
    module: dspy.Module
    inputs: dict[str, Any]
    placeholders: list[str]
    """The names of the inputs that nobody gave."""
    left_out: list[str]
    """The kinds of the provider's own tools, where the program takes functions alone."""


def program_of(target: Any, decls: ToolDecls, inputs: Iterable[str], *, react: bool = False) -> Program:
    """Return the program of a signature or a module."""
    module = signature = target
    parameters: dict[str, FieldInfo] | None = None
    if isinstance(target, dspy.Module):
        predictors: list[Any] = target.predictors()
        if not predictors:
            reason = f"{type(target).__name__} has no predictors, and so it sends no request"
            raise InvalidOption(reason, field="signature", fix="Name a module with a dspy.Predict in it.")
        parameters = None if react else _parameters_of(target, predictors)
        signature = getattr(target, "signature", None) or predictors[0].signature
    elif not react:
        module = dspy.Predict(target)
    fields: dict[str, FieldInfo] = signature.input_fields if parameters is None else parameters
    if parameters is None:
        name = signature.__name__
        tools = tools_field(signature)
        reason = f"{name} has no tools field"
        fix = "Add `tools: ToolDecls` and `calls: ToolCalls` to it, or give --react."
    else:
        name = type(target).__name__
        tools = next((each for each, field in fields.items() if _TOOLS & {*_members(field.annotation)}), None)
        reason = f"the forward of {name} takes no tools"
        fix = "Add a parameter `tools: ToolDecls` to it, or leave out --tools."
    if react:
        if tools is not None:
            fix = "Leave out --react, or name a signature without tool fields."
            reason = f"{signature.__name__} has a tools field of its own, and --react adds one"
            raise InvalidOption(reason, field="react", fix=fix)
        try:
            module = dspy.ReActV2(signature, tools=_for_dspy(decls))
        except ValueError as error:
            raise InvalidOption(f"dspy.ReActV2 refuses this: {error}", field="react") from error
    elif decls.entries and tools is None:
        raise InvalidOption(reason, field="tools", fix=fix)
    takes_all = not react and (tools is None or _takes_all(fields[tools].annotation))
    kinds = [] if takes_all else [entry.kind for entry in decls.entries if isinstance(entry, NativeTool)]
    return Program(name, module, *inputs_of(fields, inputs, decls, tools), kinds)


def tools_field(signature: Any) -> str | None:
    """Return the name of a signature's tools field; None if it has none."""
    plan = plan_of(signature)
    return None if plan is None else plan.tools


def _parameters_of(module: Any, predictors: Iterable[Any]) -> dict[str, FieldInfo] | None:
    """Return what a module's own forward takes; None if it takes whatever the signature has."""
    forward = getattr(module, "forward", None)
    if forward is None:
        return None
    parameters = inspect.signature(forward).parameters.values()
    by_name = [each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    if not by_name and any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    try:
        hints = {name: hint for name, hint in get_type_hints(forward).items() if hint is not Any}
    except Exception:  # a name that only a type checker knows
        hints = {}
    fields = (each.signature.input_fields.items() for each in predictors)
    hints = {name: field.annotation for items in fields for name, field in items} | hints
    return {
        each.name: FieldInfo(
            annotation=hints.get(each.name, str), default=... if each.default is each.empty else each.default
        )
        for each in by_name
    }


def inputs_of(
    fields: Mapping[str, FieldInfo], texts: Iterable[str], decls: ToolDecls, tools: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Return values for fields, of which `tools` gets the tools, and the names of those that nobody gave."""
    values: dict[str, Any] = {}
    for item in texts:
        name, equals, value = item.partition("=")
        if name not in fields or not equals:
            fix = f"Write name=value with one of {', '.join(fields)}."
            raise InvalidOption(f"{item!r} does not set an input field", field="input", fix=fix)
        try:
            is_text = str in _members(fields[name].annotation)
            values[name] = value if is_text else json.loads(value)
        except ValueError as error:
            raise InvalidOption(f"the value of {name!r} is not JSON: {error}", field="input") from error
    if tools is not None and tools not in values:
        values[tools] = decls if _takes_all(fields[tools].annotation) else _for_dspy(decls)
    placeholders: list[str] = []
    for name, field in fields.items():
        if name not in values and field.is_required():
            if field.annotation is dspy.History:
                values[name] = dspy.History(messages=[])
            else:
                # Enough to show the request that would be sent; the command names it as missing.
                values[name] = f"<{name}>"
                placeholders.append(name)
    return values, placeholders


_OF_DSPY = {dspy.Tool, list[dspy.Tool]}
_TOOLS = {ToolDecls, *_OF_DSPY}


def _members(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _takes_all(annotation: Any) -> bool:
    """Whether a tools field also takes tools that the provider runs."""
    return not _OF_DSPY & {*_members(annotation)}


def _for_dspy(decls: ToolDecls) -> list[Any]:
    """Return the tools as `dspy.Tool`s; one without a function gets one that is never called."""

    def never(**_: Any) -> None:
        raise NotImplementedError

    return [replace(decl, func=decl.func or never).to_dspy() for decl in decls]
