"""Send calls to the listeners of `dspy.streamify` while an answer streams.

DSPy streams chunks of a chat completion to `StreamListener`s and handles text fields itself. For the calls
field, `lm/streams/call_tap.py` puts the calls together, and a `CallSubscription` makes the `StreamResponse`s
that go to the same stream. Rules:

 a. A `StreamListener` on the calls field gets each call once, as a `ToolCalls` that holds only this call,
    good or bad. Its name and checks are the same as in the prediction (whole calls). It has no turn (text,
    reasoning, provider state), which is known only at the end: continue a conversation with the prediction's
    calls.
 b. A call is whole when its arguments are a complete object and the answer has gone on to another call or has
    ended. Arguments that cannot be decoded are checked only at the end, when the finish reason is known.
 c. If later fragments make a good call bad, it is sent again as a bad call. The prediction has the bad call.
 d. A partial call is a `PartialCall`, without decoded arguments. Only a `CallListener` made with
    `partial=True` gets them.
 e. A subscription belongs to one model call and ends with it.
 f. Where calls are read from text, `text/gate.py` holds their markup back from the listeners to text.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from sigadapt.adapters.response.choice import Answer, Choice
from sigadapt.adapters.text_listeners import (
    TextSubscription,
    holds_more,
    response_to,
    text_of_chunk,
    with_text,
)
from sigadapt.dspy_boundary.internals import StreamListener, own_listeners
from sigadapt.errors import InvalidOption
from sigadapt.providers.provider import Reading
from sigadapt.providers.stream_parts import Call, Fold
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls, Turn

if TYPE_CHECKING:
    from sigadapt.text.gate import TextGate

AnyCall = ToolCall | InvalidToolCall


@dataclass(frozen=True, slots=True)
class PartialCall:
    """A call that is still being streamed.

    Args:
        index: its position among the calls of the answer, from 0.
        id: the provider's id, or a made one (ids).
        name: the declared tool's name; None if it has not come yet.
        arguments: the text of the arguments so far.

    Example:
        >>> PartialCall(0, "call_1", "get_weather", '{"city": "Par').arguments
        '{"city": "Par'
    """

    index: int
    id: str | None
    name: str | None
    arguments: str


class CallListener(StreamListener):
    """A `dspy.streaming.StreamListener` for a calls field that can also get partial calls.

    Args:
        signature_field_name: the calls field.
        partial: whether to get a `PartialCall` for every fragment, in addition to the whole calls.
        options: `predict`, `predict_name` and `allow_reuse` of `dspy.streaming.StreamListener`.

    Raises:
        InvalidOption: `not_picklable`, when it is pickled. The stream raises it for a field without calls.

    Example:
        >>> import dspy
        >>> listener = CallListener("calls", partial=True)
        >>> isinstance(listener, dspy.streaming.StreamListener), listener.partial
        (True, True)
    """

    def __init__(self, signature_field_name: str, *, partial: bool = False, **options: Any) -> None:
        super().__init__(signature_field_name, **options)
        self.partial = partial

    def __reduce__(self) -> NoReturn:
        raise InvalidOption(
            f"the CallListener of {self.signature_field_name!r} cannot be pickled: it listens to a stream of "
            "its process",
            code="not_picklable",
            fix="Create it where you call dspy.streamify.",
        )

    def receive(self, chunk: Any) -> None:
        """Ignore chunks of text: a `CallSubscription` sends the calls to the stream."""


class CallSubscription:
    """The listeners to the calls of one model call, and the calls that they have got so far."""

    def __init__(
        self,
        field: str,
        read_choice: Callable[[Reading, Any], Choice],
        aliases: Mapping[str, str],
        texts: TextSubscription | None,
        gate: "TextGate | None",
        *,
        made: Callable[[int], str],
        before: int,
    ) -> None:
        self._made = made  # ids of calls without one
        self._before = before  # how many calls the answers before a reask made
        self._texts = texts  # None if there is no plain text output
        self._gate = gate  # None if calls are not read from text
        self._latest: Any = None
        self._read_choice = read_choice
        self._declared = {alias: name for name, alias in aliases.items()}
        own = own_listeners()
        self._listeners = [each for each in own if each.signature_field_name == field]
        for each in own:
            if isinstance(each, CallListener) and each not in self._listeners:
                raise InvalidOption(
                    f"a CallListener listens to {each.signature_field_name!r}, where no calls come",
                    field=each.signature_field_name,
                    fix=f"Use CallListener({field!r}), and StreamListener for text.",
                )
        self._for_partial = [each for each in self._listeners if getattr(each, "partial", False)]
        self._fold = Fold()
        self._index: dict[Call, int] = {}
        self._sent: dict[int, AnyCall] = {}

    def on_chunk(self, chunk: Json, fragments: list[Json]) -> Iterator[Any]:
        """Yield what to send for a chunk: the chunk, unless its text is held back, and what follows it."""
        text = text_of_chunk(chunk)
        shown: Any = chunk
        if text and self._gate is not None:
            self._latest = chunk
            text = self._gate.take(text)
            if not text and not holds_more(chunk):
                return
            shown = with_text(chunk, text)
        yield from self._with_text(shown, text)
        for fragment in fragments:
            yield from self._on_fragment(fragment)

    def _with_text(self, chunk: Any, text: str) -> Iterator[Any]:
        """Yield a chunk and what the listeners to plain text get of it."""
        if self._texts is None or not self._texts.takes_all:
            yield chunk
        if self._texts is not None and text:
            yield from self._texts.on_text(text)

    def _on_fragment(self, fragment: Json) -> Iterator[Any]:
        """Yield the `StreamResponse`s to send after a fragment of a call."""
        before = self._fold.calls[-1:]
        call = self._fold.add(fragment)
        index = self._index.setdefault(call, len(self._index))
        if self._for_partial:
            name = self._declared.get(call.name or "", call.name)
            chunk = PartialCall(index + self._before, call.id or self._made(index), name, call.arguments)
            yield from (response_to(each, chunk, is_last=False, ends=False) for each in self._for_partial)
        newest = self._fold.calls[-1]
        for done in before if call is newest else [call]:
            if done is not newest:
                yield from self._complete(done)

    def on_end(self, answer: Answer) -> Iterator[Any]:
        """At the end of the stream, yield the text and calls not sent yet."""
        choice: Choice | None = None
        if self._gate is not None and self._latest is not None:
            choice = self._read_choice(answer.reading, answer.response)
            text = self._gate.rest(choice.text)
            if text:
                yield from self._with_text(with_text(self._latest, text), text)
        if self._texts is not None:
            yield from self._texts.on_end(goes_on=answer.reading.finish == "pause")
        if not self._listeners:
            return
        calls = (choice or self._read_choice(answer.reading, answer.response)).tool_calls
        missing: list[AnyCall] = []
        for call in calls.in_order() if calls is not None else ():
            sent = self._sent.get(call.index)
            if sent is None or (isinstance(sent, ToolCall) and isinstance(call, InvalidToolCall)):
                missing.append(call)
        for place, call in enumerate(missing, 1):
            yield from self._responses(call, is_last=place == len(missing))

    def _complete(self, call: Call) -> Iterator[Any]:
        index, text = self._index[call], call.arguments
        if not self._listeners or index in self._sent or call.is_custom:
            return  # the text of a custom tool's call is complete only when the answer ends
        if not isinstance(parse_arguments(text), dict):
            return
        # All calls so far, because ids depend on them, but the arguments of this call only.
        raw = [(each.id, each.name, text if n == index else "") for n, each in enumerate(self._fold.calls)]
        calls = self._read_choice(Reading(None, None, raw, None), None).tool_calls
        for whole in calls.in_order() if calls is not None else ():
            if whole.index == index:
                yield from self._responses(whole, is_last=False)

    def _responses(self, call: AnyCall, *, is_last: bool) -> Iterator[Any]:
        self._sent[call.index] = call
        index = call.index + self._before
        if isinstance(call, InvalidToolCall):
            chunk = ToolCalls(tool_calls=[], invalid=(call.model_copy(update={"index": index}),))
        else:
            chunk = ToolCalls(tool_calls=[call.model_copy(update={"turn": Turn(), "index": index})])
        for listener in self._listeners:
            yield response_to(listener, chunk, is_last=is_last)
