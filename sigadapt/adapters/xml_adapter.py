"""DSPy's XMLAdapter plus tool calling; text fields are XML elements."""

from typing import ClassVar

import dspy
from dspy.signatures.signature import Signature

from sigadapt.adapters.chat_adapter import ChatAdapter


class XMLAdapter(ChatAdapter, dspy.XMLAdapter):
    """DSPy's XMLAdapter, with typed calls for signatures that have tool fields.

    Takes the same arguments as `ChatAdapter`.

    Example:
        >>> isinstance(XMLAdapter(), dspy.XMLAdapter)
        True
    """

    field_marker: ClassVar[str] = "<{}>"

    def is_complete(self, signature: type[Signature], text: str) -> bool:
        """Return whether all elements are closed."""
        return all(f"</{name}>" in text for name in signature.output_fields)
