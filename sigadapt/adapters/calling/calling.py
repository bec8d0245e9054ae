"""Calling: how one request offers tools to the model, and where the answer holds the calls.

    request_to_send     canonical Request -> the Request to send, with a record of the changes
    reading_with_calls  Reading of the answer -> the Reading that has the calls

Native calling changes neither. Prompted calling writes tools, calls and results into the messages, and reads
calls from the answer's text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sigadapt.adapters.calling.prompted import prompted_request
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.adapters.response.text_choice import with_calls_of_text
from sigadapt.providers.provider import Reading
from sigadapt.schemas.json_values import Json
from sigadapt.text.layout import NO_LAYOUT, Layout


@dataclass(frozen=True, slots=True)
class Calling:
    """One way of calling tools."""

    mode: str = "native"
    """`native`, or `prompted` for tools and calls in the messages' text, in the text format `form`."""

    form: str = "hermes"
    recovers: bool = False
    """Whether calls are read from the text of a native answer that has none."""

    is_tentative: bool = False
    """Whether nobody knows that the endpoint takes tools; a refusal changes the mode, `because` of it."""

    layout: Layout = NO_LAYOUT
    because: str = ""

    @property
    def reads_text(self) -> bool:
        """Whether calls may be read from an answer's text."""
        return self.mode == "prompted" or self.recovers

    @property
    def reads(self) -> dict[str, Any]:
        """How calls are looked for in an answer's text: arguments of `read_text`."""
        if self.mode != "prompted":
            return {}
        return {"undeclared": True, "expected": self.form, "layout": self.layout}

    def request_to_send(self, request: Request) -> tuple[Request, tuple[Change, ...]]:
        """Return the Request to send, and what differs from the canonical one; the latter is not changed."""
        rows: Sequence[Json] = request["messages"]
        has_calls = any(row["role"] == "tool" or row.get("tool_calls") for row in rows)
        if not ("tools" in request or has_calls):
            return request, ()
        sent, changes = prompted_request(request, self.form)
        why = Change("/tools", "lowered", self.because)
        return sent, (why, *changes) if self.because else changes

    def reading_with_calls(
        self, reading: Reading, schemas: Callable[[], Mapping[str, Json]]
    ) -> tuple[Reading, bool]:
        """Return the Reading with the calls that its text holds, and whether they came from the text."""
        if reading.calls:
            return reading, False
        if reading.text:
            found = with_calls_of_text(reading, schemas(), **self.reads)
            return found, bool(found.calls)
        # A server whose parser missed the end of a thought leaves the answer in its thinking.
        thought, ended, answer = (reading.reasoning or "").rpartition("</think>")
        if not ended:
            return reading, False
        found = with_calls_of_text(reading._replace(text=answer, reasoning=thought), schemas(), **self.reads)
        return (found, True) if found.calls else (reading, False)


NATIVE = Calling()
