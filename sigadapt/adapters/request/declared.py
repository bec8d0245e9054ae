"""The tools of one call: what the tools field was given, as declarations."""

from collections.abc import Mapping
from typing import Any

from dspy.signatures.signature import Signature

from sigadapt.adapters.plan import Plan
from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.toolset import RequestContext, resolving


def declared(
    plan: Plan, signature: type[Signature], inputs: Mapping[str, Any], settings: Mapping[str, Any]
) -> Steps[ToolDecls]:
    """Make the declarations of a call, in steps: toolsets may have to be awaited.

    Args:
        plan: the signature's plan.
        signature: the signature that is asked.
        inputs: the values of its input fields.
        settings: the generation settings of this call.

    Raises:
        InvalidToolDecl: for anything that declares no tool (rule 4), or no tools where a call is required.
    """
    given = inputs.get(plan.tools)
    if type(given) is ToolDecls:
        decls = given
    elif given is None and plan.tools_required:
        raise InvalidToolDecl(
            "no tools were given", code="missing_tools", field=plan.tools, fix=f"Pass {plan.tools}=[...]."
        )
    else:
        context = RequestContext(signature, inputs, settings)
        decls = yield from resolving(() if given is None else given, context)
    if not decls and plan.calls_required:
        raise InvalidToolDecl(
            f"no tool is declared and {plan.calls!r} requires a call",
            code="missing_tools",
            field=plan.tools,
            fix=f"Declare a tool, or make {plan.calls!r} optional with `ToolCalls | None`.",
        )
    return decls
