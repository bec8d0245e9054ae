"""Find out how a program takes a chat: which input is the user's text, whether it takes a history."""

import inspect
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import dspy

from sigadapt.dspy_boundary.contract import ReActV2
from sigadapt.errors import InvalidOption

HISTORY = "history"


def question_field(program: dspy.Module, field: str | None) -> str:
    """Return the input that takes the user's text.

    Raises:
        InvalidOption: there is none, or none of this name.
    """
    names = input_names(program)
    if field is not None:
        if names and field not in names:
            fix = f"Its inputs are {', '.join(names)}."
            raise InvalidOption(f"the program has no input {field!r}", field="field", fix=fix)
        return field
    for name in names:
        if name != HISTORY:
            return name
    reason = "the program says nothing about its inputs"
    raise InvalidOption(reason, field="field", fix="Name the input: Chats(..., field='question').")


def takes_history(program: dspy.Module) -> bool:
    """Return whether a program goes on with a history that it is given as `history`."""
    return isinstance(program, ReActV2) or HISTORY in input_names(program)


def input_names(program: dspy.Module) -> list[str]:
    """Return the inputs of a program's signature; without one, the parameters of its `forward`.

    Those of a program that takes any are those of its only predictor, such as `dspy.ChainOfThought`'s.
    """
    signature: Any = getattr(program, "signature", None)
    if signature is not None:
        return [*signature.input_fields]
    kinds = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    names = [name for name, parameter in parameters_of(program).items() if parameter.kind in kinds]
    predictors: list[Any] = program.predictors()
    return names or ([*predictors[0].signature.input_fields] if len(predictors) == 1 else [])


def takes_any_input(program: dspy.Module) -> bool:
    """Return whether a module of the program's own takes whatever it is given."""
    if getattr(program, "signature", None) is not None:
        return False
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters_of(program).values())


def parameters_of(program: dspy.Module) -> Mapping[str, inspect.Parameter]:
    """Return what a program's `forward` takes, by name."""
    for name in ("forward", "aforward"):
        with suppress(AttributeError):
            # DSPy's modules warn whoever reads their `forward` as one reads an attribute.
            return inspect.signature(object.__getattribute__(program, name)).parameters
    return {}
