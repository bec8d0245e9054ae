"""DSPy's BAMLAdapter plus tool calling; text is JSON, described by compact schemas."""

from dspy.adapters import baml_adapter

from sigadapt.adapters.json_adapter import JSONAdapter


class BAMLAdapter(JSONAdapter, baml_adapter.BAMLAdapter):
    """DSPy's BAMLAdapter, with typed calls for signatures that have tool fields.

    Takes the same arguments as `JSONAdapter`.

    Example:
        >>> isinstance(BAMLAdapter(), baml_adapter.BAMLAdapter)
        True
    """
