"""DSPy's XMLAdapter with lossless tool calling: text fields as XML elements."""

import dspy

from sigadapt.adapters.chat_adapter import ChatAdapter


class XMLAdapter(ChatAdapter, dspy.XMLAdapter):
    """XML text, and typed calls where a signature has tool fields; takes what `ChatAdapter` takes.

    Example:
        >>> isinstance(XMLAdapter(), dspy.XMLAdapter)
        True
    """

    field_marker = "<{}>"
