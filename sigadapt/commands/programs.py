"""The program that a command runs for a signature or a module, and values for what it takes."""

import inspect
import json
import types
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import dspy

from sigadapt.adapters.plan import plan_of
from sigadapt.errors import InvalidOption
from sigadapt.signatures.native_tools import NativeTool
from sigadapt.signatures.tool_decls import ToolDecls


class Taken(NamedTuple):
    """An input that a program takes: its type, and whether it must have a value."""

    annotation: Any
    required: bool


class Program(NamedTuple):
    """A program, and what it is given."""

    name: str
    module: dspy.Module
    inputs: dict[str, Any]
    placeholders: list[str]
    """The names of the inputs that nobody gave."""
    left_out: list[str]
    """The kinds of the provider's own tools, where the program takes functions alone."""


def program_of(target: Any, decls: ToolDecls, given: Iterable[str], *, react: bool = False) -> Program:
    """Return the program of a signature or a module.

    Raises:
        InvalidOption: for inputs or tools that it does not take, and for a module without predictors.
    """
    signature = target
    if isinstance(target, dspy.Module):
        predictors: list[Any] = target.predictors()
        if not predictors:
            reason = f"{type(target).__name__} has no predictors, and so it sends no request"
            raise InvalidOption(reason, field="signature", fix="Name a module with a dspy.Predict in it.")
        takes = None if react else _parameters_of(target, predictors)
        if takes is not None:
            return _with_own_forward(target, takes, decls, given)
        signature = getattr(target, "signature", None) or predictors[0].signature
    name: str = signature.__name__
    if react:
        module, whole = _react(signature, decls), False
    else:
        module, whole = target if isinstance(target, dspy.Module) else dspy.Predict(target), True
        plan = plan_of(signature)
        if plan is not None:
            whole = _takes_all(signature.input_fields[plan.tools].annotation)
        elif decls.entries:
            fix = "Add `tools: ToolDecls` and `calls: ToolCalls` to it, or give --react."
            raise InvalidOption(f"{name} has no tools field", field="tools", fix=fix)
    return Program(name, module, *inputs_of(signature, given, decls), [] if whole else _natives(decls))


def _react(signature: Any, decls: ToolDecls) -> dspy.Module:
    if plan_of(signature) is not None:
        fix = "Leave out --react, or name a signature without tool fields."
        reason = f"{signature.__name__} has a tools field of its own, and --react adds one"
        raise InvalidOption(reason, field="react", fix=fix)
    tools: list[Any] = [*for_dspy(decls)]
    try:
        return dspy.ReActV2(signature, tools=tools)
    except ValueError as error:
        raise InvalidOption(f"dspy.ReActV2 refuses this: {error}", field="react") from error


def _with_own_forward(
    module: dspy.Module, takes: Mapping[str, Taken], decls: ToolDecls, given: Iterable[str]
) -> Program:
    name = type(module).__name__
    tools = next((each for each, taken in takes.items() if _TOOLS & {*_members(taken.annotation)}), None)
    if decls.entries and tools is None:
        fix = "Add a parameter `tools: ToolDecls` to it, or leave out --tools."
        raise InvalidOption(f"the forward of {name} takes no tools", field="tools", fix=fix)
    left_out = [] if tools is None or _takes_all(takes[tools].annotation) else _natives(decls)
    return Program(name, module, *_values(takes, given, decls, tools), left_out)


def _parameters_of(module: Any, predictors: Iterable[Any]) -> dict[str, Taken] | None:
    """Return what a module's own forward takes; None if it takes whatever the signature has."""
    forward = getattr(module, "forward", None)
    if forward is None:
        return None
    parameters = inspect.signature(forward).parameters.values()
    named = [each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    if not named and any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    try:
        hints = {name: hint for name, hint in get_type_hints(forward).items() if hint is not Any}
    except Exception:  # a name that only a type checker knows
        hints = {}
    fields = {
        name: field.annotation for each in predictors for name, field in each.signature.input_fields.items()
    }
    return {
        each.name: Taken(hints.get(each.name, fields.get(each.name, str)), each.default is each.empty)
        for each in named
    }


def inputs_of(signature: Any, given: Iterable[str], decls: ToolDecls) -> tuple[dict[str, Any], list[str]]:
    """Return values for the input fields of a signature.

    Raises:
        InvalidOption: for an unknown name, or a value that is not JSON.
    """
    fields: dict[str, Any] = signature.input_fields
    plan = plan_of(signature)
    takes = {name: Taken(field.annotation, field.is_required()) for name, field in fields.items()}
    return _values(takes, given, decls, None if plan is None else plan.tools)


def _values(
    takes: Mapping[str, Taken], given: Iterable[str], decls: ToolDecls, tools: str | None
) -> tuple[dict[str, Any], list[str]]:
    values = dict(_given(item, takes) for item in given)
    if tools is not None and tools not in values:
        values[tools] = decls if _takes_all(takes[tools].annotation) else for_dspy(decls)
    placeholders: list[str] = []
    for name, taken in takes.items():
        if name not in values and taken.required:
            if taken.annotation is dspy.History:
                values[name] = dspy.History(messages=[])
            else:
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


def _natives(decls: ToolDecls) -> list[str]:
    return [entry.kind for entry in decls.entries if isinstance(entry, NativeTool)]


def for_dspy(decls: ToolDecls) -> list[dspy.Tool]:
    """Return the tools as `dspy.Tool`s; one without a function gets one that is never called."""
    return [replace(decl, func=decl.func or _never).to_dspy() for decl in decls]


def _never(**_: Any) -> None:
    raise NotImplementedError


def _given(item: str, takes: Mapping[str, Taken]) -> tuple[str, Any]:
    name, equals, value = item.partition("=")
    if name not in takes or not equals:
        fix = f"Write name=value with one of {', '.join(takes)}."
        raise InvalidOption(f"{item!r} does not set an input field", field="input", fix=fix)
    if str in _members(takes[name].annotation):
        return name, value
    try:
        return name, json.loads(value)
    except ValueError as error:
        raise InvalidOption(f"the value of {name!r} is not JSON: {error}", field="input") from error
