"""Say that sigadapt's adapter was forgotten, where DSPy's own adapter meets a field that it cannot fill.

DSPy's adapter would write the tools into the prompt as `<function f at 0x7f...>` and read no call. The one
thing that it asks a field's type before a request is the type's `description`, so that is where this is said
(fail before the call). SIMBA, Refine and GEPA ask for it too, to describe a program to another model; they
get it.
"""

from inspect import currentframe
from typing import Any, NamedTuple

import dspy

from sigadapt.errors import InvalidSignature

_OURS = ("ChatAdapter", "JSONAdapter", "XMLAdapter", "BAMLAdapter")


class _Asking(NamedTuple):
    """Who asks for a description, and of which field: its name, and `input` or `output`."""

    adapter: Any
    field: str | None
    role: str | None


def refuse_own_adapter(kind: str) -> None:
    """Refuse DSPy's own adapter for the field whose type is asked for its description.

    Raises:
        InvalidSignature: `forgotten_adapter`, with the line to add.
    """
    # An input field of calls, which a judge's signature may have, is text that any adapter can write.
    asking = _asking()
    if not isinstance(asking.adapter, dspy.Adapter) or hasattr(asking.adapter, "fills_tool_fields"):
        return
    if not _is_called(asking.adapter):
        return
    if kind == "ToolCalls" and asking.role != "output":
        return
    own = type(asking.adapter).__name__
    better = own if own in _OURS else "ChatAdapter"
    raise InvalidSignature(
        f"DSPy's own {own} cannot fill a field of type sigadapt.{kind}",
        code="forgotten_adapter",
        field=asking.field,
        fix=f"Add `dspy.configure(adapter=sigadapt.{better}())`.",
    )


def _asking() -> _Asking:
    """Find out from the callers' own variables, as DSPy passes none of this on."""
    frame: Any = currentframe()
    while frame is not None and frame.f_code.co_name != "get_field_description_string":
        frame = frame.f_back
    if frame is None or frame.f_back is None:
        return _Asking(None, None, None)
    held: dict[str, Any] = frame.f_locals
    said: dict[str, Any] = getattr(held.get("v"), "json_schema_extra", None) or {}
    return _Asking(frame.f_back.f_locals.get("self"), held.get("k"), said.get("__dspy_field_type"))


def _is_called(adapter: Any) -> bool:
    """Whether the adapter is being called, and not only asked to describe a signature."""
    frame: Any = currentframe()
    while frame is not None:
        if frame.f_code.co_name in ("__call__", "acall") and frame.f_locals.get("self") is adapter:
            return True
        frame = frame.f_back
    return False
