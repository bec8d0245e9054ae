"""The final words of DSPy's agents, which end by a call of `submit`, a tool of their own.

Its arguments are the agent's outputs. So an answer that only submits is one in words, as one without calls
is. Beside other calls, `submit` is left out.
"""

from typing import Any

from sigadapt.dspy_boundary.internals import SUBMIT, SUBMIT_DESCRIPTION
from sigadapt.schemas.json_values import compact
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls


def is_submit_decl(decl: ToolDecl) -> bool:
    """Return whether a declaration is that of an agent's own `submit`."""
    return (decl.name, decl.description) == (SUBMIT, SUBMIT_DESCRIPTION)


def is_submitted(name: str | None, tools: Any) -> bool:
    """Return whether a call of this name submits, among these tools."""
    if name != SUBMIT:
        return False
    decls = ToolDecls(tools)
    return name in decls and is_submit_decl(decls[name])


def without_submit(calls: ToolCalls | None, tools: Any) -> ToolCalls:
    """Return calls without the good ones that submit."""
    if calls is None:
        return ToolCalls()
    rest = [call for call in calls if not is_submitted(call.name, tools)]
    return calls if len(rest) == len(calls) else calls.model_copy(update={"tool_calls": rest})


def words_of(calls: ToolCalls | None, answer: str | None) -> str:
    """Return the words of an answer without other calls: its text, or what it submits."""
    for call in calls or ():
        outputs = [*call.args.values()]
        return outputs[0] if len(outputs) == 1 and isinstance(outputs[0], str) else compact(call.args)
    return answer or ""
