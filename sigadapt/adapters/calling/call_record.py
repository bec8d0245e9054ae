"""CallRecord: everything that is known of one adapter call, from its Plan to its answers."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dspy import BaseLM
from dspy.signatures.signature import Signature

from sigadapt.adapters.calling.agent_turn import AgentTurn
from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.hooks import HookContext
from sigadapt.adapters.lm.routes import Controls, ModelFacts, model_of
from sigadapt.adapters.output_format import OutputFormat
from sigadapt.adapters.passes.adapter_search import SCHEMAS
from sigadapt.adapters.plan import Plan
from sigadapt.adapters.request.aliases import MadeIds
from sigadapt.adapters.request.canonical import Change
from sigadapt.adapters.request.tool_choice import form_of
from sigadapt.adapters.response.choice import Choice
from sigadapt.adapters.response.text_choice import schemas_of
from sigadapt.adapters.response.typed_calls import identity
from sigadapt.providers.route import Route
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.calls import ToolCalls, Turn
from sigadapt.signatures.tool_decls import ToolDecls


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


@dataclass(frozen=True)
class CallRecord:
    """A Request that is ready to be sent, and what is needed to read its Response."""

    call: AdapterCall
    plan: Plan  # without the fields that the provider fills natively
    decls: ToolDecls  # what calls are judged by
    route: Route
    controls: Controls
    streamed_field: str | None  # the calls field, if a listener may be waiting for its calls
    sent: RequestRecord  # the Request, as its route takes it
    made_ids: MadeIds  # ids of calls that came without one
    repairs: tuple[Change, ...] = ()  # of the history that was given
    replacement: Choice | None = None  # a hook's, used instead of the model's answer
    earlier: EarlierAnswers = NO_ANSWERS  # answers of the same candidate

    @property
    def context(self) -> HookContext:
        """What the hooks are given."""
        return HookContext(model_of(self.call.lm), self.call.signature, self.decls, self.sent.changes)

    def for_candidate(self, number: int) -> "CallRecord":
        """Return the record of one candidate alone; listeners get only the calls of the first candidate."""
        field = self.streamed_field if number == 0 else None
        ids = MadeIds(self.sent.canonical, number)
        return replace(self, controls=self.controls.candidate(number), streamed_field=field, made_ids=ids)

    def text_schemas(self) -> dict[str, Json]:
        """Return the schemas of the tools that a call in a text can name."""
        return schemas_of(self.decls) | (SCHEMAS if self.sent.search is not None else {})

    @property
    def tool_choice(self) -> str | Json | None:
        """The tool choice that the model was sent; None if none was, or the route dropped it."""
        choice = self.sent.canonical.get("tool_choice")
        if choice is None or not self.sent.is_native:
            return choice
        runs_own = self.decls.tools is not self.decls.entries  # which may be what was required
        choice_sent = self.sent.request.get("tool_choice", "auto")
        is_weaker = choice_sent == "auto" or form_of(choice_sent) == "own"
        return None if is_weaker or (runs_own and choice == "required") else choice
