"""Send calls and plain text to the listeners of `dspy.streamify` while an answer streams.

DSPy streams chunks of a chat completion to `StreamListener`s and handles text fields itself. During one model
call, a `CallTap` stands in for that stream. It passes the chunks on and puts the calls together; if somebody
listens to calls, it is a `CallSubscription`, which sends their `StreamResponse`s too. Rules:

 a. A `StreamListener` on the calls field gets each call once, as a `ToolCalls` that holds only this call,
    good or bad. Its name and checks are the same as in the prediction (whole calls). It has no turn (text,
    reasoning, provider state), which is known only at the end: continue a conversation with the prediction's
    calls.
 b. A call is whole when its arguments are a complete object and the answer has gone on to another call or has
    ended. Arguments that cannot be decoded are checked only at the end, when the finish reason is known.
 c. If later fragments make a good call bad, it is sent again as a bad call. The prediction has the bad call.
 d. A partial call is a `PartialCall`, without decoded arguments. Only a `CallListener` made with
    `partial=True` gets them.
 e. A subscription belongs to one model call and ends with it. The calls of an answer to a reask are counted
    on from those before it, as in the prediction.
 f. Where calls are read from text, `text/gate.py` holds their markup back from the listeners to text.

DSPy's listeners wait for the text that marks a field. A model with tools often answers in plain text, which
becomes the one text output (`outputs.py`). A `TextSubscription` sends it:

 g. Text that begins like a marker is left to DSPy's listener. Any other text is sent as it comes, also beside
    calls, whose turn has the whole text in `ToolCalls.text`.
 h. If a marker follows all the same, it is not sent, and what it marks is.
 i. Text that could not be told from a marker until the answer ended is sent then.
"""

import copy
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from sigadapt.adapters.lm.stream_recorder import NOT_JSON, Recorder
from sigadapt.adapters.output_format import CHAT_MARKER
from sigadapt.adapters.response.choice import CandidateAnswer, Choice
from sigadapt.adapters.response.typed_calls import build_unvalidated, identity
from sigadapt.dspy_boundary.internals import (
    EngineChunk,
    StreamListener,
    StreamResponse,
    all_listeners,
    listeners_of,
    own_listeners,
)
from sigadapt.dspy_boundary.patches import is_direct
from sigadapt.errors import InvalidOption
from sigadapt.json_values import Json
from sigadapt.providers.wire.stream_parts import CallPieces, Fold
from sigadapt.providers.wire.values import RawCall, json_text
from sigadapt.schemas.arguments import Flaw, UnreadCall, parse_arguments
from sigadapt.signatures.calls import NO_TURN, InvalidToolCall, ToolCall, ToolCalls

if TYPE_CHECKING:  # text formats are imported when a text is first read
    from sigadapt.text.gate import TextGate

AnyCall = ToolCall | InvalidToolCall
_NO_FRAGMENTS: list[Json] = []
_NOT_READ = UnreadCall("", Flaw("invalid_json", "the arguments of another call"))


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


_ENDS = {CHAT_MARKER: CHAT_MARKER.format("completed"), "<{}>": "</{}>"}


class TextSubscription:
    """The listeners to the plain text of one model call, for the one text output and its marker."""

    def __init__(self, field: str, marker: str) -> None:
        self._listeners: list[Any] = list(listeners_of(field)) if marker else []
        self._marker = marker.format(field)
        end = _ENDS.get(marker)
        self._start = marker.format(field) if end else "{"
        self._markers = (self._start, end.format(field)) if end else ()
        self._buffer = self._line = ""  # what is held; and the first character of what was sent of this line
        self._is_plain: bool | None = None
        self._are_alone = len(self._listeners) == len(all_listeners())
        self.takes_all = False  # the text is plain and nobody else listens: DSPy's half has nothing to find

    def on_text(self, text: str) -> Iterator[Any]:
        """Yield the `StreamResponse`s to send after a piece of text."""
        if not self._listeners or self._is_plain is False:
            return
        self._buffer += text
        if self._is_plain is None:
            self._decide()
        if self._is_plain:
            yield from self._send(self._ready())

    def on_end(self, *, goes_on: bool = False) -> Iterator[Any]:
        """Yield what is left to send when the answer ends; a paused turn goes on with another answer."""
        is_open = self._is_plain is None and bool(self._buffer.strip()) and self._marker not in self._buffer
        if self._is_plain or is_open:
            yield from self._send(self._buffer + "\n\n" * goes_on, is_last=not goes_on)

    def _decide(self) -> None:
        start = self._buffer.lstrip()
        if not start or self._start.startswith(start) or (not self._markers and start[0] in "{[`"):
            return  # `on_end` knows
        self._is_plain = not start.startswith(self._start)
        self.takes_all = self._is_plain and self._are_alone

    def _ready(self) -> str:
        """Take the text that is no part of a marker off what is held."""
        size = 0
        if self._start[0] in self._buffer:  # so does every marker begin
            for marker in self._markers:
                self._buffer = self._without(marker)
            size = max((overlap(self._buffer, marker) for marker in self._markers), default=0)
        ready = self._buffer[: len(self._buffer) - size]
        self._buffer = self._buffer[len(ready) :]
        line = f"{self._line}{ready}".rpartition("\n")[2]
        self._line = line.strip()[:1]
        return ready

    def _without(self, marker: str) -> str:
        """Return what is held without a marker, which DSPy's chat form has only where a line begins."""
        if not marker.startswith("[["):
            return self._buffer.replace(marker, "")
        lines = f"{self._line}{self._buffer}".split("\n")
        for number, line in enumerate(lines):
            if line.lstrip().startswith(marker):
                lines[number] = line.replace(marker, "", 1)
        return "\n".join(lines)[len(self._line) :]

    def _send(self, text: str, *, is_last: bool = False) -> Iterator[Any]:
        if not text and not is_last:
            return
        for listener in self._listeners:
            yield response_to(listener, text, is_last=is_last)


def response_to(listener: Any, chunk: Any, *, is_last: bool) -> Any:
    """Return what a listener gets, and end DSPy's own part of it: then the prediction may be left out."""
    listener.stream_start = listener.stream_end = True
    return StreamResponse(listener.predict_name, listener.signature_field_name, chunk, is_last_chunk=is_last)


def overlap(text: str, marker: str) -> int:
    """Return how many characters at the end of a text could begin a marker."""
    sizes = range(min(len(text), len(marker) - 1), 0, -1)
    return next((size for size in sizes if marker.startswith(text[-size:])), 0)


def with_text(chunk: Any, text: str) -> Any:
    """Return a chunk of a chat completion with another text, and as it is apart from that."""
    chunk_copy = copy.deepcopy(chunk)
    chunk_copy["choices"][0]["delta"]["content"] = text
    return chunk_copy


class CallTap:
    """Stands in for DSPy's stream during one model call, and keeps the calls for an answer that breaks off.

    `recorder` has the provider's own events, on a native route.
    """

    recorder: Recorder | None = None

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.is_direct = is_direct(stream)
        self._fold = Fold()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def send(self, item: Any) -> Awaitable[None]:
        """Send a chunk to DSPy's stream, and what the listeners get of it."""
        if not isinstance(item, EngineChunk):
            return self.stream.send(item)
        chunk: Any = item
        delta: Json = chunk["choices"][0]["delta"]
        fragments: list[Json] = delta.get("tool_calls") or _NO_FRAGMENTS
        if fragments and fragments[0]["function"]["arguments"] == NOT_JSON:
            return self._send_all([])
        items = self._on_chunk(chunk, delta.get("content") or "", fragments)
        return self.stream.send(items[0]) if len(items) == 1 else self._send_all(items)

    async def _send_all(self, items: list[Any]) -> None:
        for each in items:
            await self.stream.send(each)

    def _on_chunk(self, chunk: Any, text: str, fragments: list[Json]) -> list[Any]:
        for fragment in fragments:
            self._fold.add(fragment)
        return [chunk]

    def on_end(self, answer: CandidateAnswer) -> list[Any]:
        """Return what is left to send when the answer ends."""
        return []

    def calls(self) -> list[Json]:
        """Return the calls that were streamed, as the `tool_calls` of an unstreamed chat message."""
        return [call.whole(ended=True) for call in self._fold.calls]


class CallSubscription(CallTap):
    """The listeners to the calls of one model call, and the calls that they have got so far.

    Args:
        stream: DSPy's stream.
        field: the calls field.
        read: returns the Choice of an answer, its calls typed and checked.
        read_calls: does the same for some calls of an answer that has not ended.
        declared_name: returns the declared name for one that the answer has; None if they are the same.
        earlier_ids: the ids of the calls that the answers before a reask made.
        identities: the `identity` of each good one of these, which no listener gets again.
        made_id: returns the id of a call without one, by its index.
        adapter_tools: names of the adapter's own tools, whose calls are no partial calls.
        texts: the listeners to plain text; None if there is no plain text output.
        gate: holds back the markup of calls; None if calls are not read from text.
        run: the listener of a whole run (`runs/watching.py`), which gets everything; None if there is none.
    """

    def __init__(
        self,
        stream: Any,
        *,
        field: str,
        read: Callable[[CandidateAnswer], Choice],
        read_calls: Callable[[list[RawCall]], Choice],
        declared_name: Callable[[str], str] | None,
        earlier_ids: Collection[str],
        identities: Collection[str],
        made_id: Callable[[int], str],
        adapter_tools: Collection[str] = (),
        texts: TextSubscription | None,
        gate: "TextGate | None",
        run: Any = None,
    ) -> None:
        super().__init__(stream)
        self._texts = texts
        self._gate = gate
        self._latest: Any = None
        self._read = read
        self._read_calls = read_calls
        self._declared_name = declared_name
        self._earlier = len(earlier_ids)
        self._owners: dict[str, int] = dict.fromkeys(earlier_ids, -1)  # the index of the call with an id
        self._identities = identities
        self._made_id = made_id
        self._adapter_tools = adapter_tools
        listeners = own_listeners() if run is None else [run]
        self._run = run
        self._listeners = [each for each in listeners if each.signature_field_name == field]
        for each in listeners:
            if isinstance(each, CallListener) and each not in self._listeners:
                raise InvalidOption(
                    f"a CallListener listens to {each.signature_field_name!r}, where no calls come",
                    field=each.signature_field_name,
                    fix=f"Use CallListener({field!r}), and StreamListener for text.",
                )
        self._for_partial = [each for each in self._listeners if getattr(each, "partial", False)]
        self._index: dict[CallPieces, int] = {}
        self._sizes: dict[CallPieces, int] = {}  # how many pieces of it a run has got
        self._named: set[CallPieces] = set()  # the calls whose ids have come
        self._id_counts: Counter[str] = Counter()
        self._by_index: dict[int, AnyCall] = {}
        self._good: set[tuple[str, str]] = set()  # id and `identity` of the good ones

    def _on_chunk(self, chunk: Any, text: str, fragments: list[Json]) -> list[Any]:
        """Return what to send for a chunk: the chunk, unless its text is held back, and what follows it."""
        visible = chunk
        if text and self._gate is not None:
            self._latest = chunk
            text = self._gate.take(text)
            choice: Json = chunk["choices"][0]
            if not (text or choice.get("finish_reason") or choice["delta"].keys() - {"content", "role"}):
                return []
            visible = with_text(chunk, text)
        items = self._with_text(visible, text)
        for fragment in fragments:
            before = self._fold.calls[-1:]
            call = self._fold.add(fragment)
            items += self._after_fragment(call, before) if self._listeners else ()
        return items

    def _with_text(self, chunk: Any, text: str) -> list[Any]:
        """Return a chunk and what the listeners to plain text get of it."""
        if self._texts is None:
            return [chunk]
        items = [] if self._texts.takes_all else [chunk]
        return [*items, *self._texts.on_text(text)] if text else items

    def _after_fragment(self, call: CallPieces, before: list[CallPieces]) -> Iterator[Any]:
        """Yield what to send after a fragment of a call; `before` has the latest call of that time."""
        index = self._index.setdefault(call, len(self._index))
        if call.id and call not in self._named:
            self._named.add(call)
            self._id_counts[call.id] += 1
        if self._for_partial and not (self._adapter_tools and call.name in (None, *self._adapter_tools)):
            name = call.name
            if name and self._declared_name is not None:
                name = self._declared_name(name)
            # A run gets the piece alone: the whole text for each piece is work that grows with its square.
            start = self._sizes.get(call, 0)
            self._sizes[call] = len(call.pieces)
            arguments = call.arguments if self._run is None else json_text(call.pieces[start:])
            # The id that the prediction's call will have: only the first call with an id keeps it.
            is_owner = call.id is not None and self._owners.setdefault(call.id, index) == index
            call_id = call.id if is_owner else self._made_id(index)
            chunk = PartialCall(self._earlier + index, call_id, name, arguments)
            for each in self._for_partial:
                field = each.signature_field_name
                yield StreamResponse(each.predict_name, field, chunk, is_last_chunk=False)
        newest = self._fold.calls[-1]
        for complete in before if call is newest else [call]:
            if complete is not newest:
                yield from self._complete(complete)

    def on_end(self, answer: CandidateAnswer) -> list[Any]:
        """Return the text and calls not sent yet. The answer's Choice is read here, if it is needed."""
        items: list[Any] = []
        if self._run is not None:  # its text comes in chunks, if it came through the gate
            choice = self._read(answer)
            if self._latest is not None:
                choice = replace(choice, text=None)
            items.append(choice)
        if self._gate is not None and self._latest is not None:
            text = self._gate.remaining(self._read(answer).text)
            if text:
                items += self._with_text(with_text(self._latest, text), text)
        if self._texts is not None:
            calls = self._read(answer).tool_calls if self._adapter_tools else None
            searches = calls is not None and not calls and bool(calls.turn.searches)
            items += self._texts.on_end(goes_on=searches or answer.reading.finish == "pause")
        if not self._listeners:
            return items
        missing = [call for call in self._new_calls(self._read(answer)) if self._is_news(call)]
        for place, call in enumerate(missing, 1):
            items += self._responses(call, is_last=place == len(missing))
        return items

    def _complete(self, call: CallPieces) -> Iterator[Any]:
        index = self._index[call]
        text = call.arguments
        if not self._listeners or index in self._by_index or call.is_custom:
            return  # the text of a custom tool's call is complete only when the answer ends
        if not text:  # of a call that has just been opened, if the pieces of several calls are interleaved
            return
        if not isinstance(parse_arguments(text), dict):
            return
        if call.id and self._id_counts[call.id] == 1 and self._owners.get(call.id, index) == index:
            # Its id depends on no other call, so it is read alone: n calls would be n * n readings.
            whole_calls = self._calls_of([(call.id, call.name, text)], 0)
            changes: Json = {"index": index}
        elif not self._earlier and not self._id_counts:
            whole_calls = self._calls_of([(None, call.name, text)], 0)
            changes = {"index": index, "id": self._made_id(index)}
        else:
            same = call.id, call.name, text
            if any((each.id, each.name, each.arguments) == same for each in self._fold.calls[:index]):
                return  # one call that came twice
            others = [(each.id, each.name, _NOT_READ) for each in self._fold.calls]
            raw: list[RawCall] = [*others[:index], (call.id, call.name, text), *others[index + 1 :]]
            whole_calls = self._calls_of(raw, index)
            changes = {}
        for whole in whole_calls:
            yield from self._responses(whole.model_copy(update=changes), is_last=False)

    def _calls_of(self, raw: list[RawCall], index: int) -> list[AnyCall]:
        """Return the call of this index, typed, if it was not accepted before."""
        return [call for call in self._new_calls(self._read_calls(raw)) if call.index == index]

    def _new_calls(self, choice: Choice) -> Iterator[AnyCall]:
        """Yield the calls of a Choice that were not accepted before."""
        calls = choice.tool_calls
        for call in () if calls is None else calls.in_order():
            if (
                isinstance(call, InvalidToolCall)
                or not self._identities
                or identity(call) not in self._identities
            ):
                yield call

    def _is_news(self, call: AnyCall) -> bool:
        """Return whether no listener got this call, or it was good and is bad now, or the reverse."""
        earlier = self._by_index.get(call.index)
        if isinstance(call, InvalidToolCall):
            return not isinstance(earlier, InvalidToolCall)
        return (call.id, identity(call)) not in self._good

    def _responses(self, call: AnyCall, *, is_last: bool) -> Iterator[Any]:
        self._by_index[call.index] = call
        index = self._earlier + call.index
        values: dict[str, Any] = {"tool_calls": [], "tool_call_results": None, "invalid": (), "turn": NO_TURN}
        if isinstance(call, InvalidToolCall):
            values["invalid"] = (call.model_copy(update={"index": index}),)
        else:
            self._good.add((call.id, identity(call)))
            values["tool_calls"] = [call.model_copy(update={"turn": NO_TURN, "index": index})]
        chunk = build_unvalidated(ToolCalls, values)
        for listener in self._listeners:
            yield response_to(listener, chunk, is_last=is_last)
