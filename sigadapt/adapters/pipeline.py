"""The flow of one call with tool fields, in reading order, for sync and async alike.

    Signature -> Plan -> Request -> (dspy.LM) -> Response -> Choice -> outputs

`steps` is a generator of pure code: it yields what to send and is sent the responses, so that only its
drivers, `run` and `arun`, know whether anybody waits.
"""

from collections.abc import Callable, Collection, Generator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dspy import lm15
from dspy.adapters.types.citation import Citations
from dspy.adapters.types.reasoning import Reasoning
from dspy.clients.base_lm import BaseLM
from dspy.signatures.signature import Signature

from sigadapt.adapters import transport
from sigadapt.adapters.choice import Choice, choice_from_response, kept_apart
from sigadapt.adapters.hooks import HookContext, Pending, after_choice, before_request, on_error
from sigadapt.adapters.lowering import Change, Lowered, lowered
from sigadapt.adapters.names import ids_in, restored
from sigadapt.adapters.options import Options
from sigadapt.adapters.outputs import Parsing, outputs_of, refuse_bad_calls
from sigadapt.adapters.plan import Plan, reduced, without
from sigadapt.adapters.profiles import Profile
from sigadapt.adapters.reask import continued, further, merged
from sigadapt.adapters.request import Request, build_request, decls_of, with_known_tools
from sigadapt.adapters.streaming import Watch
from sigadapt.errors import InvalidOption
from sigadapt.signatures.calls import ToolCall
from sigadapt.signatures.decls import ToolDecls
from sigadapt.signatures.leniency import repair, unwrap
from sigadapt.signatures.toolsets.waiting import Waiting

if TYPE_CHECKING:
    from sigadapt.adapters.tool_adapter import ToolAdapter

Outputs: TypeAlias = list[dict[str, Any]]
_DSPYS_OWN = (Reasoning, Citations)


class Call(NamedTuple):
    """What an adapter was called with, and the plan of its signature."""

    lm: BaseLM
    settings: dict[str, Any]
    signature: type[Signature]
    plan: Plan
    demos: list[dict[str, Any]]
    inputs: dict[str, Any]


class Terms(NamedTuple):
    """What all requests of one call have in common; its calls field is named where it may be streamed."""

    options: Options
    decls: ToolDecls
    profile: Profile
    controls: transport.Controls
    streamed_field: str | None


class Outgoing(NamedTuple):
    """A request on its way: canonically, as its wire takes it, and what makes its answer a checked choice."""

    terms: Terms
    request: Request
    sent: Lowered
    judge: Callable[[Choice], Choice]

    def watch(self) -> Watch | None:
        """Which calls are listened to where DSPy streams, if any."""
        field = self.terms.streamed_field
        return None if field is None else Watch(field, self.judge, self.sent.names)

    def candidate(self, number: int) -> "Outgoing":
        """The same, for one of its candidates alone; the first is the one that is listened to."""
        terms = self.terms
        if terms.controls.candidates == 1:
            return self
        controls, field = terms.controls.candidate(number), terms.streamed_field if number == 0 else None
        return self._replace(terms=terms._replace(controls=controls, streamed_field=field))


Step: TypeAlias = "Outgoing | Pending | Parsing | Waiting"
Steps: TypeAlias = Generator[Step, Any, Outputs]
Answers: TypeAlias = Generator[Step, Any, tuple[list["Answer"], tuple[Change, ...]]]


class Answer(NamedTuple):
    """One candidate: the choice read, and the response it was read from, if the model gave one."""

    choice: Choice
    response: lm15.Response | None
    failure: Exception | None = None
    """Why asking again about its bad calls failed, if it did."""


def run(adapter: "ToolAdapter", call: Call) -> Outputs:
    """Drive `steps` with a language model that answers at once."""
    work = steps(adapter, call)
    step = _go_on(work.send, None)
    while not isinstance(step, list):
        try:
            answer = _done(adapter, call, step)
        except Exception as error:  # noqa: BLE001, PERF203  (the steps decide what becomes of it)
            step = _go_on(work.throw, error)
        else:
            step = _go_on(work.send, answer)
    return step


async def arun(adapter: "ToolAdapter", call: Call) -> Outputs:
    """Drive `steps` with a language model that is awaited."""
    work = steps(adapter, call)
    step = _go_on(work.send, None)
    while not isinstance(step, list):
        try:
            answer = await _awaited(adapter, call, step)
        except Exception as error:  # noqa: BLE001, PERF203  (the steps decide what becomes of it)
            step = _go_on(work.throw, error)
        else:
            step = _go_on(work.send, answer)
    return step


def _done(adapter: "ToolAdapter", call: Call, step: "Step") -> Any:
    if isinstance(step, Outgoing):
        return transport.send(call.lm, step.sent, step.terms.profile, step.terms.controls, step.watch)
    if isinstance(step, Parsing):
        return adapter.parse(step.rest, step.text)
    if isinstance(step, Waiting):
        raise step.refused()
    return _refused(step)


async def _awaited(adapter: "ToolAdapter", call: Call, step: "Step") -> Any:
    if isinstance(step, Outgoing):
        return await transport.asend(call.lm, step.sent, step.terms.profile, step.terms.controls, step.watch)
    if isinstance(step, Parsing):
        return await adapter.aparse(step.rest, step.text)
    if isinstance(step, Waiting):
        return await step.outcome()
    return await step.awaitable


def _go_on(go: Any, value: Any) -> "Step | Outputs":
    """Take the steps up to the next thing to wait for, or to the end."""
    try:
        return go(value)
    except StopIteration as done:
        return done.value


def _refused(pending: Pending) -> Any:
    close = getattr(pending.awaitable, "close", None)
    if close:
        close()  # never awaited, and meant to be so
    raise InvalidOption(
        "something async was given to a synchronous call",
        field="hooks",
        fix="Use the module's acall, or give something synchronous.",
    )


def steps(adapter: "ToolAdapter", call: Call) -> Steps:
    """All that happens between the inputs and the outputs; everything that can be wrong is found first."""
    transport.refuse_unsupported(call.lm, adapter.options)
    decls = yield from decls_of(call.plan, call.signature, call.inputs, call.settings, adapter.options)
    plan = _native_types(adapter, call)
    controls, generation = transport.controls_of(call.lm, call.settings)
    form = adapter.response_format(call.lm, plan.rest) if plan.texts else None
    if form is not None:
        generation.setdefault("response_format", form)
    messages = adapter.format(plan.rest, call.demos, call.inputs)
    request = build_request(transport.model_of(call.lm), messages, decls, adapter.options, generation)
    answers, changes = yield from _answers(adapter, call, request, controls, decls)
    outputs: Outputs = []
    for answer in answers:
        try:
            values = yield from _values(adapter, call, plan, answer)
        except Exception as error:
            context = _context(call, decls, changes)
            instead = yield from on_error(adapter.options.hooks, error, context)
            if instead is None:
                raise
            answer = Answer(_checked(adapter.options, decls, instead), None)  # noqa: PLW2901
            values = yield from _values(adapter, call, plan, answer)
        outputs.append(values)
    return outputs


def _values(
    adapter: "ToolAdapter", call: Call, plan: Plan, answer: "Answer"
) -> "Generator[Step, Any, dict[str, Any]]":
    """One candidate's output values."""
    choice = answer.choice
    if adapter.options.on_invalid != "keep":
        refuse_bad_calls(choice, plan, call.signature, answer.failure)
    values = yield from outputs_of(adapter, plan, call.signature, choice)
    return values | _native_values(adapter, call, choice, answer.response)


def _answers(
    adapter: "ToolAdapter", call: Call, request: Request, controls: transport.Controls, decls: ToolDecls
) -> Answers:
    """Every candidate's answer, as the hooks leave it, and what of the request was changed for its wire."""
    options = adapter.options
    if options.hooks:
        asked = yield from before_request(options.hooks, request, _context(call, decls, ()))
        if isinstance(asked, Choice):
            return [Answer(_checked(options, decls, asked), None)], ()
        request = with_known_tools(asked, decls, options)
    terms = Terms(options, decls, transport.profile_of(call.lm), controls, call.plan.calls)
    outgoing = _outgoing(terms, request)
    changes = outgoing.sent.changes
    try:
        responses = yield outgoing
        answers: list[Answer] = []
        for number, response in enumerate(responses):
            answers.append((yield from _settled(outgoing.candidate(number), response)))
    except Exception as error:
        instead = yield from on_error(options.hooks, error, _context(call, decls, changes))
        if instead is None:
            raise
        answers = [Answer(_checked(options, decls, instead), None)]
    if options.hooks:
        context = _context(call, decls, changes)
        for number, answer in enumerate(answers):
            choice = yield from after_choice(options.hooks, answer.choice, context)
            answers[number] = answer._replace(choice=choice)
    return answers, changes


def _context(call: Call, decls: ToolDecls, changes: tuple[Change, ...]) -> HookContext:
    return HookContext(transport.model_of(call.lm), call.signature, decls, changes)


def _settled(outgoing: Outgoing, response: lm15.Response) -> "Generator[Outgoing | Pending, Any, Answer]":
    """One candidate's answer, after as many reasks as were allowed and needed (rule 5)."""
    choice, options = outgoing.judge(choice_from_response(response)), outgoing.terms.options
    if options.on_invalid != "reask":
        return Answer(choice, response)
    kept, answered = list[ToolCall](), set[str]()
    for _ in range(options.max_reasks):
        calls = choice.tool_calls
        if calls is None or not calls.invalid:
            break
        with_these = answered | {call.id for call in calls.in_order()}
        outgoing = _outgoing(outgoing.terms, continued(outgoing.request, calls), with_these)
        try:
            (response,) = yield outgoing
        except Exception as error:  # noqa: BLE001  (raised with the calls there are, which it must not cost)
            return Answer(merged(kept, choice, len(answered)), response, error)
        kept += further(calls, len(answered))
        answered = with_these
        choice = outgoing.judge(choice_from_response(response))
    return Answer(merged(kept, choice, len(answered)), response)


def _outgoing(terms: Terms, request: Request, answered: Collection[str] = ()) -> Outgoing:
    """A request made ready; `answered` are ids of calls whose answer comes out together with this one's."""
    sent = lowered(request, terms.profile)
    return Outgoing(terms, request, sent, partial(_judged, terms, request, sent.names, answered))


def _judged(
    terms: Terms, request: Request, names: dict[str, str], answered: Collection[str], choice: Choice
) -> Choice:
    """The choice under declared names, its ids apart from those of the conversation (rule 6), checked."""
    taken = ids_in(request)
    if taken:
        choice = kept_apart(choice, taken, answered)
    return _checked(terms.options, terms.decls, restored(choice, names))


def _checked(options: Options, decls: ToolDecls, choice: Choice) -> Choice:
    """The choice with its calls repaired and unwrapped where that was asked for, then checked."""
    calls = choice.tool_calls
    if calls is None:
        return choice
    if options.repair:
        calls = repair(calls)
    if options.unwrap:
        calls = unwrap(calls, decls)
    if options.validate_args:
        calls = calls.validated(decls)
    return choice if calls is choice.tool_calls else replace(choice, tool_calls=calls)


class _Asked(NamedTuple):
    """A signature, as far as DSPy's own native types look at it: they delete their field, or leave it."""

    rest: type[Signature]

    def delete(self, name: str) -> "_Asked":
        return _Asked(without(self.rest, name))


def _native_types(adapter: "ToolAdapter", call: Call) -> Plan:
    """Let DSPy's own native types (reasoning, citations) take their fields out of the text, as DSPy does."""
    rest: type[Signature] = call.plan.rest
    for name, kind in call.plan.typed:
        if kind not in adapter.native_response_types:
            continue
        asked: Any = _Asked(rest) if kind in _DSPYS_OWN else rest
        left: Any = kind.adapt_to_native_lm_feature(asked, name, call.lm, call.settings)
        rest = left.rest if type(left) is _Asked else left
    return call.plan if rest is call.plan.rest else reduced(call.plan, rest)


def _native_values(
    adapter: "ToolAdapter", call: Call, choice: Choice, response: lm15.Response | None
) -> dict[str, Any]:
    """What DSPy's native types read off the response, and the log probabilities if they were asked for."""
    if response is None or not (call.plan.typed or response.logprobs):
        return {}
    native = {name: kind for name, kind in call.plan.typed if kind in adapter.native_response_types}
    output = transport.legacy_output(response, logprobs=response.logprobs is not None)
    if choice.reasoning:
        output["reasoning_content"] = choice.reasoning
    found = {name: kind.parse_lm_response(output) for name, kind in native.items()}
    values = {name: value for name, value in found.items() if value is not None}
    return values | ({"logprobs": output["logprobs"]} if "logprobs" in output else {})
