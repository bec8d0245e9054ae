"""The contract that every provider's file fulfils: `Provider`, `Route` and `Reading`.

A provider's file holds all facts about one wire format, as pure functions for both directions, and one
`Provider` that lists these functions. `providers/__init__.py` is the table of all of them.

Response -> Reading: `is_body` and `read` are for whole bodies, `is_event` and `assemble` for streams.
`assemble` turns a stream's events into the body that `read` takes, so the same code reads both (whole calls).
Every `read` follows these rules:

 a. A call is what the caller is asked to run. `read` leaves out tools that the provider ran itself (server
    tools, MCP calls, code execution) and items that are not function calls (approval requests, computer use).
    They stay in `Choice.raw`.
 b. `text` is everything the model said to the user, refusals included, in order. Text blocks that other
    blocks separate are joined by a blank line; neighbours are joined as they are, because citations split a
    sentence into several. `commentary` is the text that the provider marks as said beside the answer.
    `reasoning` is the thinking that the provider showed.
 c. Arguments that may be incomplete are wrapped in `CutOff`: those of a call that is the last item of a
    candidate stopped by a length limit or a filter, and those of each call that a stream did not finish.
 d. A text or a call in another shape than the documented one is read, or becomes a bad call with its text
    (`reading.parts_of`, `reading.calls_of`). Any other value of an unexpected type is skipped, and stays in
    `Choice.raw` (nothing silent).

Request -> wire: `tools` gives tools in the provider's own words. `own_turn` and `put_turns` give a turn of
the model with all of its blocks, `in_results` and `put_results` results that are not text, and
`state_to_chat` the state of a turn where LiteLLM takes it (the same conversation). lm15 or LiteLLM writes the
rest from the canonical Request. A `Route` lists what they get wrong or cannot know.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import Json, spelled
from sigadapt.schemas.strict import StrictRules

RawCall: TypeAlias = tuple[Any, Any, Any]
"""A call as the provider sent it: `(id, name, arguments)`, each of any type.

A str as arguments is JSON text. Any other value is already decoded. A `CutOff` wraps either. None means that
the provider sent no arguments.
"""


class Reading(NamedTuple):
    """One candidate of a Response as a provider's file reads it; its calls are not decoded yet.

    Args:
        text: what the model said; None if it said nothing.
        reasoning: the thinking that the provider showed; None if it showed none.
        calls: the calls, in order.
        finish: why the answer ended. A canonical word where there is one (`stop`, `tool_calls`, `length`,
            `content_filter`, `refusal`, `pause`), else the provider's own word; `error` if an error ended the
            answer; None if the answer does not say, for example after a broken stream.
        state: what the provider wants back on the next turn, in the form that `reading.py` describes; None
            for nothing.
        finish_message: what the provider says about the end, such as the category of a refusal; None if it
            says nothing.
        commentary: what the model said beside the answer, where the provider marks that; else None.
    """

    text: str | None
    reasoning: str | None
    calls: list[RawCall]
    finish: str | None
    state: Json | None = None
    finish_message: str | None = None
    commentary: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the candidate holds neither text nor reasoning nor calls."""
        return not (self.text or self.reasoning or self.calls or self.commentary)


class Malformed(NamedTuple):
    """What a provider reports about a call that it could not read itself, in its own words."""

    message: str


class JsonText(str):
    """Arguments as JSON text, in an assembled body of a wire whose whole bodies hold decoded values.

    The type tells `reading.decoded` that the text is JSON and not a JSON string.
    """

    __slots__ = ()


class FreeText(str):
    """The input of a custom tool's call. It is any text, even an empty one, and never read as JSON."""

    __slots__ = ()

    @classmethod
    def of(cls, sent: Any) -> Any:
        """Return the input as a provider sent it; what is not a text, as compact JSON."""
        if type(sent) is CutOff:
            return CutOff(cls.of(sent.sent))
        if sent is None:
            return cls()
        return cls(sent) if isinstance(sent, str) else cls(spelled(sent))


class Loss(NamedTuple):
    """A part of the tools that a route loses on the way to the provider.

    Args:
        where: a JSON Pointer into the list of tools.
        what: `lowered` if the tool still arrives, `dropped` if it does not.
        why: what is lost, and at which other places.
    """

    where: str
    what: Literal["lowered", "dropped"]
    why: str


class ChatFields(NamedTuple):
    """Provider state in the form that LiteLLM takes: extra fields of a chat message and of its calls.

    Args:
        message: fields of the assistant message.
        calls: fields of its calls, by call id.
    """

    message: Json
    calls: dict[str, Json]


class OwnTurn(NamedTuple):
    """A turn of the model that goes back in the provider's own form, with all of its blocks.

    Args:
        at: the place of its first call among all calls of the conversation, from 0.
        calls: how many calls it has; at least one.
        blocks: the turn as the provider sent it: content blocks, output items or parts, or one chat message.
        fields: fields of the body that the turn needs; None for none.
    """

    at: int
    calls: int
    blocks: list[Json]
    fields: Json | None = None


class OwnResult(NamedTuple):
    """A result that is not only text, in the provider's own words.

    Args:
        blocks: the blocks inside the result, which replace its text; None leaves the text.
        response: the result as an object, for providers that take one; None leaves lm15's.
        after: the blocks that follow the last result of the turn, because no result can hold them.
    """

    blocks: Sequence[Json] | None = None
    response: Json | None = None
    after: Sequence[Json] = ()


class Words(NamedTuple):
    """The parts of a request that leave in the provider's own words, because lm15's types cannot hold them.

    Args:
        turns: turns of the model.
        results: what each tool result of the conversation is replaced by, in order; None leaves lm15's. Empty
            if none is replaced.
        fields: fields of the body, which replace lm15's; None for none.
        calls: fields to add to the blocks of calls, by the place of the call among all calls, from 0.
        texts: the input of each custom tool's call of the conversation, by call id; None for none.
    """

    turns: tuple[OwnTurn, ...] = ()
    results: tuple[OwnResult | None, ...] = ()
    fields: Json | None = None
    calls: tuple[tuple[int, Json], ...] = ()
    texts: Mapping[str, str] | None = None


NO_WORDS = Words()

ALL_CHOICES = frozenset({"auto", "required", "none", "named", "subset"})
NO_SUBSET = ALL_CHOICES - {"subset"}

PLAIN = r"[a-zA-Z0-9_-]+"
ANY = r"(?s).+"
SIGNED_ID = "__thought__"
"""What stands between an id and the signature of Gemini that LiteLLM appends to it."""
UNSIGNED = rf"(?s)(?!.*{SIGNED_ID}).+"


def _no_block(part: Json, model: str) -> Json | None:  # noqa: ARG001
    return None


@dataclass(frozen=True, slots=True)
class Route:
    """One way to a provider, through lm15 or LiteLLM, and what these get wrong or cannot know.

    Measured on dspy 3.4.1 and litellm 1.106.


    Args:
        dialect: the wire format's name.
        door: who writes the request: `lm15`, `litellm`, or an `engine` that the user made.
        adapter: (lm15) the class that writes this wire format.
        server: (lm15) the server's name, if that server needs a route of its own.
        prefixes: (LiteLLM) the prefixes of model names that take this route.
        model_type: (LiteLLM) the `dspy.LM` model type that takes this route.
        as_chat: whether provider state goes back as fields of a chat message (`state_to_chat`); otherwise as
            the continuation of lm15's parts.
        takes: the dialects whose provider state can be sent back.
        loses: the kinds of thinking among it that the door has no form for.
        choices: the forms of tool choice that reach the provider: the modes, one function (`named`), one
            `custom` tool, several (`subset`), one that the provider runs (`own`), and calls that the provider
            checks (`validated`).
        parallel: whether `parallel_tool_calls` reaches the provider.
        forces_with_thinking: whether the provider accepts a forced tool choice while thinking is on.
        formats_beside_tools: whether the provider accepts a response format together with tools.
        strict: whether a strict flag on a tool reaches the provider.
        strict_rules: which schemas the provider's strict mode takes.
        marks_failed_results: whether failed tool results have a flag; otherwise their text begins with
            `ERROR: `.
        text_failures: whether a failed result with the flag can only hold text.
        results_as_objects: whether the provider requires a JSON object as a tool result.
        in_results: returns the block that holds a part of a result (`tool_results/content.py`) inside the
            result, given the model's name; None if a result cannot hold it.
        in_questions: the same for a message that follows the results.
        stand_in: returns the fields that stand in for the missing provider state of a turn's first call,
            given the turn's state and the model's name; None if the provider does not ask for any.
        replays_reasoning: whether an OpenAI-compatible server wants its `reasoning_content` back.
        tools_in_own_words: whether tools are always sent in the provider's own words; otherwise only if
            lm15's types cannot hold them.
        names: the regular expression that a whole tool name must match.
        longest_name: the most characters that a tool name may have.
        ids: the regular expression that a whole call id must match.
        longest_id: the most characters that a call id may have.
        losses: finds the parts of the canonical tools that are lost; None if nothing is lost.
        fields: the fields of a tool, beside its function, that reach the provider. `namespace` is one of them
            where the provider groups tools.
        result_schema: the field among them for the JSON Schema of a tool's result; empty for none.
        custom_tools: whether the provider takes custom tools, whose calls are free text.
        search: the regular expression for the types of its own search for deferred tools; empty for none.
        search_tool: that search as pairs of a field and a value, in the place of another provider's.
        merges: says of a model's name whether two equal calls of a turn become one; None for no model.
        asked_as: (LiteLLM) the prefix under which LiteLLM is asked in place of the one in the model's name.
    """

    dialect: str
    door: Literal["lm15", "litellm", "engine"]
    adapter: str = ""
    server: str = ""
    prefixes: frozenset[str] = frozenset()
    model_type: str = "chat"
    as_chat: bool = False
    takes: frozenset[str] = frozenset()
    loses: frozenset[str] = frozenset()
    choices: frozenset[str] = ALL_CHOICES
    parallel: bool = True
    forces_with_thinking: bool = True
    formats_beside_tools: bool = True
    strict: bool = False
    strict_rules: StrictRules = StrictRules()  # noqa: RUF009  (immutable)
    marks_failed_results: bool = False
    text_failures: bool = False
    results_as_objects: bool = False
    in_results: Callable[[Json, str], Json | None] = _no_block
    in_questions: Callable[[Json, str], Json | None] = _no_block
    stand_in: Callable[[Json | None, str], Json | None] | None = None
    replays_reasoning: bool = False
    tools_in_own_words: bool = False
    fields: frozenset[str] = frozenset()
    result_schema: str = ""
    custom_tools: bool = False
    search: str = ""
    search_tool: tuple[tuple[str, str], ...] = ()
    names: str = PLAIN
    longest_name: int = 64
    ids: str = UNSIGNED
    longest_id: int = 1_000
    losses: Callable[[Sequence[Json]], Iterable[Loss]] | None = None
    merges: Callable[[str], bool] | None = None
    asked_as: str = ""


def _same_part(part: Json, model: str) -> Json | None:  # noqa: ARG001
    return part


OWN_ENGINE = Route(
    "lm15",
    "engine",
    marks_failed_results=True,
    in_results=_same_part,
    names=ANY,
    longest_name=1_000_000,
    longest_id=1_000_000,
)
"""The route through an engine that the user made, which takes lm15's types unchanged."""


def _no_state(message: Json, text: str | None) -> Json | None:  # noqa: ARG001
    return None


def _no_fields(state: Json, route: Route) -> ChatFields:  # noqa: ARG001
    return ChatFields({}, {})


def _same_tools(tools: list[Json]) -> list[Json]:
    return tools


def _no_error(body: Json) -> Any:  # noqa: ARG001
    return None


def _no_results(body: Mapping[str, Any], results: Sequence[OwnResult | None]) -> Json:  # noqa: ARG001
    return {}


def _no_calls(body: Mapping[str, Any], calls: Sequence[tuple[int, Json]]) -> Json:  # noqa: ARG001
    return {}


def _no_turns(body: Mapping[str, Any], turns: Sequence[OwnTurn]) -> Json:  # noqa: ARG001
    return {}


def _no_texts(body: Mapping[str, Any], texts: Mapping[str, str]) -> Json:  # noqa: ARG001
    return {}


def _no_choice(chosen: Json, parallel: bool | None) -> Json | None:  # noqa: ARG001, FBT001
    return None


def _same_body(body: Json) -> Json:
    return body


def _no_blocks(state: Json, calls: Sequence[Json]) -> list[Json]:  # noqa: ARG001
    return []


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider's wire format, in both directions, and the routes to it.

    Args:
        name: the wire format's name, as in `choice_from_response(..., dialect=)`.
        is_body: says whether a body has this format.
        read: returns one Reading per candidate, in the provider's order.
        is_event: says whether an event of a stream has this format.
        assemble: returns the whole body that a stream's events make.
        error_in: returns the error in a body or an event, if this provider has its own place for it.
        tools: returns canonical tools in this provider's own words.
        put_results: takes the body that lm15 wrote and `Words.results`, and returns the fields of the body
            that hold the results, with these in their places.
        put_calls: takes the body and `Words.calls`, and returns the fields of the body that hold the calls,
            with these fields added.
        put_turns: takes the body that lm15 wrote and `Words.turns`, and returns the fields of the body that
            hold the turns, with these in their places.
        own_turn: takes a turn's state and its calls as the canonical Request has them, and returns the turn
            in the provider's own form, for `OwnTurn.blocks`.
        put_texts: takes the body that lm15 wrote and `Words.texts`, and returns the fields of the body that
            hold calls, with those of custom tools and their results in their own form.
        choice: takes a canonical tool choice that lm15 has no form for, and whether parallel calls are wanted
            (None to leave that open). Returns the fields of the body that say it; None if the provider has no
            form for it either.
        without_calls: returns a body without its calls, for readers that refuse a body because of a call.
        arguments_as_objects: whether calls hold their arguments decoded; then a body has to be searched for
            repeated keys.
        state_from_chat: takes a chat message that LiteLLM wrote, and its text, and returns the turn's state.
        state_to_chat: returns that state as fields of a chat message.
        routes: the routes to this wire format.
    """

    name: str
    is_body: Callable[[Json], bool]
    read: Callable[[Json], list[Reading]]
    is_event: Callable[[Json], bool]
    assemble: Callable[[Iterable[Json]], Json]
    error_in: Callable[[Json], Any] = _no_error
    tools: Callable[[list[Json]], list[Json]] = _same_tools
    put_results: Callable[[Mapping[str, Any], Sequence[OwnResult | None]], Json] = _no_results
    put_calls: Callable[[Mapping[str, Any], Sequence[tuple[int, Json]]], Json] = _no_calls
    put_turns: Callable[[Mapping[str, Any], Sequence[OwnTurn]], Json] = _no_turns
    own_turn: Callable[[Json, Sequence[Json]], list[Json]] = _no_blocks
    put_texts: Callable[[Mapping[str, Any], Mapping[str, str]], Json] = _no_texts
    choice: Callable[[Json, bool | None], Json | None] = _no_choice
    without_calls: Callable[[Json], Json] = _same_body
    arguments_as_objects: bool = False
    state_from_chat: Callable[[Json, str | None], Json | None] = _no_state
    state_to_chat: Callable[[Json, Route], ChatFields] = _no_fields
    routes: tuple[Route, ...] = ()
