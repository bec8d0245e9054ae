"""Calling: how one request offers tools to the model, and where the answer holds the calls.

    request_to_send     canonical Request -> the Request to send, with a record of the changes
    reading_with_calls  Reading of the answer -> the Reading that has the calls

Native calling changes neither. Prompted calling writes tools, calls and results into the messages, and reads
calls from the answer's text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sigadapt.adapters.calling.prompted import prompted_request
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.lowering import Change
from sigadapt.adapters.response.text_choice import with_calls_of_text
from sigadapt.providers.provider import Reading
from sigadapt.schemas.json_values import Json
from sigadapt.text.layout import NO_LAYOUT, Layout


@dataclass(frozen=True, slots=True)
class Calling:
    """One way of calling tools.

    Args:
        mode: `native`, or `prompted` for tools and calls in the messages' text.
        call_format: the name of the text format in which prompted calls are asked for.
        recovers: whether calls are read from the text of a native answer that has none.
        is_tentative: whether nobody knows that the endpoint takes tools; a refusal then changes the mode.
        layout: how the adapter marks output fields in a text, the calls field among them.
        because: why a tentative mode was changed, for the record; an empty text if it was not.
        reads_text: whether calls may be read from an answer's text; it follows from the mode.
    """

    mode: str = "native"
    call_format: str = "hermes"
    recovers: bool = False
    is_tentative: bool = False
    layout: Layout = NO_LAYOUT
    because: str = ""
    reads_text: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads_text", self.mode == "prompted" or self.recovers)

    @property
    def reads(self) -> dict[str, Any]:
        """How calls are looked for in an answer's text: arguments of `read_text`."""
        if self.mode != "prompted":
            return {}
        return {"undeclared": True, "call_format": self.call_format, "layout": self.layout}

    def request_to_send(self, request: Request) -> tuple[Request, tuple[Change, ...]]:
        """Return the Request to send, and what differs from the canonical one; the latter is not changed."""
        rows: Sequence[Json] = request["messages"]
        has_calls = any(row["role"] == "tool" or row.get("tool_calls") for row in rows)
        if not ("tools" in request or has_calls):
            return request, ()
        sent, changes = prompted_request(request, self.call_format)
        why = Change("/tools", "lowered", self.because)
        return sent, (why, *changes) if self.because else changes

    def reading_with_calls(
        self, reading: Reading, schemas: Callable[[], Mapping[str, Json]]
    ) -> tuple[Reading, bool]:
        """Return the Reading with the calls that its text holds, and whether they came from the text."""
        if reading.calls:
            return reading, False
        if not reading.text:
            # A server whose parser missed the end of a thought leaves the answer in its thinking.
            thought, ended, answer = (reading.reasoning or "").rpartition("</think>")
            if not ended:
                return reading, False
            left = with_calls_of_text(
                reading._replace(text=answer, reasoning=thought), schemas(), **self.reads
            )
            return (left, True) if left.calls else (reading, False)
        found = with_calls_of_text(reading, schemas(), **self.reads)
        return found, bool(found.calls)


NATIVE = Calling()
