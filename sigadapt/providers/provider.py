"""The contract of a provider's file, and the data it is made of: Reading, Provider, Route.

A provider's file holds all that is known of its wire format, as pure functions, in both directions, and one
`Provider` that names them. `providers/__init__.py` is the table of these.

Reading: `is_body`, `read`, `is_event` and `assemble`, so that a stream and a whole answer are read by the
same code (rule 12). What every `read` holds to:

 a. A call is what the caller is asked to run. What the provider ran itself (server tools, MCP calls, code
    execution) and what is not a function call (approval requests, computer use) is none; it stays in `raw`.
 b. The text is everything the model said to the user, refusals included, in order and joined by nothing.
    The reasoning is the thinking the provider showed, likewise.
 c. A call that the answer ended inside, or may have ended inside, has its arguments as `CutOff`: the last
    item of a candidate that a length limit or a filter stopped, and each call that a stream did not finish.
 d. A value of an unexpected type is passed over here and stays in `Choice.raw` (rule 3).

Writing: `tools` in the provider's words, and the state of a turn, which the provider wants back (rule 8).
lm15 and LiteLLM write the rest from the canonical request; a `Route` says what they get wrong or cannot know.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from sigadapt.schemas.json_values import Json

RawCall: TypeAlias = tuple[Any, Any, Any]
"""A call as the provider sent it: its id, name and arguments, of whatever type they were.

The arguments are JSON text where they are a str, else the decoded value, or a `CutOff` of either; None for
none.
"""


class Reading(NamedTuple):
    """One candidate of an answer, before anything is decoded.

    Args:
        text: what the model said.
        reasoning: the thinking that the provider showed.
        calls: the calls, in order.
        finish: why it ended: the canonical word where the wire's has one (`stop`, `tool_calls`, `length`,
            `content_filter`), else the provider's own; None where the answer did not say, as when a stream
            broke off; `error` where an error broke it off.
        state: what the provider wants back on the next turn; `reading.py` says in what form.
    """

    text: str | None
    reasoning: str | None
    calls: list[RawCall]
    finish: str | None
    state: Json | None = None


class CutOff(NamedTuple):
    """Arguments that may lack their end: what was sent of them, as text or decoded."""

    sent: Any


class JsonText(str):
    """Arguments as the JSON text a stream sent, in an assembled body whose wire carries decoded values."""

    __slots__ = ()


class Loss(NamedTuple):
    """A part of the tools that does not get through on a route.

    Args:
        where: a JSON Pointer into the list of tools.
        what: `lowered` or `dropped`.
        why: what is lost, and where else.
    """

    where: str
    what: Literal["lowered", "dropped"]
    why: str


class ChatFields(NamedTuple):
    """Provider state as fields of a chat message and, by id, of its calls; LiteLLM takes it so."""

    message: Json
    calls: dict[str, Json]


ALL_CHOICES = frozenset({"auto", "required", "none", "named", "subset"})
NO_SUBSET = ALL_CHOICES - {"subset"}

PLAIN = r"[a-zA-Z0-9_-]+"
ANY = r"(?s).+"


@dataclass(frozen=True, slots=True)
class Route:
    """One way to a wire: what lm15 or LiteLLM, which write the request, get wrong or cannot know.

    Measured on dspy 3.4.1 and litellm 1.106.

    Args:
        dialect: the wire format's name.
        door: who writes the request: `lm15`, `litellm`, or an `engine` of the user's.
        adapter: of lm15, the class that speaks this wire.
        server: of lm15, its name of the server, where that needs a route of its own.
        prefixes: of LiteLLM, the prefixes of model names that lead here.
        model_type: of LiteLLM, the `dspy.LM` model type that leads here.
        as_chat: whether a turn's provider state goes back as fields of a chat message (`state_to_chat`); else
            as the continuation of lm15's parts.
        takes: the dialects whose provider state can go back.
        choices: the forms of tool choice that get through.
        parallel: whether `parallel_tool_calls` gets through.
        forces_with_thinking: whether the provider takes a forced choice while thinking is on.
        formats_beside_tools: whether the provider takes a response format beside tools.
        strict: whether a strict flag on a tool gets through.
        marks_failed_results: whether a failed tool result has a flag of its own; where it has none, its text
            begins with `ERROR: `.
        results_as_objects: whether the provider takes a JSON object as a tool's result and nothing else.
        replays_reasoning: whether an OpenAI-compatible server wants its `reasoning_content` back.
        tools_in_own_words: whether tools always go out in the provider's words; else only where lm15's types
            have no place for them.
        names: what a tool's name may be, as a regular expression for the whole of it.
        longest_name: how many characters it may have.
        ids: what a call's id may be, likewise.
        longest_id: how many characters it may have.
        losses: finds what of the canonical tools does not get through; None where all of it does.
    """

    dialect: str
    door: Literal["lm15", "litellm", "engine"]
    adapter: str = ""
    server: str = ""
    prefixes: frozenset[str] = frozenset()
    model_type: str = "chat"
    as_chat: bool = False
    takes: frozenset[str] = frozenset()
    choices: frozenset[str] = ALL_CHOICES
    parallel: bool = True
    forces_with_thinking: bool = True
    formats_beside_tools: bool = True
    strict: bool = False
    marks_failed_results: bool = False
    results_as_objects: bool = False
    replays_reasoning: bool = False
    tools_in_own_words: bool = False
    names: str = PLAIN
    longest_name: int = 64
    ids: str = ANY
    longest_id: int = 1_000
    losses: Callable[[Sequence[Json]], Iterable[Loss]] | None = None


OWN_ENGINE = Route(
    "lm15",
    "engine",
    marks_failed_results=True,
    names=ANY,
    longest_name=1_000_000,
    longest_id=1_000_000,
)
"""An engine of the user's own, which takes lm15's types as they are."""


def _no_state(message: Json, text: str | None) -> Json | None:  # noqa: ARG001
    return None


def _no_fields(state: Json, route: Route) -> ChatFields:  # noqa: ARG001
    return ChatFields({}, {})


def _same_tools(tools: list[Json]) -> list[Json]:
    return tools


def _no_error(body: Json) -> Any:  # noqa: ARG001
    return None


def _no_results(body: Mapping[str, Any], results: Sequence[Json]) -> Json:  # noqa: ARG001
    return {}


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider's wire format, in both directions, and the routes to it.

    Args:
        name: the wire format's name, as in `choice_from_response(..., dialect=)`.
        is_body: whether a body is of this format.
        read: one Reading a candidate, in the provider's order.
        is_event: whether a stream's event is of this format.
        assemble: the whole body that a stream's events amount to.
        error_in: the error in a body or an event, where its place is this provider's own.
        tools: canonical tools in this provider's words.
        put_results: the part of the request that holds results, from the body that lm15 writes and the
            results as objects in their order; for routes with `results_as_objects`.
        state_from_chat: a turn's state in a chat message that LiteLLM wrote, with the message's text.
        state_to_chat: the same state as fields of a chat message.
        routes: the ways to this wire.
    """

    name: str
    is_body: Callable[[Json], bool]
    read: Callable[[Json], list[Reading]]
    is_event: Callable[[Json], bool]
    assemble: Callable[[Iterable[Json]], Json]
    error_in: Callable[[Json], Any] = _no_error
    tools: Callable[[list[Json]], list[Json]] = _same_tools
    put_results: Callable[[Mapping[str, Any], Sequence[Json]], Json] = _no_results
    state_from_chat: Callable[[Json, str | None], Json | None] = _no_state
    state_to_chat: Callable[[Json, Route], ChatFields] = _no_fields
    routes: tuple[Route, ...] = ()
