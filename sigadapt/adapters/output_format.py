"""OutputFormat: the half of an adapter that describes text outputs, finds them in an answer and parses them.

Half of its methods are DSPy's own. Their signature has no tool fields (`Plan.text_signature`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from dspy import BaseLM
from dspy.signatures.signature import Signature

from sigadapt.adapters.options import Options
from sigadapt.adapters.request.canonical import Change
from sigadapt.providers.route import Route
from sigadapt.signatures.tool_decls import ToolDecls

CHAT_MARKER = "[[ ## {} ## ]]"
"""How DSPy's chat form marks a field, where a line begins; its end is marked as a field `completed`."""

_END = CHAT_MARKER.format("completed")


class OutputFormat:
    """What the flow uses of an adapter."""

    options: Options
    native_response_types: list[Any]
    field_marker: ClassVar[str]
    """The text that marks an output field in an answer, with `{}` for the name; empty if none does."""

    is_recorded: ClassVar[bool] = False
    """Whether a recorded conversation is sent again, with its tools as they were."""

    parses_beside_calls: ClassVar[bool] = True
    """Whether to look for outputs in text beside calls; the text stays in `ToolCalls.text` either way."""

    if TYPE_CHECKING:  # DSPy's methods, which every adapter has
        format_demos: Callable[..., list[dict[str, Any]]]
        format_field_description: Callable[..., str]
        format_field_structure: Callable[..., str]
        format_system_message: Callable[..., str]
        format_task_description: Callable[..., str]
        format_user_message_content: Callable[..., str]
        format_assistant_message_content: Callable[..., str]
        user_message_output_requirements: Callable[..., str]
        parse: Callable[..., dict[str, Any]]

        def messages(
            self, signature: type[Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
        ) -> list[dict[str, Any]]:
            """Return the messages for these inputs."""
            ...

        def text_description(self, signature: type[Signature]) -> str:
            """Return the system text of a signature with text outputs."""
            ...

        def text_reminder(self, signature: type[Signature]) -> str:
            """Return what each question says about the text's form; an empty text for nothing."""
            ...

    def tools_on(self, route: Route, decls: ToolDecls) -> tuple[ToolDecls, tuple[Change, ...]]:
        """Return the tools to declare on a route, and what differs from those of the call."""
        return decls, ()

    def response_format(self, lm: BaseLM, signature: type[Signature]) -> dict[str, Any] | None:
        """Return the response format to ask for; None for an adapter whose text is not JSON."""
        return None

    async def aparse(self, signature: type[Signature], text: str) -> dict[str, Any]:
        """Parse a text; adapters that have to wait for a model override this."""
        return self.parse(signature, text)

    def holds_fields(self, signature: type[Signature], text: str) -> bool:
        """Return whether a text marks any of the output fields in this adapter's form."""
        markers = tuple(map(self.field_marker.format, signature.output_fields))
        if self.field_marker == CHAT_MARKER:  # DSPy's parser takes it for one only where a line begins
            return any(line.strip().startswith(markers) for line in text.splitlines())
        return any(marker in text for marker in markers)

    def is_complete(self, signature: type[Signature], text: str) -> bool:
        """Return whether the mark or bracket that ends a text is there; by default, no text shows it."""
        return False

    def plain(self, text: str) -> str:
        """Return a text that marks no field, without the marker of its end, which the prompt asks for."""
        return without_end_marker(text) if self.field_marker == CHAT_MARKER else text


def without_end_marker(text: str) -> str:
    """Return a text without a marker of its end on its last line, and the blanks around it."""
    # No pattern: one that begins with a run of blanks is tried at each blank of a long run.
    end = text.rstrip()
    if not end.endswith(_END):
        return text
    before = end[: -len(_END)]
    value = before.rstrip()
    line_break = before.find("\n", len(value))
    if value and line_break < 0:
        return text
    return before[:line_break] if value else ""
