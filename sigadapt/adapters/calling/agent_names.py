"""The names that the fields of an agent cannot have, because DSPy's loop uses them for something else.

DSPy refuses some of them. Under the others, it would drop an input without a word, take it for an option, or
run the whole agent and then lose its answer. `tests/runs/test_taken_names.py` tries every name that DSPy's
code between a program and its model has.
"""

import ast
from collections.abc import Iterable
from typing import Any

from sigadapt.errors import InvalidSignature

_ATTRIBUTES = dict.fromkeys(
    ("signature", "instructions", "fields", "input_fields", "output_fields"),
    "DSPy's signatures have an attribute of this name",
)
_CALLS = dict.fromkeys(("self", "instance"), "a method of DSPy's has a parameter of this name")
_TURNS = {
    "tool_calls": "the agent's turns have their calls under this name",
    "next_thought": "the agent's turns have their thoughts under this name",
}
_INPUTS = {
    **_ATTRIBUTES,
    **_CALLS,
    **_TURNS,
    **dict.fromkeys(("config", "demos", "lm", "new_signature"), "`dspy.Predict` takes it as its own option"),
    "completions": "a method of DSPy's has a parameter of this name",
    "max_iters": "it is an option of the agent's call",
}
_OUTPUTS = {**_ATTRIBUTES, **_CALLS, **_TURNS, "base": "`dspy.Prediction` takes it for another prediction"}


def refuse_taken_names(signature: Any) -> None:
    """Refuse a signature, as a class or as text, with a field whose name an agent uses itself.

    Raises:
        InvalidSignature: with the name of the field.
    """
    if isinstance(signature, str):  # DSPy cannot make a class of some of these
        inputs, _, outputs = signature.partition("->")
        _refuse("input", _names_in(inputs), _INPUTS)
        _refuse("output", _names_in(outputs), _OUTPUTS)
        return
    fields: dict[str, Any] = getattr(signature, "model_fields", {})
    inputs_of_class = [name for name, field in fields.items() if _is_input(field)]
    _refuse("input", inputs_of_class, _INPUTS)
    _refuse("output", fields.keys() - inputs_of_class, _OUTPUTS)


def _is_input(field: Any) -> bool:
    extra: dict[str, Any] = field.json_schema_extra or {}
    return extra.get("__dspy_field_type") == "input"


def _names_in(fields: str) -> list[str]:
    """Return the names of fields in a text, which DSPy reads as parameters of a function."""
    try:
        parameters: Any = ast.parse(f"def f({fields}): pass").body[0]
    except SyntaxError:
        return []  # DSPy says what is wrong with it
    return [parameter.arg for parameter in parameters.args.args]


def _refuse(side: str, names: Iterable[str], taken: dict[str, str]) -> None:
    for name in names:
        if name in taken:
            raise InvalidSignature(
                f"an agent cannot have an {side} of this name: {taken[name]}",
                field=name,
                fix="Rename it in the signature.",
            )
