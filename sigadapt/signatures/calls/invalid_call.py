"""InvalidToolCall: one call that a model made and that cannot be used, with the reason."""

import pydantic

from sigadapt.display.rendering import Displayable, rendered_call
from sigadapt.errors import CallCode, printable
from sigadapt.schemas.json_values import cut
from sigadapt.signatures.saved_model import SaveableModel


class InvalidToolCall(Displayable, SaveableModel):
    """One call that the model made and that cannot be used, kept exactly as sent (nothing silent).

    Args:
        id: the provider's id, or a synthesised one (ids), so that an error can be sent back for it.
        name: the name that the model gave; None if it gave none.
        arguments: the arguments' text exactly as sent.
        index: the position among all calls of the answer, from 0.
        code: what is wrong (`errors.CallCode`).
        message: what is wrong, in a sentence, with the arguments cut to a readable length.
        path: a JSON Pointer into the arguments; None if the flaw has no place there.
        altered: as for a ToolCall.

    Example:
        >>> InvalidToolCall(id="c", name="f", arguments="{", index=0, code="invalid_json", message="not JSON")
        <invalid_json: f({)>
    """

    id: str
    name: str | None
    arguments: str
    index: int
    code: CallCode
    message: str
    path: str | None = None
    altered: tuple[str, ...] = ()

    @pydantic.field_validator("message")
    @classmethod
    def _printable(cls, message: str) -> str:
        return printable(message, also="\n\t")  # it quotes what a model wrote

    def __str__(self) -> str:
        return printable(
            f"<{self.code}: {self.name or '?'}({cut(self.arguments) if self.arguments else ''})>"
        )

    __repr__ = __str__

    _rendering = rendered_call
