"""OutputFormat: what the flow needs an adapter to do with text outputs.

An adapter describes text outputs, asks for them, finds them in an answer and parses them. Half of the
protocol's methods are DSPy's own; `tool_adapter.py` and its subclasses add the others.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from dspy.signatures.signature import Signature

from sigadapt.adapters.options import Options

CHAT_MARKER = "[[ ## {} ## ]]"
"""How DSPy's chat form marks a field, where a line begins; its end is marked as a field `completed`."""


class OutputFormat(Protocol):
    """The methods and attributes of an adapter that the flow uses.

    The parameter `rest` is a signature without its tool fields (`Plan.rest`).
    """

    options: Options
    native_response_types: list[Any]
    parses_beside_calls: ClassVar[bool]
    """Whether to look for outputs in text beside calls; the text stays in `ToolCalls.text` either way."""

    field_marker: ClassVar[str]
    """The text that marks an output field in an answer, with `{}` for the name; empty if none does."""

    # DSPy's methods, which every adapter has.
    format_demos: Callable[..., list[dict[str, Any]]]
    """Return few-shot examples as messages."""
    format_field_description: Callable[..., str]
    """Return a description of the fields."""
    format_field_structure: Callable[..., str]
    """Return a description of the form that the fields take in the text."""
    format_task_description: Callable[..., str]
    """Return a description of the task."""
    format_user_message_content: Callable[..., str]
    """Return the inputs as the text of a user message."""
    format_assistant_message_content: Callable[..., str]
    """Return the outputs as the text of an assistant message."""
    user_message_output_requirements: Callable[..., str]
    """Return the sentence that asks for the outputs in their form."""
    parse: Callable[..., dict[str, Any]]
    """Return the output values in a text."""

    # Methods that sigadapt adds or changes.

    def format(
        self, signature: type[Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the messages for these inputs."""
        ...

    def text_description(self, rest: type[Signature]) -> str:
        """Return the system text of a signature with text outputs."""
        ...

    def text_reminder(self, rest: type[Signature]) -> str:
        """Return what each question says about the text's form; an empty text for nothing."""
        ...

    def response_format(self, lm: Any, rest: type[Signature]) -> dict[str, Any] | None:
        """Return the response format to ask for; None if the text is not JSON."""
        ...

    def holds_fields(self, rest: type[Signature], text: str) -> bool:
        """Return whether a text marks any of the output fields in this adapter's form."""
        ...

    def is_complete(self, rest: type[Signature], text: str) -> bool:
        """Return whether a text shows that nothing of it is missing, by the mark or bracket that ends it."""
        ...

    def plain(self, text: str) -> str:
        """Return a text that marks no field as it is said to the user."""
        ...

    async def aparse(self, rest: type[Signature], text: str) -> dict[str, Any]:
        """Return the output values in a text, as `parse` does; may wait for another model."""
        ...
