"""Find out how a program takes a chat: which input is the user's text, whether it takes a history."""

import inspect
from typing import Any

import dspy

from sigadapt.errors import InvalidOption

_HISTORY = "history"


def question_field(program: dspy.Module, field: str | None) -> str:
    """Return the input that takes the user's text.

    Raises:
        InvalidOption: there is none, or none of this name.
    """
    names = _input_names(program)
    if field is not None:
        if names and field not in names:
            fix = f"Its inputs are {', '.join(names)}."
            raise InvalidOption(f"the program has no input {field!r}", field="field", fix=fix)
        return field
    for name in names:
        if name != _HISTORY:
            return name
    reason = "the program says nothing about its inputs"
    raise InvalidOption(reason, field="field", fix="Name the input: Chats(..., field='question').")


def takes_history(program: dspy.Module) -> bool:
    """Return whether a program goes on with a history that it is given as `history`."""
    return hasattr(program, "react") or _HISTORY in _input_names(program)


def text_outputs(program: dspy.Module) -> list[str] | None:
    """Return the names of a program's outputs; None for one without a signature."""
    signature: Any = getattr(program, "signature", None)
    return None if signature is None else [*signature.output_fields]


def _input_names(program: dspy.Module) -> list[str]:
    """Return the inputs of a program's signature; without one, the parameters of its `forward`.

    Those of a program that takes any are those of its only predictor, such as `dspy.ChainOfThought`'s.
    """
    signature: Any = getattr(program, "signature", None)
    if signature is not None:
        return [*signature.input_fields]
    predictors: list[Any] = program.predictors()
    return _parameters(program) or ([*predictors[0].signature.input_fields] if len(predictors) == 1 else [])


def _parameters(program: dspy.Module) -> list[str]:
    run: Any = getattr(program, "forward", None) or getattr(program, "aforward", None)
    kinds = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    parameters = inspect.signature(run).parameters.values() if run is not None else ()
    return [parameter.name for parameter in parameters if parameter.kind in kinds]
