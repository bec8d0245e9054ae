"""The flow of one call with tool fields, top to bottom, for sync and async alike.

    Signature -> Plan -> Request -> (dspy.LM) -> Response -> Choice -> outputs

`steps` does three things in a row. `prepare` makes the Request and finds every error that can be found before
it is sent (fail before the call). `_send_and_read` sends it and reads each candidate's Answer: its Response
becomes a Reading (calls not decoded), then a Choice (typed calls). `finish` turns each Answer into output
values.

All of them return generators, which yield what takes time: a request to send, an async hook, or a text that
a second model parses. `run` and `arun` in `signatures/awaiting.py` drive the same code, one without and one
with `await`.

An Answer is one record that grows. It holds:

    response   what `dspy.LM` returned, in lm15's type
    reading    text, reasoning, calls (not decoded) and finish reason, as the provider's file reads them
    choice     the same with typed calls; users see it
    failure    the error that ended asking again, if one did
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from dspy import BaseLM
from dspy.signatures.signature import Signature

from sigadapt.adapters.calling.calling import Calling, calling_of, prompted_after, refuses_tools
from sigadapt.adapters.calling.late_tools import offered_tools, with_late_tools
from sigadapt.adapters.calling.recorded_tools import as_recorded
from sigadapt.adapters.calling.tool_search import SCHEMAS, Offer, offer
from sigadapt.adapters.hooks import CallsBefore, HookContext, before_request, first_choice, rebuilt
from sigadapt.adapters.listeners import CallSubscription
from sigadapt.adapters.lm.native_types import native_values, without_native_fields
from sigadapt.adapters.lm.routes import (
    Controls,
    ModelFacts,
    controls_of,
    model_of,
    route_of,
    with_replayed_reasoning,
)
from sigadapt.adapters.lm.traces import report, watches
from sigadapt.adapters.lm.transport import answers
from sigadapt.adapters.output_format import OutputFormat
from sigadapt.adapters.outputs import (
    Parse,
    is_no_answer,
    outputs_beside_calls,
    outputs_of,
    refuse_disobedience,
    refuse_no_answer,
    settle_bad_calls,
    sole_text_field,
    with_server_work,
)
from sigadapt.adapters.plan import Plan
from sigadapt.adapters.request.aliases import MadeIds
from sigadapt.adapters.request.canonical import Change, Request, build_request
from sigadapt.adapters.request.continuation import (
    asking_again,
    can_go_on,
    change_of_pause,
    whole_turn,
    with_paused_turn,
)
from sigadapt.adapters.request.lost_ids import with_lost_ids
from sigadapt.adapters.request.lowering import Lowered, lower
from sigadapt.adapters.request.messages import turns_before
from sigadapt.adapters.request.orphans import heal
from sigadapt.adapters.request.server_tools import with_server_tools
from sigadapt.adapters.request.tool_budget import refuse_large
from sigadapt.adapters.request.tool_choice import forces_call, form_of
from sigadapt.adapters.response.choice import Answer, Choice, choice_of
from sigadapt.adapters.response.text_choice import looks_like, mark_recovered, schemas_of
from sigadapt.adapters.response.typed_calls import (
    identity,
    of_allowed_tools,
    of_chosen_tools,
    with_compact_arguments,
    with_declared_names,
    with_earlier_calls,
    with_later_calls,
    with_request_hash,
)
from sigadapt.adapters.response.waiting import refuse_unasked, stop_for_person
from sigadapt.adapters.text_listeners import TextSubscription
from sigadapt.dspy_boundary.internals import all_listeners
from sigadapt.errors import InvalidToolDecl, UnusableAnswer
from sigadapt.providers.provider import Reading
from sigadapt.providers.route import Route
from sigadapt.providers.wire.values import name_in
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.calls import ToolCall, ToolCalls, Turn
from sigadapt.signatures.calls.salvage import name_before_token, repair, unwrap, without_leaked_tokens
from sigadapt.signatures.server.tools import McpServer
from sigadapt.signatures.tool_decls import ToolDecls, known_decls
from sigadapt.signatures.toolset import RequestContext, resolving
from sigadapt.text.layout import Layout

Outputs: TypeAlias = list[dict[str, Any]]
Exchange: TypeAlias = "tuple[Prepared, Answer]"
"""One candidate's answer, and the request that it answers, which may be a reask's."""


class AdapterCall(NamedTuple):
    """The arguments of one adapter call, the Plan of its signature, and what is known of its model."""

    adapter: OutputFormat
    lm: BaseLM
    settings: dict[str, Any]
    signature: type[Signature]
    plan: Plan
    demos: list[dict[str, Any]]
    inputs: dict[str, Any]
    facts: ModelFacts


def steps(call: AdapterCall) -> Steps[Outputs]:
    """Run the whole flow of a call and return one dict of output values per candidate."""
    prepared = yield from prepare(call)
    # DSPy keeps the inputs in its trace, and makes demonstrations of it. With functions in them, these could
    # neither be pickled nor saved as JSON, so the tools become their declarations.
    if call.inputs.get(call.plan.tools) is not None:
        call.inputs[call.plan.tools] = prepared.decls
    outputs: Outputs = []
    for last_prepared, answer in (yield from _send_and_read(prepared)):
        outputs.append((yield from finish(last_prepared, answer)))
        if call.adapter.options.confirm:
            stop_for_person(call.plan, prepared.decls, call.inputs, prepared.request, outputs[-1])
    return outputs


def prepare(call: AdapterCall) -> "Steps[Prepared]":
    """Make the Request of a call, without sending it."""
    adapter = call.adapter
    options = call.adapter.options
    plan = call.plan
    tools = call.inputs.get(plan.tools)
    decls = tools if type(tools) is ToolDecls else known_decls(tools)
    if decls is None or not decls.tools:
        decls = yield from _declare(call, decls)
    if plan.defers_bad_calls and not options.confirm:
        refuse_unasked(tools, decls)
    if plan.native_fields:
        plan = without_native_fields(plan, adapter.native_response_types, call.lm, call.settings)
    layout = Layout(plan.calls, adapter.field_marker, plan.others)
    calling = calling_of(call.lm, call.settings, call.facts, options, layout)
    model = model_of(call.lm)
    controls, generation = controls_of(call.lm, call.settings)
    route = route_of(call.lm, call.settings, generation, call.facts)
    if options.replay_reasoning is not None:
        route = with_replayed_reasoning(route, options.replay_reasoning, model)
    form = adapter.response_format(call.lm, plan.text_signature) if call.plan.texts else None
    if form is not None:
        generation.setdefault("response_format", form)
    inputs = call.inputs
    repairs = tuple[Change, ...]()
    if plan.history_fields.history is not None:
        inputs, repairs = with_lost_ids(plan.history_fields, inputs)
    if adapter.recorded_wire is not None:
        decls, unlike = as_recorded(decls, adapter.recorded_wire, route)
        repairs = (*repairs, *unlike)
    if options.orphans == "heal":
        inputs, healings = heal(plan, inputs)
        repairs = (*repairs, *healings)
    messages = adapter.messages(plan.text_signature, call.demos, inputs)
    request = build_request(model, messages, decls, options, generation)
    lowered = Lowered(request)
    request_parts = plan.calls, calling, request, request, lowered, None, repairs
    prepared = Prepared(call, plan, decls, route, controls, *request_parts)
    if options.hooks:
        request_or_choice = yield from before_request(options.hooks, request, prepared.context)
        if isinstance(request_or_choice, Choice):
            return prepared._replace(replacement=prepared.checked(request_or_choice))
        request = request_or_choice
    prepared = prepared.with_request(request, calling)
    if options.max_tool_bytes is not None:
        refuse_large(prepared.offering, prepared.lowered, route, options.max_tool_bytes, plan.tools)
    return prepared


def _declare(call: AdapterCall, decls: ToolDecls | None) -> Steps[ToolDecls]:
    """Return the declarations of a call, for which toolsets may have to be awaited."""
    plan = call.plan
    tools = call.inputs.get(call.plan.tools)
    if decls is None:
        if tools is None and plan.tools_required:
            fix = f"Pass {plan.tools}=[...]."
            raise InvalidToolDecl("no tools were given", code="missing_tools", field=plan.tools, fix=fix)
        context = RequestContext(call.signature, call.inputs, call.settings)
        decls = yield from resolving(() if tools is None else tools, context)
    if not decls.tools and plan.calls_required:
        raise InvalidToolDecl(
            f"{plan.calls!r} requires a call, but no tool is declared",
            code="missing_tools",
            field=plan.tools,
            fix=f"Declare a tool, or make {plan.calls!r} optional with `ToolCalls | None`.",
        )
    return decls


def _send_and_read(prepared: "Prepared") -> "Steps[list[Exchange]]":
    """Send the request and return every candidate's answer, as the hooks changed it."""
    options = prepared.call.adapter.options
    if prepared.replacement is not None:
        return [(prepared, Answer(None, choice=prepared.replacement))]
    exchanges: list[Exchange] = []
    try:
        try:
            candidates = yield from prepared.answers()
        except Exception as error:
            if not (prepared.calling.is_tentative and refuses_tools(error)):
                raise
            calling = prompted_after(prepared.calling, prepared.call.lm, error)
            prepared = prepared.with_request(prepared.request, calling)
            candidates = yield from prepared.answers()
        for number, answer in enumerate(candidates):
            exchange = yield from _whole_answer(prepared.for_candidate(number), answer)
            if options.on_invalid == "reask":
                exchange = yield from _reask_until_valid(*exchange, options.max_reasks)
            exchanges.append(exchange)
    except Exception as error:
        replacement = yield from first_choice(options.hooks, "on_error", error, prepared.context)
        if replacement is None:
            raise
        exchanges = [(prepared, Answer(None, choice=prepared.checked(replacement)))]
    for latest, answer in exchanges if options.hooks else ():
        before = latest.read_choice(answer)
        calls_before = CallsBefore(before)
        replacement = yield from first_choice(options.hooks, "after_choice", before, latest.context)
        choice = before if replacement is None else replacement
        changed = calls_before.changed(choice)
        answer.choice = choice if changed is None else latest.checked(changed)
    return exchanges


def _whole_answer(prepared: "Prepared", answer: Answer, searches: int = 0) -> "Steps[Exchange]":
    """Return one candidate's answer, once no search for deferred tools waits for its own."""
    whole = yield from _rest_of_turn(prepared, answer)
    choice = prepared.read_choice(whole)
    calls = choice.tool_calls
    if prepared.offer is None or calls is None or not calls.turn.searches or is_no_answer(choice):
        return prepared, whole
    searches_left = min(search.most for search in prepared.offer.searches) - searches
    if searches_left < 0:
        raise UnusableAnswer(
            f"the model searched for tools {searches} times, was told to stop, and searched again",
            code="empty",
            choice=choice,
            field=prepared.plan.tools,
            fix="Raise max_searches of Toolset.deferred, or load the tools it needs.",
        )
    calls = yield from prepared.offer.with_answers(calls, searches_left)
    if calls:  # the program's calls first: their results go back with the answers
        whole.choice = replace(choice, tool_calls=calls)
        return prepared, whole
    turn = calls.turn.model_copy(update={"before": ()})
    rows = [*prepared.request["messages"], *turns_before(Turn(before=(turn,)))]
    again = prepared.with_request({**prepared.request, "messages": rows}, prepared.calling)
    again = again._replace(earlier=prepared.earlier.with_search(turn))
    (latest,) = yield from again.answers()
    return (yield from _whole_answer(again, latest, searches + len(turn.searches)))


def _rest_of_turn(prepared: "Prepared", answer: Answer) -> "Steps[Answer]":
    """Return the answer of the whole turn: one that its provider paused is sent back until it ends."""
    for count in range(1, prepared.call.adapter.options.max_pauses + 1):
        if answer.reading.finish != "pause" or not can_go_on(answer.reading, prepared.route):
            break
        again = prepared.with_request(with_paused_turn(prepared.request, answer.reading), prepared.calling)
        changes = (*again.lowered.changes, change_of_pause(prepared.request, count))
        again = again._replace(lowered=again.lowered._replace(changes=changes))
        before = answer.reading
        (answer,) = yield from again.answers()
        answer.reading = whole_turn(before, answer.reading)  # its Response holds only the last part
        answer.choice = None
    return answer


def _reask_until_valid(prepared: "Prepared", answer: Answer, max_reasks: int) -> "Steps[Exchange]":
    """Return one candidate's answer, after as many reasks as it needs and `max_reasks` allows."""
    choice = prepared.read_choice(answer)
    good: list[ToolCall] = []  # of the answers before the last one
    count = 0  # of the calls of these answers, bad ones too
    for _ in range(max_reasks):
        calls = choice.tool_calls
        if calls is None or not calls.invalid or is_no_answer(choice):
            break
        with_failures = prepared.with_request(asking_again(prepared.request, calls), prepared.calling)
        prepared = again = with_failures._replace(earlier=prepared.earlier.with_calls(calls))
        try:
            (response,) = yield from again.answers()
            prepared, latest = yield from _whole_answer(again, response)
        except Exception as error:  # noqa: BLE001  (raised by `finish`, with the calls that came)
            answer.failure = error
            break
        good, others = with_later_calls(good, calls, count)
        good += others
        count = len(prepared.earlier.ids)
        answer = latest
        choice = prepared.read_choice(latest)
    if good:
        turn = Turn(text=choice.text, reasoning=choice.reasoning, before=prepared.earlier.searches)
        calls = with_earlier_calls(good, choice.tool_calls, turn, count)
        answer.choice = replace(choice, tool_calls=calls)
    return prepared, answer


def finish(prepared: "Prepared", answer: Answer) -> Steps[dict[str, Any]]:
    """Turn one candidate's Choice into output values, or raise why it holds none (`outputs.py`)."""
    call = prepared.call
    choice = prepared.read_choice(answer)
    outputs = _outputs(prepared, answer, choice, call.adapter.options.hooks)
    if not watches(call.adapter):
        return outputs
    return report(call.adapter, call.signature, choice.text, outputs, Parse)


def _outputs(
    prepared: "Prepared", answer: Answer, choice: Choice, hooks: Sequence[Any]
) -> Steps[dict[str, Any]]:
    call = prepared.call
    plan = prepared.plan
    is_prompted = prepared.calling.mode == "prompted"
    tool_choice = prepared.sent_tool_choice
    try:
        refuse_no_answer(choice, plan)
        choice = settle_bad_calls(choice, call.adapter.options, plan, call.signature, answer.failure)
        if tool_choice is not None and forces_call(tool_choice):
            refuse_disobedience(choice, plan, call.signature)
        values = outputs_beside_calls(call.adapter, plan, choice)
        if values is None:
            values = yield from outputs_of(call.adapter, plan, call.signature, choice, prepared.recover_hint)
        if is_prompted and plan.empty_calls and values[plan.calls] is None:
            values = {**values, plan.calls: ToolCalls(tool_calls=[])}
        calls = values[plan.calls]
        before = prepared.earlier.searches
        if before and isinstance(calls, ToolCalls) and not calls:  # the searches that led to these words
            turn = calls.turn.model_copy(update={"before": before})
            values = {**values, plan.calls: calls.model_copy(update={"turn": turn})}
        if plan.work or choice.files.root:
            values = with_server_work(plan, choice, values)
        if not (plan.native_fields or getattr(answer.response, "logprobs", None)):
            return values
        native_types = call.adapter.native_response_types
        return values | native_values(plan, native_types, answer.response, choice.reasoning)
    except Exception as error:
        replacement = yield from first_choice(hooks, "on_error", error, prepared.context)
        if replacement is None:
            raise
        return (yield from _outputs(prepared, Answer(None), prepared.checked(replacement), ()))


class Earlier(NamedTuple):
    """What the answers before this request left behind, if its candidate has been asked before."""

    ids: Collection[str] = ()  # of their calls, which the next answer must not reuse
    identities: Collection[str] = ()  # the `identity` of each good call, which no listener gets again
    searches: tuple[Turn, ...] = ()  # the turns of searches alone that led to this request

    def with_calls(self, calls: ToolCalls) -> "Earlier":
        """Return this after an answer whose bad calls the model is asked for again."""
        ids = {*self.ids, *(call.id for call in calls.in_order())}
        searches = () if calls.tool_calls else self.searches  # which accepted calls have
        return Earlier(ids, {*self.identities, *map(identity, calls)}, searches)

    def with_search(self, turn: Turn) -> "Earlier":
        """Return this after an answer that is nothing but searches."""
        return self._replace(searches=(*self.searches, turn))


class Prepared(NamedTuple):
    """A Request that is ready to be sent, and everything that is needed to read its Response."""

    call: AdapterCall
    plan: Plan  # without the fields that the provider fills natively
    decls: ToolDecls
    route: Route
    controls: Controls
    streamed_field: str | None  # the calls field, if a listener may be waiting for its calls
    calling: Calling
    request: Request  # the canonical Request, as the hooks changed it
    offering: Request  # the same, as its deferred tools are offered
    lowered: Lowered  # that, made fit for the route
    offer: Offer | None = None  # of deferred tools that the adapter finds itself
    repairs: tuple[Change, ...] = ()
    replacement: Choice | None = None  # a hook's, in the place of the model's answer
    earlier: Earlier = Earlier()
    made_ids: MadeIds = MadeIds({"model": "", "messages": []})  # ids of calls without one

    @property
    def context(self) -> HookContext:
        """What the hooks are given."""
        call = self.call
        return HookContext(model_of(call.lm), call.signature, self.decls, self.lowered.changes)

    def with_request(self, request: Request, calling: Calling) -> "Prepared":
        """Return this with another request, as it offers tools and as its route takes it."""
        is_native = calling.mode == "native"
        tools = request.get("tools", ())
        has_more = not getattr(tools, "is_plain", not tools)
        offering = request
        search_changes = ()
        searching = None
        if has_more and self.call.adapter.recorded_wire is None:
            offering, search_changes, searching = offer(request, self.decls, self.route, is_native=is_native)
        sendable = offering
        changes = ()
        tokens = dict[str, str]()
        if is_native and "turn" in chain.from_iterable(request["messages"]):  # the keys of all rows
            sendable, changes = with_late_tools(offering, self.route)
        if has_more:
            sendable, in_place = with_server_tools(sendable, self.route if is_native else None)
            changes = (*changes, *in_place)
            servers = [entry for entry in self.decls.entries if isinstance(entry, McpServer)]
            tokens = {each.name: each.token for each in servers if each.token is not None}
        if not is_native:
            sendable, prompt_changes = calling.request_to_send(sendable)
            changes = (*prompt_changes, *changes)
        lowered = lower(sendable, self.route)
        lowered = lowered._replace(tokens=tokens) if tokens else lowered
        changes = (*changes, *lowered.changes)
        if searching is not None:
            changes = tuple(searching.in_places(changes))
        if changes or search_changes or self.repairs:
            lowered = lowered._replace(changes=(*self.repairs, *search_changes, *changes))
        ids = MadeIds(request, self.made_ids.candidate)
        return self._replace(
            request=request,
            offering=offering,
            calling=calling,
            lowered=lowered,
            offer=searching,
            made_ids=ids,
        )

    def for_candidate(self, number: int) -> "Prepared":
        """Return the request for one candidate alone; listeners get only the calls of the first candidate."""
        if self.controls.candidates == 1:
            return self
        field = self.streamed_field if number == 0 else None
        ids = MadeIds(self.request, number)
        return self._replace(controls=self.controls.candidate(number), streamed_field=field, made_ids=ids)

    def read_choice(self, answer: Answer) -> Choice:
        """Return the Choice of an Answer, read once: with unique ids (ids), declared names, checked calls."""
        if answer.choice is None:
            answer.choice = self._choice_of(answer.reading, answer.response)
        return answer.choice

    def _choice_of(self, reading: Reading, raw: Any) -> Choice:
        from_text = False
        if self.calling.reads_text:
            reading, from_text = self.calling.reading_with_calls(reading, self._schemas)
        if reading.calls and self.route.tools.late is not None and self.calling.mode == "native":
            reading = reading._replace(offered=offered_tools(self.offering, self.route))
        choice = choice_of(reading, raw, self.made_ids, self.earlier.ids)
        if choice.tool_calls is None:
            return choice
        calls = choice.tool_calls
        if any(decl.requires_confirmation is not False for decl in self.decls.tools):
            calls = with_request_hash(calls, self.made_ids.request_hash)
        if self.call.adapter.options.repair:
            calls = without_leaked_tokens(calls, self._known_names())
        if self.lowered.names:
            calls = with_declared_names(calls, self.lowered.names)
        if self.route.turns.writes_arguments and not from_text:
            calls = with_compact_arguments(calls)
        calls = self._checked_calls(mark_recovered(calls) if from_text else calls)
        if self.sent_tool_choice is not None:
            calls = of_chosen_tools(calls, self.sent_tool_choice)
        options = self.call.adapter.options
        if options.hooks and options.validate_args:  # a hook may have taken tools out
            names = [name_in(tool) for tool in self.request.get("tools", ())]
            calls = of_allowed_tools(calls, names, "the request offers")
        return choice if calls is choice.tool_calls else replace(choice, tool_calls=calls)

    def _known_names(self) -> set[str]:
        """Return the names that a call can have: of declared tools, their aliases, the adapter's tools."""
        return {*map(name_in, self.request.get("tools", ())), *self._schemas(), *self.lowered.names.values()}

    def _names_by_sent(self) -> Callable[[str], str]:
        """Return what gives the declared name for one that the answer has."""
        declared = {alias: name for name, alias in self.lowered.names.items()}
        if not self.call.adapter.options.repair:
            return lambda name: declared.get(name, name)
        known = self._known_names()

        def declared_name(name: str) -> str:
            name = name_before_token(name, known)
            return declared.get(name, name)

        return declared_name

    def _schemas(self) -> dict[str, Json]:
        """Return the schemas of the tools that a call in a text can name."""
        return schemas_of(self.decls) | (SCHEMAS if self.offer is not None else {})

    @property
    def sent_tool_choice(self) -> str | Json | None:
        """The tool choice that the model was told; None if none was, or the route dropped it."""
        choice = self.request.get("tool_choice")
        if choice is None or self.calling.mode == "prompted":
            return choice
        runs_own = self.decls.tools is not self.decls.entries  # which may be what was required
        choice_sent = self.lowered.request.get("tool_choice", "auto")
        is_weaker = choice_sent == "auto" or form_of(choice_sent) == "own"
        return None if is_weaker or (runs_own and choice == "required") else choice

    def checked(self, choice: Choice) -> Choice:
        """Return a Choice that a hook made, with its calls checked."""
        calls = choice.tool_calls
        if calls is None:
            return choice
        items: list[Any] = [*calls.tool_calls]
        if not all(isinstance(item, ToolCall) for item in items):  # the list is a hook's to change
            calls = rebuilt([*items, *calls.invalid], calls)
        return replace(choice, tool_calls=self._checked_calls(calls))

    def _checked_calls(self, calls: ToolCalls) -> ToolCalls:
        options = self.call.adapter.options
        if options.repair:
            calls = repair(calls)
        if self.offer is not None:
            calls = self.offer.separate(calls, self.earlier.searches)
        if options.unwrap:
            calls = unwrap(calls, self.decls)
        return calls.validated(self.decls) if options.validate_args else calls

    def recover_hint(self, text: str) -> str:
        """Return what would read a call in a text in which none was looked for; empty if it holds none."""
        call = None if self.calling.reads_text else looks_like(text, self.decls)
        if call is None:
            return ""
        return f"The text holds what looks like a {call[0]} call of {call[1]!r}; recover=True reads it."

    def subscribe(self, stream: Any) -> CallSubscription | None:
        """Return the listeners' subscription to the calls of this request; None if nobody can listen."""
        run: Any = None
        begin_answer = getattr(stream, "begin_answer", None)  # of a whole run (`runs/watching.py`)
        if self.streamed_field is None or not (begin_answer or all_listeners()):
            return None
        sole = sole_text_field(self.plan.text_signature)
        marker = self.call.adapter.field_marker
        if begin_answer is not None:
            stream = run = begin_answer(self.streamed_field, self.plan.text_signature, marker, sole)
        texts = TextSubscription(sole, marker) if sole and run is None else None
        gate = None
        if self.calling.reads_text:
            from sigadapt.text.gate import TextGate  # see text_choice.py

            fields = tuple(self.call.signature.output_fields)
            gate = TextGate(self._schemas(), fields, **self.calling.reads)
        return CallSubscription(
            stream,
            field=self.streamed_field,
            read=self.read_choice,
            declared_name=self._names_by_sent(),
            earlier_ids=self.earlier.ids,
            identities=self.earlier.identities,
            made_id=self.made_ids,
            adapter_tools=SCHEMAS if self.offer else (),
            texts=texts,
            gate=gate,
            run=run,
        )

    def answers(self) -> "Steps[list[Answer]]":
        """Send the request and return one Answer per candidate."""
        return answers(self.call.lm, self.lowered, self.route, self.controls, self.subscribe)
