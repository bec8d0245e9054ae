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
    candidate stopped by a length limit, a filter, a refusal or an error, and those of each call that a stream
    did not finish.
 d. A text or a call in another shape than the documented one is read, or becomes a bad call with its text
    (`wire/values.py`). Any other value of an unexpected type is skipped, and stays in `Choice.raw` (nothing
    silent).

Request -> wire: a turn that goes back with its calls, and the results of these, are written by the provider
itself (`turn`, `results`), as rows of the body, in the order and with the blocks in which they came (the same
conversation). lm15 or LiteLLM writes the rest from the canonical Request. A `Route` lists what they get wrong
or cannot know.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import Json, json_like
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
        state: what the provider wants back on the next turn, as `wire/turn_state.py` describes; None for
            nothing.
        finish_message: what the provider says about the end, such as the category of a refusal; None if it
            says nothing.
        commentary: what the model said beside the answer, where the provider marks that; else None.
        error: the error that ended the answer, as the provider sent it; None if none did.
        offered: the tools that the answer was asked with (`adapters/calling/late_tools.py`); None if a change
            of them cannot be told.
    """

    text: str | None
    reasoning: str | None
    calls: list[RawCall]
    finish: str | None
    state: Json | None = None
    finish_message: str | None = None
    commentary: str | None = None
    error: Any = None
    offered: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the candidate holds neither text nor reasoning nor calls."""
        return not (self.text or self.reasoning or self.calls or self.commentary)


class Malformed(NamedTuple):
    """What a provider reports about a call that it could not read itself, in its own words."""

    message: str


class JsonText(str):
    """Arguments as JSON text, in an assembled body of a wire whose whole bodies hold decoded values.

    The type tells `decoded` that the text is JSON and not a JSON string.
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
        return cls(sent) if isinstance(sent, str) else cls(json_like(sent))


class Result(NamedTuple):
    """A result as a route takes it.

    Args:
        id: the id of its call.
        name: the tool's name.
        text: the result as text; a failure begins with `ERROR: ` where the provider has no flag for it.
        is_error: whether it failed, where the provider has a flag for that.
        value: the result as an object, for providers that take one.
        blocks: the provider's blocks inside the result, if it is not text alone.
        after: the blocks that follow the last result of the turn, because no result can hold them.
        given: what the program gave, as JSON.
        failed: whether it failed, in either case.
    """

    id: str
    name: str
    text: str
    is_error: bool
    value: Json
    blocks: Sequence[Json] | None = None
    after: Sequence[Json] = ()
    given: Any = None
    failed: bool = False


ALL_CHOICES = frozenset({"auto", "required", "none", "named", "subset"})
NO_SUBSET = ALL_CHOICES - {"subset"}

PLAIN = r"[a-zA-Z0-9_-]+"
ANY = r"(?s).+"
SIGNED_ID = "__thought__"
"""What stands between an id and the signature of Gemini that LiteLLM appends to it."""
UNSIGNED = rf"(?s)(?!.*{SIGNED_ID}).+"


_OPENAIS_RULES = StrictRules()


def _no_block(part: Json, model: str) -> Json | None:
    return None


class Route(NamedTuple):
    """One way to a provider, through lm15 or LiteLLM, and what these get wrong or cannot know.

    Measured on dspy 3.4.1 and litellm 1.106.

    Args:
        dialect: the wire format's name.
        client: who writes the request: `lm15`, `litellm`, or an `engine` that the user made.
        adapter: (lm15) the class that writes this wire format.
        server: (lm15) the server's name, if that server needs a route of its own.
        prefixes: (LiteLLM) the prefixes of model names that take this route.
        model_type: (LiteLLM) the `dspy.LM` model type that takes this route.
        as_chat: whether turns and results are written as chat messages, which LiteLLM translates.
        takes: the dialects whose provider state can be sent back.
        tool_choices: the forms of tool choice that reach the provider: the modes, one function (`named`), one
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
        endpoint: which server it leads to, if that server is one of many with an OpenAI-like wire.
        replays_reasoning: the field in which an OpenAI-compatible server wants its reasoning back; empty for
            a server that does not want it.
        reasoning_of_others: whether that field also takes the reasoning of other such servers.
        native_tools: whether tools are always sent as the provider's own JSON; otherwise only if lm15's types
            cannot hold them.
        writes_arguments: whether the client writes a call's arguments as text, which the provider sent as an
            object.
        root_pattern: the regular expression for keywords that arrive at the root of a tool's schema.
        name_pattern: the regular expression that a whole tool name must match.
        longest_name: the most characters that a tool name may have.
        id_pattern: the regular expression that a whole call id must match.
        longest_id: the most characters that a call id may have.
        late_tools: returns which changes of the tools a model takes inside of a conversation, `added` and
            `removed`; None where none does.
        caveat: returns what the client may lose of a canonical Request without a word, as a sentence that
            names the way around it; empty if nothing.
        fields: the fields of a tool, beside its function, that reach the provider. `namespace` is one of them
            where the provider groups tools.
        result_schema: the field among them for the JSON Schema of a tool's result; empty for none.
        custom_tools: whether the provider takes custom tools, whose calls are free text.
        search: the regular expression for the types of its own search for deferred tools; empty for none.
        search_tool: that search as pairs of a field and a value, in the place of another provider's.
    """

    dialect: str
    client: Literal["lm15", "litellm", "engine"]
    adapter: str = ""
    server: str = ""
    prefixes: frozenset[str] = frozenset()
    model_type: str = "chat"
    as_chat: bool = False
    takes: frozenset[str] = frozenset()
    tool_choices: frozenset[str] = ALL_CHOICES
    parallel: bool = True
    forces_with_thinking: bool = True
    formats_beside_tools: bool = True
    strict: bool = False
    strict_rules: StrictRules = _OPENAIS_RULES
    marks_failed_results: bool = False
    text_failures: bool = False
    results_as_objects: bool = False
    in_results: Callable[[Json, str], Json | None] = _no_block
    in_questions: Callable[[Json, str], Json | None] = _no_block
    stand_in: Callable[[Json | None, str], Json | None] | None = None
    endpoint: str = ""
    replays_reasoning: str = ""
    reasoning_of_others: bool = False
    native_tools: bool = False
    fields: frozenset[str] = frozenset()
    result_schema: str = ""
    custom_tools: bool = False
    search: str = ""
    search_tool: tuple[tuple[str, str], ...] = ()
    writes_arguments: bool = False
    root_pattern: str = ANY
    name_pattern: str = PLAIN
    longest_name: int = 64
    id_pattern: str = UNSIGNED
    longest_id: int = 1_000
    late_tools: Callable[[str], frozenset[str]] | None = None
    caveat: Callable[[Json], str] | None = None

    def replays(self, state: Json) -> bool:
        """Return whether a turn's state goes back: that of an OpenAI-like server to the same server alone."""
        endpoint = state.get("endpoint")
        return state["dialect"] in self.takes if endpoint is None else endpoint == self.endpoint


def _same_part(part: Json, model: str) -> Json | None:
    return part


OWN_ENGINE = Route(
    "lm15",
    "engine",
    marks_failed_results=True,
    in_results=_same_part,
    name_pattern=ANY,
    longest_name=1_000_000,
    longest_id=1_000_000,
)
"""The route through an engine that the user made, which takes lm15's types unchanged."""


class Provider:
    """One provider's wire format, in both directions, and the routes to it.

    A provider overrides what differs from these defaults.

    Args:
        routes: the routes to this wire format.
    """

    name: str
    """The wire format's name, as in `choice_from_response(..., dialect=)`."""

    arguments_as_objects = False
    """Whether calls hold their arguments decoded, so that the provider closes those that it cuts off."""

    headers_of_late_tools: Mapping[str, str] = {}
    """The headers that a request with a changed list of tools needs."""

    def __init__(self, *routes: Route) -> None:
        self.routes = routes

    def is_body(self, body: Json) -> bool:
        """Return whether a body has this format."""
        raise NotImplementedError

    def read(self, body: Json) -> list[Reading]:
        """Return one Reading per candidate, in the provider's order."""
        raise NotImplementedError

    def is_event(self, event: Json) -> bool:
        """Return whether an event of a stream has this format."""
        raise NotImplementedError

    def assemble(self, events: Iterable[Json]) -> Json:
        """Return the whole body that a stream's events make."""
        raise NotImplementedError

    def error_in(self, body: Json) -> Any:
        """Return the error in a body or an event, if this provider has its own place for it."""
        return None

    def without_calls(self, body: Json) -> Json:
        """Return a body without its calls, for readers that refuse a body because of a call."""
        return body

    def state_from_chat(self, message: Json, text: str | None) -> Json | None:
        """Return a turn's state from a chat message in which LiteLLM put it, and the message's text."""
        return None

    def turn(self, message: Json, state: Json | None, route: Route) -> list[Json]:
        """Return a turn of the model as rows of the body.

        `message` is the assistant message of the canonical Request, and `state` its state, if it is this
        provider's.
        """
        raise NotImplementedError

    def results(self, results: Sequence[Result], turn: Sequence[Json], route: Route) -> list[Json]:
        """Return the results of a turn's calls as rows of the body; `turn` is what `turn` returned."""
        raise NotImplementedError

    def fields(self, state: Json) -> Json:
        """Return the fields of the body that the results of the conversation's last turn need."""
        return {}

    def settings_for(self, request: Json) -> Json:
        """Return the fields of the body that the tools of a canonical Request need together."""
        return {}

    def with_fields(self, body: Json, fields: Json) -> Json:
        """Return the body that lm15 wrote with fields that lm15 has no place for."""
        return {**body, **fields}

    def chat_message(self, message: Json, state: Json) -> Json:
        """Return a chat message with a turn's state where LiteLLM looks for it."""
        return message

    def row_for(self, placeholder: Json, row: Json) -> Json:
        """Return a row with what lm15 put on the placeholder in whose place it stands."""
        return row

    def plain_blocks(self, text: str | None, calls: int) -> list[Json]:
        """Return the blocks of a turn that is text and then calls alone, as a state holds them."""
        return []

    def is_call(self, block: Json) -> bool:
        """Return whether a block of a turn's state stands for a call."""
        return False

    def is_thinking(self, block: Json) -> bool:
        """Return whether a block of a turn's state is thinking, which must lead to something."""
        return False

    def extras(self, state: Json, *, in_chat: bool = False) -> Iterable[str]:
        """Yield names of what a state holds beyond text and calls; `in_chat`, beyond a chat message."""
        return ()

    def tool_change(self, added: list[Json], removed: list[str]) -> Json:
        """Return the row of the body that adds tools, given as the provider's JSON, and takes others away."""
        raise NotImplementedError

    def tools(self, given: list[Json]) -> list[Json]:
        """Return canonical tools as the provider's own JSON."""
        return given

    def tool_choice(self, chosen: Json, *, parallel: bool | None = None) -> Json | None:
        """Return a tool choice that lm15 has no form for as fields of the body; None if there are none."""
        return None
