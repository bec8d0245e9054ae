"""How an adapter handles text outputs: describes them, asks for them, finds them and parses them.

The protocol between the flow and whichever adapter a user plugs in. Half of it is DSPy's own methods, half is
what `tool_adapter.py` and its subclasses add.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from dspy.signatures.signature import Signature

from sigadapt.adapters.options import Options


class TextFormat(Protocol):
    """An adapter as far as the flow calls it; `rest` is a signature without its tool fields."""

    options: Options
    native_response_types: list[Any]
    parses_beside_calls: ClassVar[bool]
    """Whether text beside calls is searched for outputs; it stays in `ToolCalls.text` in any case."""

    # DSPy's methods, as every adapter has them.
    format_demos: Callable[..., list[dict[str, Any]]]
    """Writes examples as messages."""
    format_field_description: Callable[..., str]
    """Describes the fields."""
    format_field_structure: Callable[..., str]
    """Describes the form of all fields."""
    format_task_description: Callable[..., str]
    """Describes the task."""
    format_user_message_content: Callable[..., str]
    """Writes inputs as a question."""
    format_assistant_message_content: Callable[..., str]
    """Writes outputs as the model would."""
    user_message_output_requirements: Callable[..., str]
    """Asks for the outputs in their form."""
    parse: Callable[..., dict[str, Any]]
    """Reads the outputs off a text."""

    # What sigadapt adds or changes.

    def format(
        self, signature: type[Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the messages for these inputs."""
        ...

    def text_description(self, rest: type[Signature]) -> str:
        """Write the system text of a signature with text outputs."""
        ...

    def text_reminder(self, rest: type[Signature]) -> str:
        """Write what each question says of the text's form; empty for nothing."""
        ...

    def response_format(self, lm: Any, rest: type[Signature]) -> dict[str, Any] | None:
        """Return the response format to ask for; None for text that is not JSON."""
        ...

    def holds_fields(self, rest: type[Signature], text: str) -> bool:
        """Say whether a text names any of the output fields in this adapter's form."""
        ...

    async def aparse(self, rest: type[Signature], text: str) -> dict[str, Any]:
        """Read the outputs off a text, for an adapter that waits for something meanwhile."""
        ...
