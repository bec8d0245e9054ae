"""DSPy's XMLAdapter plus tool calling that loses nothing; text fields are XML elements."""

from typing import ClassVar

import dspy

from sigadapt.adapters.chat_adapter import ChatAdapter


class XMLAdapter(ChatAdapter, dspy.XMLAdapter):
    """DSPy's XMLAdapter, with typed calls for signatures that have tool fields.

    Takes the same arguments as `ChatAdapter`.

    Example:
        >>> isinstance(XMLAdapter(), dspy.XMLAdapter)
        True
    """

    field_marker: ClassVar[str] = "<{}>"
