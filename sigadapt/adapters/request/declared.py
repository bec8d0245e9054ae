"""Turn the value of the tools field into the declarations of one call."""

from collections.abc import Mapping
from typing import Any

from dspy.signatures.signature import Signature

from sigadapt.adapters.plan import Plan
from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.toolset import RequestContext, resolving


def declare(
    plan: Plan, signature: type[Signature], inputs: Mapping[str, Any], settings: Mapping[str, Any]
) -> Steps[ToolDecls]:
    """Return the declarations of a call. It is a generator, because toolsets may have to be awaited.

    Raises:
        InvalidToolDecl: for a value that cannot be declared as a tool (fail before the call), for a missing
            value of a required tools field, and for no tools if the signature requires a call.
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
            f"{plan.calls!r} requires a call, but no tool is declared",
            code="missing_tools",
            field=plan.tools,
            fix=f"Declare a tool, or make {plan.calls!r} optional with `ToolCalls | None`.",
        )
    return decls
