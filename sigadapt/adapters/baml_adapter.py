"""DSPy's BAMLAdapter with lossless tool calling: JSON text, described by compact schemas."""

from dspy.adapters import baml_adapter

from sigadapt.adapters.json_adapter import JSONAdapter


class BAMLAdapter(JSONAdapter, baml_adapter.BAMLAdapter):
    """Text as BAML describes it, and typed calls where a signature has tool fields.

    Takes what `JSONAdapter` takes.

    Example:
        >>> isinstance(BAMLAdapter(), baml_adapter.BAMLAdapter)
        True
    """
