"""Refuse a program that could not serve a chat: when `Chats` is made, or when a body comes."""

import inspect
from collections.abc import Iterator
from typing import Any

import dspy

from sigadapt.errors import InvalidOption, SigadaptError
from sigadapt.signatures.sources.runnable import forgotten_adapter
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import decls_of
from sigadapt.ui.run.program_inputs import HISTORY, parameters_of, takes_any_input, takes_history
from sigadapt.ui.run.program_tools import tools_of_module


def check_going_on(program: dspy.Module, field: str) -> None:
    """Refuse a program with a tool that waits, and no way to go on when its result has come.

    Args:
        program: the program.
        field: the input that takes the user's text.

    Raises:
        InvalidOption: the program goes on with `history` alone, and cannot be called so.
    """
    tool = next(_tools_that_wait(program), None)
    if tool is None or takes_any_input(program):
        return
    if not takes_history(program):
        reason = f"the tool {tool!r} may wait, and the program could not go on: it has no input {HISTORY!r}"
    elif _needs(program, field):
        reason = f"the tool {tool!r} may wait, and the program could not go on without {field!r}"
    else:
        return
    fix = f"Write `def forward(self, {HISTORY}, {field}=None)`: a run goes on with the history alone."
    raise InvalidOption(reason, field="program", fix=fix)


def check_adapter(program: dspy.Module) -> None:
    """Refuse an adapter that would run the program's tools without sigadapt.

    Raises:
        InvalidSignature: `forgotten_adapter`.
    """
    if not any(tools_of_module(module) for _, module in program.named_sub_modules()):
        return
    error = forgotten_adapter("Chats needs an adapter of sigadapt, and would run under {adapter}")
    if error is not None:
        raise error


def _tools_that_wait(program: dspy.Module) -> Iterator[str]:
    """Yield the names of tools that are known to wait: for a yes, or for a result from elsewhere."""
    for _, module in program.named_sub_modules():
        for decl in _decls_of(tools_of_module(module)):
            if decl.requires_confirmation is not False or decl.external:
                yield decl.name


def _decls_of(tools: Any) -> list[ToolDecl]:
    if callable(tools):  # a toolset: its tools depend on the request
        return []
    try:
        return [*decls_of(tools).tools]
    except SigadaptError:  # which the program raises
        return []


def _needs(program: dspy.Module, field: str) -> bool:
    """Return whether a module of the program's own cannot be called without an input."""
    if getattr(program, "signature", None) is not None:
        return False
    parameter = parameters_of(program).get(field)
    return parameter is not None and parameter.default is inspect.Parameter.empty
