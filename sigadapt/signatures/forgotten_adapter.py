"""Say that sigadapt's adapter was forgotten, where DSPy's own adapter meets a field that it cannot fill.

DSPy's adapter would write the tools into the prompt as `<function f at 0x7f...>` and read no call. The one
thing that it asks a field's type before a request is the type's `description`, so that is where this is said
(rule 4). SIMBA and Refine ask for it too, but of programs that run under sigadapt's adapter.
"""

from inspect import currentframe
from typing import Any, cast

import dspy

from sigadapt.errors import InvalidSignature

_OURS = ("ChatAdapter", "JSONAdapter", "XMLAdapter", "BAMLAdapter")


def refuse_own_adapter(kind: str) -> None:
    """Refuse DSPy's own adapter for the field whose type is asked for its description.

    An input field of calls, which a judge's signature may have, is text that any adapter can write.

    Args:
        kind: the field's type.

    Raises:
        InvalidSignature: `forgotten_adapter`, with the line to add.
    """
    adapter: Any = cast("Any", dspy.settings).adapter
    if getattr(adapter, "fills_tool_fields", False):
        return
    name, role = _asked_for()
    if kind == "ToolCalls" and role != "output":
        return
    own = type(adapter).__name__ if adapter is not None else "ChatAdapter"
    better = own if own in _OURS else "ChatAdapter"
    raise InvalidSignature(
        f"DSPy's own {own} cannot fill a field of type sigadapt.{kind}",
        code="forgotten_adapter",
        field=name,
        fix=f"Add `dspy.configure(adapter=sigadapt.{better}())`.",
    )


def _asked_for() -> tuple[str | None, str | None]:
    """The name and the role of the field that DSPy describes, from the caller's own variables."""
    frame: Any = currentframe()
    while frame is not None and frame.f_code.co_name != "get_field_description_string":
        frame = frame.f_back
    held: dict[str, Any] = {} if frame is None else frame.f_locals
    field: Any = held.get("v")
    return held.get("k"), (getattr(field, "json_schema_extra", None) or {}).get("__dspy_field_type")
