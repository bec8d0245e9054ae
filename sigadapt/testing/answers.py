"""What a loopback provider can be told to answer, in terms of no provider's format.

`Answer` is a model's turn, `Failure` an HTTP error; both are put into the format of whichever wire asked
(`testing/wires/`). For odd bodies, a dict is sent as it is, and bytes are sent verbatim.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from sigadapt.errors import SigadaptError


class LoopbackError(SigadaptError):
    """A script that cannot be played, or a request that no wire of the loopback provider serves.

    `code` is `invalid_script`, `unknown_wire`, `unknown_path`, `unreadable_request`, or, of the provider's
    `with` block, `not_running` and `already_running`.
    """

    code = "invalid_script"


def dumps(value: Any) -> str:
    """A value as compact JSON text; ValueError for what JSON cannot hold (NaN, infinities)."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Call:
    r"""A tool call for an `Answer` to make.

    Args:
        name: the tool's name.
        arguments: an object; or a str, sent verbatim where the wire carries JSON text, so that it need not be
            JSON.
        id: the call's id. None gives what the wire's providers would: `call_1`, ... on OpenAI's wires and
            `toolu_1`, ... on Anthropic's, counted on from the calls already in the conversation; no id on
            Gemini and Ollama.

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
        """The arguments for a wire that carries JSON text."""
        return self.arguments if isinstance(self.arguments, str) else dumps(self.arguments)

    @property
    def object(self) -> dict[str, Any]:
        """The arguments for a wire that carries objects; LoopbackError where the text is no JSON object."""
        if not isinstance(self.arguments, str):
            return dict(self.arguments)
        try:
            value = json.loads(self.arguments)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise LoopbackError(
                f"the arguments {self.arguments!r} are no JSON object, and this wire carries objects",
                tool=self.name,
                fix="Give an object, or ask over a wire that carries text (OpenAI; Anthropic streamed).",
            )
        return cast("dict[str, Any]", value)


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's turn.

    Args:
        text: what the model says.
        calls: the tool calls it makes, in order.
        reasoning: the thinking it shows: `reasoning_content` on OpenAI chat, a summary on OpenAI responses, a
            thinking block on Anthropic, a thought part on Gemini, `thinking` on Ollama.
        finish: why it ended: `stop`, `tool_calls`, `length` or `content_filter`, put in the wire's own word;
            any other word is sent as it is. None gives `tool_calls` where there are calls, or `stop`.
        signature: the opaque token the provider wants back on the next turn: `signature` of Anthropic's
            thinking block, `thoughtSignature` on Gemini's first call or text, `encrypted_content` in the
            reasoning item of OpenAI responses; the other wires have none. Base64, as clients decode it.
        usage: input and output tokens.
        chunk: characters a piece of text, reasoning or arguments in a stream.

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

    @property
    def reason(self) -> str:
        """`finish`, or what follows from the calls."""
        return self.finish or ("tool_calls" if self.calls else "stop")

    def identified(self, prefix: str, made: int) -> Iterator[tuple[str, Call]]:
        """The calls with their ids, counted on from the `made` earlier calls of the conversation (rule 6).

        Example:
            >>> answer = Answer(calls=[Call("a"), Call("b", id="x"), Call("c")])
            >>> [call_id for call_id, _ in answer.identified("call_", 4)]
            ['call_5', 'x', 'call_7']
        """
        for number, call in enumerate(self.calls, made + 1):
            yield f"{prefix}{number}" if call.id is None else call.id, call

    def pieces(self, text: str | None) -> Iterator[str]:
        """A text as a stream sends it.

        Example:
            >>> list(Answer(chunk=4).pieces("It is sunny."))
            ['It i', 's su', 'nny.']
        """
        for start in range(0, len(text or ""), self.chunk):
            yield (text or "")[start : start + self.chunk]


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error, in the error shape of the wire that asked.

    Args:
        status: the HTTP status, such as 429.
        message: the error's sentence.
        body: sent as it is in place of the wire's error shape.

    Example:
        >>> Failure(429, "slow down").status
        429
    """

    status: int
    message: str = "a scripted failure"
    body: Mapping[str, Any] | bytes | None = None


Reply: TypeAlias = Answer | Failure | Mapping[str, Any] | bytes
"""What a script can say to one request."""
