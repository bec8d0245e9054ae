"""Who makes a call of an adapter: an agent of DSPy, a program inside of a tool of one, or a user's own.

The fields of an agent cannot have names that DSPy's loop uses for something else. DSPy refuses some of them.
Under the others, it would drop an input without a word, take it for an option, or run the whole agent and
then lose its answer. `tests/runs/test_taken_names.py` tries every name that DSPy's code between a program
and its model has.
"""

import ast
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from sigadapt.adapters.request.canonical import Request
from sigadapt.dspy_boundary.contract import AGENTS, ReActV2
from sigadapt.dspy_boundary.current_run import current_ledger
from sigadapt.dspy_boundary.internals import is_submit, settings
from sigadapt.errors import InvalidSignature
from sigadapt.schemas.json_values import is_object
from sigadapt.signatures.tool_decls import ToolDecls


def calling_agent() -> Any:
    """Return the agent of DSPy's whose predictor runs here; None outside of one."""
    modules: list[Any] = settings.caller_modules or []
    if len(modules) < 2 or not isinstance(modules[-2], ReActV2) or modules[-1] is not modules[-2].react:
        return None
    return modules[-2]


def is_one_by_one(agent: Any) -> bool:
    """Return whether an agent runs the calls of a turn one by one, as DSPy's own loop does."""
    return agent is not None and not getattr(agent, "ends_by_itself", False)


def is_inside_tool() -> bool:
    """Return whether this program runs inside of a tool of one of DSPy's agents."""
    ledger = current_ledger()
    if ledger is not None and ledger.is_in_resumed_turn:
        return True
    around: list[Any] = settings.caller_modules or []
    return any(
        isinstance(outer, AGENTS) and all(part is not inner for _, part in outer.named_sub_modules())
        for outer, inner in pairwise(around)
    )


def is_forced_submit(request: Request, decls: ToolDecls) -> bool:
    """Return whether this is the last request of `dspy.ReActV2`, which drops all calls but `submit`."""
    choice = request.get("tool_choice")
    function: Any = choice.get("function") if is_object(choice) else None
    name: Any = function.get("name") if is_object(function) else None
    return name in decls and is_submit(decls[name].func)


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
