"""The flow of one call with tool fields, top to bottom, for sync and async alike.

    Signature -> Plan -> Request -> (dspy.LM) -> Response -> Choice -> outputs

`steps` does three things in a row. `prepare` makes the Request and finds every error that can be found before
it is sent (fail before the call). The Request is sent. `finish` turns each Choice into output values.
`prepare` and `finish` send nothing.

All three are generators. They yield what takes time, such as a request or an async hook, so that `run` and
`arun` in `signatures/awaiting.py` can drive the same code, one without and one with `await`.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dspy import BaseLM
from dspy.adapters.types.citation import Citations
from dspy.adapters.types.reasoning import Reasoning
from dspy.signatures.signature import Signature

from sigadapt.adapters.calling.calling import NATIVE, Calling
from sigadapt.adapters.calling.modes import Call, calling_of, prompted_after, refuses_tools
from sigadapt.adapters.hooks import HookContext, after_choice, before_request, on_error
from sigadapt.adapters.listeners import CallSubscription
from sigadapt.adapters.lm import transport
from sigadapt.adapters.lm.dspy_forms import native_values
from sigadapt.adapters.lm.dspy_internals import has_listeners
from sigadapt.adapters.lm.routes import Known, route_of
from sigadapt.adapters.lm.settings import Controls, controls_of, model_of
from sigadapt.adapters.lm.traces import reported, watches
from sigadapt.adapters.options import Options
from sigadapt.adapters.outputs import (
    Parse,
    accepted,
    outputs_beside_calls,
    outputs_of,
    refuse_disobedience,
    sole_text_field,
)
from sigadapt.adapters.plan import Plan, reduced, without
from sigadapt.adapters.request.aliases import ids_in
from sigadapt.adapters.request.canonical import Request, build_request
from sigadapt.adapters.request.continuation import asking_again
from sigadapt.adapters.request.declared import declared, declared_before
from sigadapt.adapters.request.lowering import Lowered, lowered
from sigadapt.adapters.request.tool_budget import refuse_large
from sigadapt.adapters.response.choice import Choice, choice_of, readings_of
from sigadapt.adapters.response.text_choice import looks_like, recovered, schemas_of
from sigadapt.adapters.response.typed_calls import (
    identity,
    of_chosen_tools,
    with_declared_names,
    with_earlier_calls,
    with_later_calls,
)
from sigadapt.adapters.text_format import TextFormat
from sigadapt.adapters.text_listeners import TextSubscription
from sigadapt.providers.provider import Reading, Route
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.calls import ToolCall, ToolCalls, Turn
from sigadapt.signatures.salvage import repair, unwrap
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.text.layout import Layout

if TYPE_CHECKING:
    from sigadapt.text.gate import TextGate

Outputs: TypeAlias = list[dict[str, Any]]
_DSPYS_OWN = (Reasoning, Citations)  # they only delete their field, or leave it


class AdapterCall(NamedTuple):
    """The arguments of one adapter call, the Plan of its signature, and what is known of its model."""

    lm: BaseLM
    settings: dict[str, Any]
    signature: type[Signature]
    plan: Plan
    demos: list[dict[str, Any]]
    inputs: dict[str, Any]
    known: Known


class CallSetup(NamedTuple):
    """Settings shared by every request of one adapter call.

    Args:
        lm: the language model.
        options: the adapter's options.
        decls: the declared tools.
        route: the Route of its requests.
        controls: how they are sent.
        streamed_field: the calls field, if a listener may be waiting for its calls; else None.
        field_marker: the text that marks an output field in an answer, with `{}` for its name.
    """

    lm: BaseLM
    options: Options
    decls: ToolDecls
    route: Route
    controls: Controls
    streamed_field: str | None
    field_marker: str = ""

    def checked(self, calls: ToolCalls | None) -> ToolCalls | None:
        """Return the calls, repaired, unwrapped and checked as the options say."""
        if calls is None:
            return None
        if self.options.repair:
            calls = repair(calls)
        if self.options.unwrap:
            calls = unwrap(calls, self.decls)
        return calls.validated(self.decls) if self.options.validate_args else calls

    def checked_choice(self, choice: Choice, given: Choice | None = None) -> Choice:
        """Return a Choice that a hook made, with its calls checked like the model's."""
        if given is not None and choice.tool_calls is given.tool_calls:
            return choice
        calls = self.checked(choice.tool_calls)
        return choice if calls is choice.tool_calls else replace(choice, tool_calls=calls)


class Prepared(NamedTuple):
    """A Request that is ready to be sent, and everything that is needed to read its Response.

    Args:
        setup: the settings that it shares with the other requests of the call.
        plan: the signature's Plan, without the fields that the provider fills natively.
        signature: the signature that was called.
        request: the canonical Request, as the hooks changed it.
        lowered: the same Request, made fit for its route.
        calling: how it offers tools.
        instead: a hook's Choice that replaces the model's answer; None if no hook gave one.
        answered: ids of the bad and good calls of earlier answers, which this answer's calls must not reuse.
        accepted: the `identity` of each good call of those answers, which no listener gets again.
    """

    setup: CallSetup
    plan: Plan
    signature: type[Signature]
    request: Request
    lowered: Lowered
    calling: Calling = NATIVE
    instead: Choice | None = None
    answered: Collection[str] = ()
    accepted: Collection[str] = ()

    @property
    def context(self) -> HookContext:
        """What the hooks are given."""
        setup = self.setup
        return HookContext(model_of(setup.lm), self.signature, setup.decls, self.lowered.changes)

    def again(self, calls: ToolCalls) -> "Prepared":
        """Return the request that asks again after an answer with bad calls (one bad call)."""
        request = asking_again(self.request, calls)
        answered = {*self.answered, *(call.id for call in calls.in_order())}
        accepted = {*self.accepted, *map(identity, calls)}
        sent = _fit(request, self.calling, self.setup.route)
        return self._replace(request=request, lowered=sent, answered=answered, accepted=accepted)

    def prompted(self, error: BaseException) -> "Prepared":
        """Return the same request in words, after an endpoint refused tools."""
        calling = prompted_after(self.calling, self.setup.lm, error)
        return self._replace(calling=calling, lowered=_fit(self.request, calling, self.setup.route))

    def candidate(self, number: int) -> "Prepared":
        """Return the request for one candidate alone; listeners get only the calls of the first candidate."""
        setup = self.setup
        if setup.controls.candidates == 1:
            return self
        field = setup.streamed_field if number == 0 else None
        controls = setup.controls.candidate(number)
        return self._replace(setup=setup._replace(controls=controls, streamed_field=field))

    def finished(self, reading: Reading, raw: Any) -> Choice:
        """Return the Choice of a Reading: with unique ids (ids), declared names and checked calls."""
        from_text = False
        if self.calling.reads_text:
            reading, from_text = self.calling.take(reading, lambda: schemas_of(self.setup.decls))
        choice = choice_of(reading, raw, ids_in(self.request), self.answered)
        if choice.tool_calls is None:
            return choice
        made = with_declared_names(choice.tool_calls, self.lowered.names)
        calls = self.setup.checked(recovered(made) if from_text else made)
        if self.calling.mode == "prompted" and calls is not None:
            calls = of_chosen_tools(calls, self.request.get("tool_choice"))
        return choice if calls is choice.tool_calls else replace(choice, tool_calls=calls)

    def hint(self, text: str) -> str:
        """Return what would read a call in a text in which none was looked for; empty if it holds none."""
        found = None if self.calling.reads_text else looks_like(text, self.setup.decls)
        if found is None:
            return ""
        return f"The text holds what looks like a {found[0]} call of {found[1]!r}; recover=True reads it."

    def _news(self, reading: Reading, raw: Any) -> Choice:
        """The same without the calls that were accepted before."""
        choice = self.finished(reading, raw)
        if not self.accepted or choice.tool_calls is None:
            return choice
        news = [call for call in choice.tool_calls if identity(call) not in self.accepted]
        return replace(choice, tool_calls=choice.tool_calls.model_copy(update={"tool_calls": news}))

    def subscribe(self) -> CallSubscription | None:
        """Return the listeners' subscription to the calls of this request; None if nobody can listen."""
        field = self.setup.streamed_field
        if field is None:
            return None
        sole = sole_text_field(self.plan.rest)
        texts = TextSubscription(sole, self.setup.field_marker) if sole else None
        return CallSubscription(field, self._news, self.lowered.names, texts, self._gate())

    def _gate(self) -> "TextGate | None":
        """Return what holds back text that may be a call; None if nobody listens or text is no call."""
        if not (self.calling.reads_text and has_listeners()):
            return None
        from sigadapt.text.gate import TextGate  # noqa: PLC0415  (see text_choice.py)

        fields = tuple(self.signature.output_fields)
        return TextGate(schemas_of(self.setup.decls), fields, **self.calling.reads)

    def now(self) -> list[Any]:
        """Send the request and return one Response per candidate."""
        setup = self.setup
        return transport.send(setup.lm, self.lowered, setup.route, setup.controls, self.subscribe)

    async def later(self) -> list[Any]:
        """Send the request as `now` does, but await the answers."""
        setup = self.setup
        return await transport.asend(setup.lm, self.lowered, setup.route, setup.controls, self.subscribe)


class Candidate(NamedTuple):
    """One candidate's answer.

    Args:
        choice: its Choice.
        prepared: the request that it answers, which may be that of a reask.
        response: the Response that it was read from; None if a hook made the Choice.
        failure: the error that ended asking again, if one did.
    """

    choice: Choice
    prepared: Prepared
    response: Any = None
    failure: Exception | None = None


def steps(adapter: TextFormat, call: AdapterCall) -> Steps[Outputs]:
    """Run the whole flow of a call and return one dict of output values per candidate."""
    # In the inputs, which DSPy keeps in its trace, the tools become their declarations. A demonstration that
    # is made from the trace could neither be pickled nor saved as JSON with a function in it.
    prepared = yield from prepare(adapter, call)
    if call.inputs.get(call.plan.tools) is not None:
        call.inputs[call.plan.tools] = prepared.setup.decls
    candidates = yield from _ask(prepared)
    outputs: Outputs = []
    for candidate in candidates:
        outputs.append((yield from finish(adapter, call, prepared, candidate)))
    return outputs


def prepare(adapter: TextFormat, call: AdapterCall) -> Steps[Prepared]:
    """Make the Request of a call, without sending it.

    Raises:
        SigadaptError: for an error in the model's settings, the declarations, the options or the history.
    """
    options = adapter.options
    others = tuple(name for name in call.plan.outputs if name != call.plan.calls)
    layout = Layout(call.plan.calls, adapter.field_marker, others)
    asked = Call(call.lm, call.settings, layout, call.known)
    calling = calling_of(asked, options)
    decls = declared_before(call.plan, call.inputs)
    if decls is None:
        decls = yield from declared(call.plan, call.signature, call.inputs, call.settings)
    plan = _without_native_fields(adapter, call)
    controls, generation = controls_of(call.lm, call.settings)
    form = adapter.response_format(call.lm, plan.rest) if plan.texts else None
    if form is not None:
        generation.setdefault("response_format", form)
    messages = adapter.format(plan.rest, call.demos, call.inputs)
    request = build_request(model_of(call.lm), messages, decls, options, generation)
    route = route_of(call.lm, call.settings, generation, call.known)
    setup = CallSetup(call.lm, options, decls, route, controls, call.plan.calls, adapter.field_marker)
    if options.hooks:
        nothing = Prepared(setup, plan, call.signature, request, Lowered(request, {}, ()))
        asked = yield from before_request(options.hooks, request, nothing.context)
        if isinstance(asked, Choice):
            return nothing._replace(instead=setup.checked_choice(asked))
        request = asked
    sent = _fit(request, calling, route)
    if options.max_tool_bytes is not None:
        refuse_large(request, sent, options.max_tool_bytes, plan.tools)
    return Prepared(setup, plan, call.signature, request, sent, calling)


def _fit(request: Request, calling: Calling, route: Route) -> Lowered:
    """Return the request as it offers tools and as its route takes it, with the record of both."""
    if calling.mode == "native":
        return lowered(request, route)
    worded, changes = calling.put(request)
    sent = lowered(worded, route)
    return sent._replace(changes=(*changes, *sent.changes))


def finish(
    adapter: TextFormat, call: AdapterCall, prepared: Prepared, candidate: Candidate
) -> Steps[dict[str, Any]]:
    """Turn one candidate's Choice into output values.

    Raises:
        ToolCallParseError: for bad calls that are neither kept nor handed on (one bad call).
        MissingToolCalls: if the signature requires a call and there is none (required is required).
        dspy.utils.exceptions.AdapterParseError: for text that does not hold the outputs.
    """
    values = _finished(adapter, call, prepared, candidate)
    if not watches(adapter):
        return values
    return reported(adapter, call.signature, candidate.choice.text, values, Parse)


def _finished(
    adapter: TextFormat, call: AdapterCall, prepared: Prepared, candidate: Candidate
) -> Steps[dict[str, Any]]:
    hooks = prepared.setup.options.hooks
    if not hooks:
        return (yield from _values(adapter, call, prepared, candidate))
    try:
        return (yield from _values(adapter, call, prepared, candidate))
    except Exception as error:
        instead = yield from on_error(prepared.setup.options.hooks, error, candidate.prepared.context)
        if instead is None:
            raise
    candidate = Candidate(prepared.setup.checked_choice(instead), candidate.prepared)
    return (yield from _values(adapter, call, prepared, candidate))


def _values(
    adapter: TextFormat, call: AdapterCall, prepared: Prepared, candidate: Candidate
) -> Steps[dict[str, Any]]:
    choice = candidate.choice
    if choice.tool_calls is not None and choice.tool_calls.invalid:
        choice = accepted(choice, prepared.setup.options, prepared.plan, call.signature, candidate.failure)
    if prepared.calling.mode == "prompted":
        refuse_disobedience(choice, prepared.plan, call.signature, prepared.request)
    values = outputs_beside_calls(adapter, prepared.plan, choice)
    if values is None:
        values = yield from outputs_of(adapter, prepared.plan, call.signature, choice, prepared.hint)
    asked = prepared.plan.calls
    if prepared.calling.mode == "prompted" and prepared.plan.empty_calls and values[asked] is None:
        values = {**values, asked: ToolCalls(tool_calls=[])}
    return values | _native_values(adapter, call, candidate)


def _ask(prepared: Prepared) -> Steps[list[Candidate]]:
    """Send the request and return every candidate's answer, as the hooks changed it."""
    if prepared.instead is not None:
        return [Candidate(prepared.instead, prepared)]
    hooks = prepared.setup.options.hooks
    candidates: list[Candidate] = []
    try:
        prepared, responses = yield from _responses(prepared)
        for number, response in enumerate(responses):
            sent = prepared.candidate(number)
            choice = sent.finished(readings_of(response)[0], response)
            if prepared.setup.options.on_invalid == "reask":
                candidates.append((yield from _settled(sent, choice, response)))
            else:
                candidates.append(Candidate(choice, sent, response))
    except Exception as error:
        instead = (yield from on_error(hooks, error, prepared.context)) if hooks else None
        if instead is None:
            raise
        candidates = [Candidate(prepared.setup.checked_choice(instead), prepared)]
    if hooks:
        for number, candidate in enumerate(candidates):
            choice = yield from after_choice(hooks, candidate.choice, candidate.prepared.context)
            checked = prepared.setup.checked_choice(choice, candidate.choice)
            candidates[number] = candidate._replace(choice=checked)
    return candidates


def _responses(prepared: Prepared) -> Steps[tuple[Prepared, list[Any]]]:
    """Return the responses, and the request that they answer: in words if the endpoint refuses tools."""
    try:
        return prepared, (yield prepared)
    except Exception as error:
        if not (prepared.calling.is_tentative and refuses_tools(error)):
            raise
        prepared = prepared.prompted(error)
    return prepared, (yield prepared)


def _settled(prepared: Prepared, choice: Choice, response: Any) -> Steps[Candidate]:
    """Return one candidate's answer, after as many reasks as it needs and `max_reasks` allows."""
    options = prepared.setup.options
    kept: list[ToolCall] = []
    before = 0
    for _ in range(options.max_reasks):
        calls = choice.tool_calls
        if calls is None or not calls.invalid:
            break
        prepared = prepared.again(calls)
        try:
            (response,) = yield prepared
        except Exception as error:  # noqa: BLE001  (raised later, with the calls that came)
            return Candidate(_with_earlier(kept, choice, before), prepared, response, error)
        kept, made = with_later_calls(kept, calls, before)
        kept += made
        before = len(prepared.answered)
        choice = prepared.finished(readings_of(response)[0], response)
    return Candidate(_with_earlier(kept, choice, before), prepared, response)


def _with_earlier(kept: list[ToolCall], choice: Choice, before: int) -> Choice:
    """Return the last answer's Choice together with the good calls of the answers before it."""
    if not kept:
        return choice
    turn = Turn(text=choice.text, reasoning=choice.reasoning)
    return replace(choice, tool_calls=with_earlier_calls(kept, choice.tool_calls, turn, before))


class _CachedDelete(NamedTuple):
    """Stands in for a signature whose only used method is `delete`, and builds each smaller one only once."""

    rest: type[Signature]

    def delete(self, name: str) -> "_CachedDelete":
        return _CachedDelete(without(self.rest, name))


def _without_native_fields(adapter: TextFormat, call: AdapterCall) -> Plan:
    """Return the Plan without the fields that the provider fills natively (reasoning, citations)."""
    rest: type[Signature] = call.plan.rest
    for name, kind in call.plan.typed:
        if kind not in adapter.native_response_types:
            continue
        asked: Any = _CachedDelete(rest) if kind in _DSPYS_OWN else rest
        left: Any = kind.adapt_to_native_lm_feature(asked, name, call.lm, call.settings)
        rest = left.rest if type(left) is _CachedDelete else left
    return call.plan if rest is call.plan.rest else reduced(call.plan, rest)


def _native_values(adapter: TextFormat, call: AdapterCall, candidate: Candidate) -> dict[str, Any]:
    """Return the values that native types read from the Response, and log probabilities if asked for."""
    response = candidate.response
    logprobs = getattr(response, "logprobs", None)  # the answer of a text-completion model is a text
    if response is None or isinstance(response, (str, dict)) or not (call.plan.typed or logprobs):
        return {}
    native = {name: kind for name, kind in call.plan.typed if kind in adapter.native_response_types}
    return native_values(native, response, candidate.choice.reasoning)
