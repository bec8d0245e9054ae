"""The script of a loopback provider: replies, independent of any provider's format, and what they reply to.

`Answer` is a model's turn, `Failure` an HTTP error. Both are written in the format of the wire that asked
(`testing/wires/`). For other bodies, give a dict, which is sent as JSON, or bytes, which are sent unchanged.
A script is a list of replies, or a function of each request (`Received`).
"""

import asyncio
import inspect
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from sigadapt.errors import SigadaptError
from sigadapt.json_values import cut, is_mapping, is_object, is_sequence


class LoopbackError(SigadaptError):
    """Raised for a script that cannot be played, or a request that the loopback provider cannot serve.

    `code` is `invalid_script`, `unknown_wire`, `unknown_path` or `unreadable_request`. For use
    outside of the provider's `with` block it is `not_running`, and for entering it twice `already_running`.
    """

    code = "invalid_script"


def dumps(value: Any) -> str:
    """Return a value as compact JSON text; raise ValueError for NaN and infinities."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Call:
    r"""A tool call of an `Answer`.

    Args:
        name: the tool's name.
        arguments: an object; or a str, which is sent unchanged where the wire carries JSON text, and may be
            invalid JSON.
        id: the call's id. None gives an id as the wire's provider would: `call_1`, `call_2`, ... on OpenAI's
            wires and `toolu_1`, ... on Anthropic's, continuing the count of the conversation; none on Gemini
            and Ollama.

    Example:
        >>> Call("get_weather", {"city": "Paris"}).text
        '{"city":"Paris"}'
        >>> Call("get_weather", '{"city": "Par').text
        '{"city": "Par'
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    id: str | None = None

    @property
    def text(self) -> str:
        """The arguments as JSON text, for wires that carry text."""
        return self.arguments if isinstance(self.arguments, str) else dumps(self.arguments)

    @property
    def object(self) -> dict[str, Any]:
        """The arguments as an object, for wires that carry objects.

        Raises:
            LoopbackError: the arguments are text that is not a JSON object.
        """
        if not isinstance(self.arguments, str):
            return dict(self.arguments)
        try:
            value = json.loads(self.arguments)
        except ValueError:
            value = None
        if not is_object(value):
            reason = f"the arguments {self.arguments!r} are not a JSON object, and this wire carries objects"
            fix = "Give an object, or use a wire that carries text (OpenAI; Anthropic streamed)."
            raise LoopbackError(reason, tool=self.name, fix=fix)
        return value


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's turn.

    Args:
        text: what the model says.
        calls: the tool calls it makes, in order.
        reasoning: the thinking it shows: `reasoning_content` on OpenAI chat, a summary on OpenAI responses, a
            thinking block on Anthropic, a thought part on Gemini, `thinking` on Ollama.
        finish: the finish reason: `stop`, `tool_calls`, `length` or `content_filter`, sent as the wire's own
            word; any other word is sent unchanged. None gives `tool_calls` if there are calls, else `stop`.
        signature: the opaque token that the provider wants back on the next turn, in Base64 because clients
            decode it: `signature` of Anthropic's thinking block, `thoughtSignature` on Gemini's first call or
            text, `encrypted_content` in the reasoning item of OpenAI responses. Other wires do not send it.
        usage: the numbers of input and output tokens.
        chunk: the number of characters in each piece of text, reasoning or arguments of a stream.

    Example:
        >>> Answer(calls=[Call("now")]).reason, Answer(text="Sunny.").reason
        ('tool_calls', 'stop')
    """

    text: str | None = None
    calls: Sequence[Call] = ()
    reasoning: str | None = None
    finish: str | None = None
    signature: str | None = None
    usage: tuple[int, int] = (10, 5)
    chunk: int = 8

    def __post_init__(self) -> None:
        if not is_sequence(self.calls) or not all(isinstance(call, Call) for call in self.calls):
            reason = f"expected a list of Call, got {cut(repr(self.calls))}"
            raise LoopbackError(reason, field="calls", fix='Give Answer(calls=[Call("name", {...})]).')
        if type(self.chunk) is not int or self.chunk < 1:
            raise LoopbackError(f"expected a number of characters, got {self.chunk!r}", field="chunk")

    @property
    def reason(self) -> str:
        """The finish reason: `finish`, else `tool_calls` if there are calls, else `stop`."""
        return self.finish or ("tool_calls" if self.calls else "stop")

    def calls_with_ids(self, prefix: str, earlier_calls: int) -> Iterator[tuple[str, Call]]:
        """Yield each call with its id; new ids continue after the earlier calls of the conversation (ids)."""
        for number, call in enumerate(self.calls, earlier_calls + 1):
            yield f"{prefix}{number}" if call.id is None else call.id, call

    def pieces(self, text: str | None) -> Iterator[str]:
        """Cut a text into the pieces that a stream sends."""
        text = text or ""
        return (text[start : start + self.chunk] for start in range(0, len(text), self.chunk))


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error or a redirect, written in the error shape of the wire that asked.

    Args:
        status: the HTTP status, from 300 to 599, such as 429.
        message: the error message.
        body: the whole body, sent in place of the wire's error shape.

    Example:
        >>> Failure(429, "slow down").status
        429
    """

    status: int
    message: str = "a scripted failure"
    body: Mapping[str, Any] | bytes | None = None

    def __post_init__(self) -> None:
        if type(self.status) is not int or not 300 <= self.status <= 599:
            reason = f"expected an HTTP status from 300 to 599, got {self.status!r}"
            raise LoopbackError(reason, field="status", fix="For an answer, give an Answer or a body.")


class Response(NamedTuple):
    """An HTTP response; the body of a stream has one chunk for each event."""

    status: int
    content_type: str
    chunks: list[bytes]


Reply: TypeAlias = Answer | Failure | Mapping[str, Any] | bytes
"""A reply of a script to one request."""


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived.

    Args:
        number: its place in the order of arrival, from 1.
        wire: the name of the wire it came over, a key of `WIRES`.
        path: the path with its query, such as `/v1/chat/completions`.
        headers: the headers by name in lower case, one value for each name.
        body: the body, a JSON object.
        model: the requested model, from the body or the path.
        stream: whether the request asks for a stream.
    """

    number: int
    wire: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    model: str
    stream: bool


Script: TypeAlias = Sequence[Reply] | Callable[[Received], Reply | Awaitable[Reply]]
"""Replies in order of arrival, of which the last repeats; or a function of the request, async or not."""


def check_reply(reply: object) -> None:
    """Refuse what is no reply.

    Raises:
        LoopbackError: `invalid_script`.
    """
    if not is_mapping(reply) and not isinstance(reply, (Answer, Failure, bytes)):
        kind = type(reply).__name__
        raise LoopbackError(f"a script replies with Answer, Failure, dict or bytes, not {kind}")


Policy: TypeAlias = Callable[[Received], Awaitable[Reply]]


def policy(script: Script) -> Policy:
    """Make one async function of either form of script; a LoopbackError says that it is neither."""
    if callable(script):
        function = script
    elif not is_sequence(script) or not script:
        raise LoopbackError("a script is a sequence of at least one reply, or a function of the request")
    else:
        for reply in script:
            check_reply(reply)
        replies = itertools.chain(script, itertools.repeat(script[-1]))

        async def next_one(received: Received) -> Reply:
            return next(replies)

        return next_one

    def call(received: Received) -> Reply | Awaitable[Reply]:
        try:
            return function(received)
        except StopIteration as stop:  # a future cannot hold it, so the client would wait forever
            raise LoopbackError("the script's function raised StopIteration") from stop

    async def reply(received: Received) -> Reply:
        # In a thread, so that a function that blocks does not delay other requests.
        result = await asyncio.get_running_loop().run_in_executor(None, call, received)
        return await result if inspect.isawaitable(result) else result

    return reply
