"""The user's message as DSPy's adapters write it, by a template where every value is a text.

DSPy builds a pydantic adapter for every value of every call to find out that a text is a text, which costs
more than all else in a prompt. For the methods of DSPy that are known to put texts in as they are, the words
around them are taken once, from DSPy itself; any other method or value goes through DSPy each time.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import dspy
from dspy.signatures.signature import Signature

from sigadapt.adapters.plan import names_of

if TYPE_CHECKING:
    from sigadapt.adapters.tool_adapter import ToolAdapter

_PLAIN = {dspy.ChatAdapter.format_user_message_content, dspy.XMLAdapter.format_user_message_content}
_FIELDS = {
    dspy.ChatAdapter.format_field_with_value,
    dspy.JSONAdapter.format_field_with_value,
    dspy.XMLAdapter.format_field_with_value,
}
_MARK = "\ue000{}\ue001"

_Key = tuple[type["ToolAdapter"], tuple[str, ...]]
_TEMPLATES: WeakKeyDictionary[type[Signature], dict[_Key, list[str]]] = WeakKeyDictionary()


def user_text(adapter: "ToolAdapter", rest: type[Signature], inputs: Mapping[str, Any]) -> str:
    """What `adapter.format_user_message_content(rest, inputs)` gives.

    Args:
        adapter: whose words they are.
        rest: the signature whose input fields are shown.
        inputs: their values; those of no field are passed over.
    """
    names = tuple(name for name in names_of(rest).inputs if name in inputs)
    kind: Any = type(adapter)
    known = kind.format_user_message_content in _PLAIN and kind.format_field_with_value in _FIELDS
    if not known or not all(type(inputs[name]) is str for name in names):
        return adapter.format_user_message_content(rest, dict(inputs))
    templates = _TEMPLATES.setdefault(rest, {})
    pieces = templates.get((kind, names))
    if pieces is None:
        pieces = templates[kind, names] = _pieces(adapter, rest, names)
    filled = [piece if place % 2 == 0 else inputs[piece] for place, piece in enumerate(pieces)]
    return "".join(filled).strip()


def _pieces(adapter: "ToolAdapter", rest: type[Signature], names: tuple[str, ...]) -> list[str]:
    """The words around the values, and in every second place the name of a field."""
    text = adapter.format_user_message_content(rest, {name: _MARK.format(name) for name in names})
    return [piece for part in text.split("\ue000") for piece in part.split("\ue001")]
