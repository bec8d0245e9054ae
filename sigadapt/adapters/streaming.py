"""Calls while they stream, for `dspy.streamify`: whole ones as they complete, partial ones where asked for.

DSPy's streams carry chunks of a chat completion to `StreamListener`s. Text fields are DSPy's own business.
For the calls field of a signature with tool fields, the calls are put together from the fragments here, and
sent to the same stream as `StreamResponse`s. Rules it enforces:

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
from typing import Any, NamedTuple, TypeAlias, cast

from dspy import lm15
from dspy.clients.base_lm import BaseLM
from dspy.clients.engines.streaming import EngineChunk
from dspy.dsp.utils.settings import settings
from dspy.streaming import messages
from dspy.streaming.messages import StreamResponse
from dspy.streaming.streaming_listener import StreamListener

from sigadapt.adapters.choice import Choice, choice_from_response
from sigadapt.adapters.readers.fragments import Call, Fold
from sigadapt.adapters.readers.reading import Json, objects
from sigadapt.adapters.whole_streams import kept_whole, with_calls
from sigadapt.signatures.arguments import parse_arguments
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
        """Nothing: calls are sent to the stream as they are found, never read off the text."""


class Watch(NamedTuple):
    """Which calls of a model call are listened to, and what becomes of them.

    Args:
        field: the calls field.
        judge: from a choice as read to one as the prediction has it: ids, names restored, calls checked.
        names: the alias of each declared name that has one.
    """

    field: str
    judge: Callable[[Choice], Choice]
    names: Mapping[str, str]


Listening: TypeAlias = Callable[[], Watch | None]
"""Gives the calls to listen for, asked only where DSPy streams; None where nobody waits for calls."""


def send(lm: BaseLM, request: lm15.Request, keywords: dict[str, Any], watch: Listening) -> lm15.Response:
    """Call the language model; where DSPy streams, keep the answer whole and send on its calls.

    Args:
        lm: the language model.
        request: what it is asked.
        keywords: how it is called.
        watch: who listens.
    """
    stream = cast("Any", settings).send_stream
    if stream is None:
        return cast("Any", lm)(request, **keywords)
    ear = _Ear(stream, watch())
    with settings.context(send_stream=ear):
        response = cast("Any", kept_whole(lm, request, is_async=False))(request, **keywords)
    response = with_calls(response, ear.calls())
    for item in ear.rest(response):
        cast("Any", messages).sync_send_to_stream(stream, item)
    return response


async def asend(
    lm: BaseLM, request: lm15.Request, keywords: dict[str, Any], watch: Listening
) -> lm15.Response:
    """The same, awaited."""
    stream = cast("Any", settings).send_stream
    if stream is None:
        return await cast("Any", lm).acall(request, **keywords)
    ear = _Ear(stream, watch())
    with settings.context(send_stream=ear):
        response = await cast("Any", kept_whole(lm, request, is_async=True)).acall(request, **keywords)
    response = with_calls(response, ear.calls())
    for item in ear.rest(response):
        await stream.send(item)
    return response


class _Ear:
    """DSPy's stream of one model call, which hears the fragments of calls in what is sent through it."""

    def __init__(self, stream: Any, watch: Watch | None) -> None:
        self._stream = stream
        self._watch = watch
        self._listeners = [] if watch is None else _listeners(watch.field)
        self._wants_partial = any(getattr(listener, "partial", False) for listener in self._listeners)
        self._fold = Fold()
        self._index: dict[Call, int] = {}
        self._sent: dict[int, AnyCall] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def send(self, item: Any) -> None:
        await self._stream.send(item)
        if isinstance(item, EngineChunk):
            for fragment in _fragments(cast("Json", item)):
                for response in self._heard(fragment):
                    await self._stream.send(response)

    def calls(self) -> list[Json]:
        """The calls that were heard, as those of an unstreamed chat message."""
        return [call.whole(ended=True) for call in self._fold.calls]

    def rest(self, response: lm15.Response) -> Iterator[StreamResponse]:
        """What the listeners have not got yet, when the answer is over."""
        if self._watch is None or not self._listeners:
            return
        calls = self._watch.judge(choice_from_response(response)).tool_calls
        missing = [call for call in calls.in_order() if self._is_news(call)] if calls is not None else []
        for place, call in enumerate(missing, 1):
            yield from self._responses(call, is_last=place == len(missing))

    def _heard(self, fragment: Json) -> Iterator[StreamResponse]:
        before = self._fold.calls[-1:]
        call = self._fold.add(fragment)
        newest = self._fold.calls[-1]
        self._index.setdefault(call, len(self._index))
        if self._wants_partial:
            yield from self._partial(call)
        for done in before if call is newest else [call]:
            if done is not newest:
                yield from self._completed(done)

    def _partial(self, call: Call) -> Iterator[StreamResponse]:
        name = call.name
        if self._watch is not None:
            name = next((own for own, alias in self._watch.names.items() if alias == name), name)
        chunk = PartialCall(self._index[call], call.id, name, call.arguments)
        for listener in self._listeners:
            if getattr(listener, "partial", False):
                yield _response(listener, chunk, is_last=False)

    def _completed(self, call: Call) -> Iterator[StreamResponse]:
        index = self._index[call]
        if self._watch is None or not self._listeners or index in self._sent:
            return
        text = call.arguments
        if not isinstance(parse_arguments(text), dict):
            return
        judged = self._watch.judge(choice_from_response(self._so_far(index, text))).tool_calls
        for made in judged.in_order() if judged is not None else ():
            if made.index == index:
                yield from self._responses(made, is_last=False)

    def _so_far(self, index: int, text: str) -> Json:
        """The answer as a chat completion: all its calls, for their ids, and one call's arguments."""
        calls = [
            {"id": call.id, "function": {"name": call.name, "arguments": text if n == index else ""}}
            for n, call in enumerate(self._fold.calls)
        ]
        return {"choices": [{"message": {"tool_calls": calls}}]}

    def _is_news(self, call: AnyCall) -> bool:
        sent = self._sent.get(call.index)
        return sent is None or (isinstance(sent, ToolCall) and isinstance(call, InvalidToolCall))

    def _responses(self, call: AnyCall, *, is_last: bool) -> Iterator[StreamResponse]:
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


def _response(listener: StreamListener, chunk: Any, *, is_last: bool) -> StreamResponse:
    name = cast("Any", listener).predict_name
    return StreamResponse(name, listener.signature_field_name, chunk, is_last_chunk=is_last)


def _listeners(field: str) -> list[StreamListener]:
    """Those who listen to a field of the predictor that is running."""
    everybody = cast("list[StreamListener]", cast("Any", settings).stream_listeners or [])
    running = cast("Any", settings).caller_predict
    return [each for each in everybody if each.signature_field_name == field and each.predict is running]


def _fragments(chunk: Json) -> Iterator[Json]:
    for choice in objects(chunk.get("choices")):
        yield from objects((choice.get("delta") or {}).get("tool_calls"))
