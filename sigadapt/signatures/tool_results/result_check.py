"""Check what a tool returned against the schema that it declares, where `check_result=True` asks for it.

A provider never checks a result, and few programs do: a function that returns `None`, or another type in an
edge case, tells the model something that its declaration rules out. An unfit result is a failed one.
"""

from typing import Any

import jiter

from sigadapt.errors import InvalidHistory, InvalidToolDecl
from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.checking import check
from sigadapt.schemas.json_values import Json, as_unicode
from sigadapt.signatures.tool_results.plain_values import result_text

_DEFINITIONS = ("$defs", "definitions")


def refuse_uncheckable(returns: Json | None, tool: str) -> None:
    """Refuse `check_result` for a tool whose declaration says nothing of its result."""
    if returns is not None:
        check_value_schema(returns, tool)
        return
    raise InvalidToolDecl(
        "its check_result has no schema to check by",
        code="invalid_field",
        tool=tool,
        fix="Annotate what the function returns, or give returns=... .",
    )


def check_value_schema(schema: Json, tool: str) -> None:
    """Refuse a schema by which no value can be checked.

    Raises:
        InvalidToolDecl: as for the schema of a declaration.
    """
    check(_as_member(schema), tool=tool)


def unfit_error(decl: Any, value: Any) -> InvalidHistory | None:
    """Return the error of a value that does not fit the schema of its tool: `unfit_result`, with the path.

    Args:
        decl: the ToolDecl.
        value: what the model would read of the result.
    """
    if not decl.check_result:
        return None
    json_value = value if isinstance(value, str) else jiter.from_json(as_unicode(result_text(value)).encode())
    flaw = flaw_of_value(json_value, decl.returns, decl.name)
    if flaw is None:
        return None
    summary = flaw.message.partition(": ")[2]
    return InvalidHistory(
        f"the result does not fit the declared schema: {summary}",
        code="unfit_result",
        tool=decl.name,
        path=flaw.path,
    )


def flaw_of_value(value: Any, schema: Json, tool: str) -> Flaw | None:
    """Return why a JSON value of any type does not fit a schema; None if it fits."""
    return check(_as_member(schema), tool=tool).flaw_of({"result": value}, tool)


def _as_member(returns: Json) -> Json:
    """Return the schema of an object whose member `result` is what the tool returns, of any type."""
    definitions = {key: returns[key] for key in _DEFINITIONS if key in returns}
    schema = {key: part for key, part in returns.items() if key not in _DEFINITIONS}
    return {"type": "object", "properties": {"result": schema}, "required": ["result"], **definitions}
