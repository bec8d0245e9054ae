"""Who makes a call of an adapter: an agent of DSPy, a program inside of a tool of one, or a user's own."""

from itertools import pairwise
from typing import Any

from sigadapt.adapters.request.canonical import Request
from sigadapt.dspy_boundary.contract import AGENTS, ReActV2
from sigadapt.dspy_boundary.current_run import current_ledger
from sigadapt.dspy_boundary.internals import is_submit, settings
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
