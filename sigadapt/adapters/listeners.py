"""Calls while they stream, for `dspy.streamify`: whole ones as they complete, partial ones where asked for.

DSPy's streams carry chunks of a chat completion to `StreamListener`s. Text fields are DSPy's own business.
For the calls field of a signature with tool fields, `lm/call_tap.py` puts the calls together, and what is
said of them here goes to the same stream as `StreamResponse`s. Rules it enforces:

 a. A `StreamListener` on the calls field gets each call once, as a `ToolCalls` that holds that call alone,
    good or bad, named and checked as the prediction's calls are (rule 12). Its turn (text, reasoning,
    provider state) is known only at the end: go on with the conversation from the prediction's calls.
 b. A call is whole when its arguments are a complete object and the answer has gone on to another call, or
    has ended. What cannot be decoded is judged at the end alone, with the provider's finish reason known.
 c. A good call that later fragments spoil is sent again, as the bad call it became; the prediction agrees.
 d. Partial calls are `PartialCall`s, which have no decoded arguments, and go only to a `CallListener` made
    with `partial=True`.
 e. The state of a stream lives and ends with the one model call that it belongs to.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from sigadapt.adapters.lm.dspy_internals import StreamListener, StreamResponse, listeners_of
from sigadapt.adapters.response.choice import Choice, readings_of
from sigadapt.providers.provider import Reading
from sigadapt.providers.stream_parts import Call, Fold
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls, Turn

AnyCall = ToolCall | InvalidToolCall


@dataclass(frozen=True, slots=True)
class PartialCall:
    """A call of which more may come.

    Args:
        index: its position among the calls of the answer.
        id: the provider's id, if it has come.
        name: the declared tool's name, if it has come.
        arguments: the arguments' text so far.

    Example:
        >>> PartialCall(0, "call_1", "get_weather", '{"city": "Par').arguments
        '{"city": "Par'
    """

    index: int
    id: str | None
    name: str | None
    arguments: str


class CallListener(StreamListener):
    """DSPy's listener for a field of calls, which can also ask for partial calls.

    Args:
        signature_field_name: the calls field.
        partial: whether to get a `PartialCall` for every fragment, besides the whole calls.
        options: `predict`, `predict_name` and `allow_reuse` of `dspy.streaming.StreamListener`.

    Example:
        >>> import dspy
        >>> listener = CallListener("calls", partial=True)
        >>> isinstance(listener, dspy.streaming.StreamListener), listener.partial
        (True, True)
    """

    def __init__(self, signature_field_name: str, *, partial: bool = False, **options: Any) -> None:
        super().__init__(signature_field_name, **options)
        self.partial = partial

    def receive(self, chunk: Any) -> None:
        """Take nothing off the text: calls are sent to the stream as they are found."""


class CallSubscription:
    """The listeners to the calls of one model call, and what they have got so far.

    Args:
        field: the calls field.
        finished: makes of a reading the choice that the prediction will have: ids, names, calls checked.
        aliases: the alias of each declared name that has one.
    """

    def __init__(
        self, field: str, finished: Callable[[Reading, Any], Choice], aliases: Mapping[str, str]
    ) -> None:
        self._finished = finished
        self._declared = {alias: name for name, alias in aliases.items()}
        self._listeners = listeners_of(field)
        self._for_partial = [each for each in self._listeners if getattr(each, "partial", False)]
        self._index: dict[Call, int] = {}
        self._sent: dict[int, AnyCall] = {}

    def on_fragment(self, fold: Fold, call: Call, before: list[Call]) -> Iterator[Any]:
        """Give what is to be sent after a fragment was added to a call.

        Args:
            fold: the calls so far.
            call: the call that the fragment belongs to.
            before: the latest call before the fragment came, if there was one.
        """
        index = self._index.setdefault(call, len(self._index))
        if self._for_partial:
            name = self._declared.get(call.name or "", call.name)
            chunk = PartialCall(index, call.id, name, call.arguments)
            yield from (_response(each, chunk, is_last=False) for each in self._for_partial)
        newest = fold.calls[-1]
        for done in before if call is newest else [call]:
            if done is not newest:
                yield from self._completed(fold, done)

    def on_end(self, response: Any) -> Iterator[Any]:
        """Give what the listeners have not got yet, when the answer is over."""
        if not self._listeners:
            return
        calls = self._finished(readings_of(response)[0], response).tool_calls
        missing = [call for call in calls.in_order() if self._is_news(call)] if calls is not None else []
        for place, call in enumerate(missing, 1):
            yield from self._responses(call, is_last=place == len(missing))

    def _completed(self, fold: Fold, call: Call) -> Iterator[Any]:
        index, text = self._index[call], call.arguments
        if not self._listeners or index in self._sent or not isinstance(parse_arguments(text), dict):
            return
        # The answer so far: all its calls, because ids depend on them, and one call's arguments.
        raw = [(each.id, each.name, text if n == index else "") for n, each in enumerate(fold.calls)]
        calls = self._finished(Reading(None, None, raw, None), None).tool_calls
        for made in calls.in_order() if calls is not None else ():
            if made.index == index:
                yield from self._responses(made, is_last=False)

    def _is_news(self, call: AnyCall) -> bool:
        sent = self._sent.get(call.index)
        return sent is None or (isinstance(sent, ToolCall) and isinstance(call, InvalidToolCall))

    def _responses(self, call: AnyCall, *, is_last: bool) -> Iterator[Any]:
        self._sent[call.index] = call
        chunk = _alone(call)
        for listener in self._listeners:
            # As DSPy's text listeners have it: the field was streamed, so the prediction may be left out.
            listener.stream_start = listener.stream_end = True
            yield _response(listener, chunk, is_last=is_last)


def _alone(call: AnyCall) -> ToolCalls:
    if isinstance(call, InvalidToolCall):
        return ToolCalls(tool_calls=[], invalid=(call,))
    return ToolCalls(tool_calls=[call.model_copy(update={"turn": Turn()})])


def _response(listener: StreamListener, chunk: Any, *, is_last: bool) -> Any:
    name = cast("Any", listener).predict_name
    return StreamResponse(name, listener.signature_field_name, chunk, is_last_chunk=is_last)
