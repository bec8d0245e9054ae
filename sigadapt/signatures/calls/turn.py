"""What an answer has beside its good calls: the Turn with words and provider state, repeats, and bad calls.

Each call carries its turn: `dspy.ReActV2` builds a new collection from the single calls, and drops the rest.
"""

from typing import Any

import orjson
import pydantic

from sigadapt.display import Displayable, rendered_call
from sigadapt.errors import CallCode, printable
from sigadapt.json_values import cut
from sigadapt.signatures.saved_model import SaveableModel, order_of


class Repeat(SaveableModel):
    """A call that an answer to a reask made again; `of` is the id of the call whose result it gets."""

    id: str
    name: str
    arguments: str
    index: int
    of: str


class SearchRecord(SaveableModel):
    """A search for deferred tools that the model asked for and the adapter answered.

    `found` has the names of tools, and `note` what the model reads if there are none to show.
    """

    id: str
    name: str
    arguments: str
    index: int
    query: str
    found: tuple[str, ...] = ()
    note: str = ""


class Turn(SaveableModel):
    """What the model said beside its calls, and the provider state to send back on the next turn.

    Args:
        text: the text beside the calls.
        reasoning: the thinking that the provider showed.
        state: opaque provider data to replay on the next turn, as JSON values.
        repeats: calls of the turn that were accepted before and dropped.
        offered: the tools that the turn was asked with, as JSON or its hash, if a change of them can be told.
        searches: the turn's searches for deferred tools, with their answers.
        before: the turns of such searches alone that led to this one.
        routed: the arguments of the calls that were made through the adapter's `call_tool`, as sent, by id.
        request_hash: a hash of the request that the turn answered, if a tool of it may require confirmation.
    """

    text: str | None = None
    reasoning: str | None = None
    state: dict[str, Any] | None = None
    repeats: tuple[Repeat, ...] = ()
    offered: str | None = None
    searches: tuple[SearchRecord, ...] = ()
    before: tuple["Turn", ...] = ()
    routed: dict[str, str] = pydantic.Field(default_factory=dict[str, str])
    request_hash: str | None = None

    @pydantic.field_validator("state", mode="before")
    @classmethod
    def _read_state(cls, state: Any) -> Any:
        return orjson.loads(state) if isinstance(state, str) else state  # a ValueError is pydantic's to tell

    @pydantic.field_serializer("state")
    def _save_state(self, state: dict[str, Any] | None) -> Any:
        # As text, because storage that keeps JSON by value would change the order of its keys.
        return order_of(state) or state


NO_TURN = Turn()
"""The turn of calls that came without text, reasoning and state."""


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
