"""CallRecord: everything that is known of one request of an adapter call, from its Plan to its answer.

`prepare` makes it with the canonical Request. The passes (`passes/order.py`) make of that the Request that is
sent, and leave here what they need to read its answer. Each request of a call has a record of its own:
`again` returns the one that goes on.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from dspy import BaseLM
from dspy.signatures.signature import Signature

from sigadapt.adapters.calling.calling import NATIVE, Calling
from sigadapt.adapters.hooks import HookContext
from sigadapt.adapters.lm.routes import Controls, ModelFacts, model_of
from sigadapt.adapters.output_format import OutputFormat
from sigadapt.adapters.passes.adapter_search import SCHEMAS, AdapterSearch
from sigadapt.adapters.plan import Plan
from sigadapt.adapters.request.canonical import Change, Request, form_of
from sigadapt.adapters.response.text_choice import schemas_of
from sigadapt.adapters.response.typed_calls import identity
from sigadapt.json_values import Json, compact, short_hash
from sigadapt.providers.route import Route
from sigadapt.signatures.calls import ToolCalls, Turn
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.turns.agent_turn import AgentTurn

_NO_DECLS = ToolDecls()
_SAID = ("role", "content", "tool_calls", "tool_call_id", "name")


@dataclass
class MadeIds:
    """The ids of calls that came without one, by their index: those of this request and candidate alone.

    They are known before an answer comes, so that every piece of a stream has the id of the whole call. They
    are the same for a cached answer, and other ones in the next turn and in another conversation.
    """

    request: Request
    candidate: int = 0

    def __call__(self, index: int) -> str:
        """Return the id of the call at an index of the answer."""
        return f"call_{short_hash(f'{self.request_hash} {index}')}"

    @cached_property
    def request_hash(self) -> str:
        """A hash of the request and the candidate."""
        # Settings and the tools of providers may hold credentials, and tell no two conversations apart.
        rows = [{key: row.get(key) for key in _SAID} for row in self.request["messages"]]
        tools = [tool for tool in self.request.get("tools", ()) if "function" in tool or "custom" in tool]
        identity = [self.request["model"], rows, tools, self.request.get("tool_choice"), self.candidate]
        return short_hash(compact(identity))


@dataclass(kw_only=True)
class RequestRecord:
    """One Request on its way to a route: as it was made, and as each pass leaves it."""

    canonical: Request  # as the hooks changed it
    route: Route
    decls: ToolDecls = _NO_DECLS  # what calls are judged by
    calling: Calling = NATIVE
    repairs: tuple[Change, ...] = ()  # what was changed before the Request was made
    is_recorded: bool = False  # whether it repeats a recorded request, whose tools are sent as they are
    breaks_tokens: bool = False  # whether control tokens of chat templates go out broken
    bridges_results: bool = False  # whether the model speaks between results and words of the user
    candidate: int = 0  # which of several answers to the same request

    # What the passes leave
    made_ids: MadeIds = field(init=False)  # of the answer's calls that come without one
    request: Request = field(init=False)  # what is sent
    changes: tuple[Change, ...] = ()  # the differences between the canonical Request and what is sent
    names: dict[str, str] = field(default_factory=dict[str, str])  # the aliases of tools, by declared name
    tokens: dict[str, str] = field(default_factory=dict[str, str])  # of MCP servers; only the body has them
    search: AdapterSearch | None = None  # of deferred tools that the adapter finds itself
    offered_tools: Sequence[Json] = ()  # those that a prompt describes

    def begin(self) -> None:
        """Begin to write what is sent, from the canonical Request."""
        self.made_ids = MadeIds(self.canonical, self.candidate)
        self.request = self.canonical
        self.changes = self.repairs
        self.names = {}
        self.tokens = {}
        self.search = None
        self.offered_tools = ()

    def note(self, where: str, what: Literal["renamed", "lowered", "dropped", "healed"], why: str) -> None:
        """Put a change on record."""
        self.extend((Change(where, what, why),))

    def extend(self, changes: Iterable[Change]) -> None:
        """Put several changes on record."""
        self.changes = (*self.changes, *changes)

    @property
    def is_native(self) -> bool:
        """Whether the provider is sent the tools; a prompt describes them otherwise."""
        return self.calling.mode == "native"


class AdapterCall(NamedTuple):
    """The arguments of one adapter call, the Plan of its signature, and what is known of its model."""

    adapter: OutputFormat
    lm: BaseLM
    settings: dict[str, Any]  # the call's own: `config` of a predictor
    signature: type[Signature]
    plan: Plan
    demos: list[dict[str, Any]]
    inputs: dict[str, Any]
    facts: ModelFacts  # what DSPy says of the model
    turn: AgentTurn | None = None  # the turn of the agent that makes the call


class EarlierAnswers(NamedTuple):
    """What the answers before a request left behind, if its candidate has been asked before."""

    ids: Collection[str] = ()  # of their calls, which the next answer must not reuse
    identities: Collection[str] = ()  # the `identity` of each good call, which no listener gets again
    searches: tuple[Turn, ...] = ()  # the turns of searches alone that led to this request

    def with_calls(self, calls: ToolCalls) -> "EarlierAnswers":
        """Return this after an answer whose bad calls the model is asked for again."""
        ids = {*self.ids, *(call.id for call in calls.in_order())}
        searches = () if calls.tool_calls else self.searches  # which accepted calls have
        return EarlierAnswers(ids, {*self.identities, *map(identity, calls)}, searches)

    def with_search(self, turn: Turn) -> "EarlierAnswers":
        """Return this after an answer that is nothing but searches."""
        return self._replace(searches=(*self.searches, turn))


NO_ANSWERS = EarlierAnswers()


@dataclass(kw_only=True)
class CallRecord(RequestRecord):
    """One request of an adapter call, and what is needed to read its answer."""

    call: AdapterCall
    plan: Plan  # without the fields that the provider fills natively
    controls: Controls
    streamed_field: str | None  # the calls field, if a listener may be waiting for its calls
    earlier: EarlierAnswers = NO_ANSWERS  # answers of the same candidate

    def again(self, canonical: Request, earlier: EarlierAnswers) -> "CallRecord":
        """Return the record of another request of the same call, which the passes have yet to write."""
        return replace(self, canonical=canonical, earlier=earlier)

    def for_candidate(self, number: int) -> "CallRecord":
        """Return the record of one candidate alone; listeners get only the calls of the first candidate."""
        field = self.streamed_field if number == 0 else None
        controls = self.controls.candidate(number)
        record = replace(self, controls=controls, streamed_field=field, candidate=number)
        record.made_ids = MadeIds(self.canonical, number)
        return record

    @property
    def context(self) -> HookContext:
        """What the hooks are given."""
        return HookContext(model_of(self.call.lm), self.call.signature, self.decls, self.changes)

    def text_schemas(self) -> dict[str, Json]:
        """Return the schemas of the tools that a call in a text can name."""
        return schemas_of(self.decls) | (SCHEMAS if self.search is not None else {})

    @property
    def tool_choice(self) -> str | Json | None:
        """The tool choice that the model was sent; None if none was, or the route dropped it."""
        choice = self.canonical.get("tool_choice")
        if choice is None or not self.is_native:
            return choice
        runs_own = self.decls.tools is not self.decls.entries  # which may be what was required
        choice_sent = self.request.get("tool_choice", "auto")
        is_weaker = choice_sent == "auto" or form_of(choice_sent) == "own"
        return None if is_weaker or (runs_own and choice == "required") else choice
