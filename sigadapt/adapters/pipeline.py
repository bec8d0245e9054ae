"""The flow of one call with tool fields, in reading order, for sync and async alike.

    Signature -> Plan -> Request -> (dspy.LM) -> Response -> Choice -> outputs

`steps` is a generator of pure code: it yields what to send and is sent the responses, so that only its
drivers, `run` and `arun`, know whether anybody waits.
"""

from collections.abc import Collection, Generator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dspy import lm15
from dspy.clients.base_lm import BaseLM
from dspy.signatures.signature import Signature

from sigadapt.adapters import transport
from sigadapt.adapters.choice import Choice, choice_from_response, kept_apart
from sigadapt.adapters.hooks import HookContext, Pending, after_choice, before_request, on_error
from sigadapt.adapters.lowering import Lowered, lowered
from sigadapt.adapters.names import restored
from sigadapt.adapters.options import Options
from sigadapt.adapters.outputs import Parsing, outputs_of, refuse_bad_calls
from sigadapt.adapters.plan import Plan, names_of, reduced
from sigadapt.adapters.profiles import Profile
from sigadapt.adapters.reask import continued, further, merged
from sigadapt.adapters.request import Request, build_request, decls_of
from sigadapt.adapters.streaming import Watch
from sigadapt.errors import InvalidOption
from sigadapt.signatures.calls import ToolCall
from sigadapt.signatures.decls import ToolDecls
from sigadapt.signatures.leniency import repair, unwrap
from sigadapt.signatures.toolsets.context import RequestContext
from sigadapt.signatures.toolsets.waiting import Waiting

if TYPE_CHECKING:
    from sigadapt.adapters.tool_adapter import ToolAdapter

Outputs: TypeAlias = list[dict[str, Any]]


class Call(NamedTuple):
    """What an adapter was called with, and the plan of its signature."""

    lm: BaseLM
    settings: dict[str, Any]
    signature: type[Signature]
    plan: Plan
    demos: list[dict[str, Any]]
    inputs: dict[str, Any]


class Outgoing(NamedTuple):
    """A request on its way: as it is canonically, as its wire takes it, and how it is to be sent."""

    request: Request
    sent: Lowered
    profile: Profile
    controls: transport.Controls
    watch: Watch | None = None

    def candidate(self, number: int) -> "Outgoing":
        """The same, for one of its candidates alone."""
        watch = self.watch if number == 0 else None
        return self._replace(controls=self.controls.candidate(number), watch=watch)

    def going_on(self, request: Request) -> "Outgoing":
        """The same conversation, further on."""
        return self._replace(request=request, sent=lowered(request, self.profile))


Step: TypeAlias = "Outgoing | Pending | Parsing | Waiting"
Steps: TypeAlias = Generator[Step, Any, Outputs]
Answers: TypeAlias = Generator[Step, Any, tuple[list["Answer"], HookContext]]


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
        return transport.send(call.lm, step.sent, step.profile, step.controls, step.watch)
    if isinstance(step, Parsing):
        return adapter.parse(step.rest, step.text)
    if isinstance(step, Waiting):
        raise step.refused()
    return _refused(step)


async def _awaited(adapter: "ToolAdapter", call: Call, step: "Step") -> Any:
    if isinstance(step, Outgoing):
        return await transport.asend(call.lm, step.sent, step.profile, step.controls, step.watch)
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
    context = RequestContext(call.signature, call.inputs, call.settings)
    decls = yield from decls_of(call.plan, call.inputs, context)
    plan = _native_types(adapter, call)
    controls, generation = transport.controls_of(call.lm, call.settings)
    form = adapter.response_format(call.lm, plan.rest) if names_of(plan.rest).outputs else None
    if form is not None:
        generation.setdefault("response_format", form)
    messages = adapter.format(plan.rest, call.demos, call.inputs)
    request = build_request(transport.model_of(call.lm), messages, decls, adapter.options, generation)
    context = HookContext(transport.model_of(call.lm), call.signature, decls)
    answers, context = yield from _answers(adapter, call, request, controls, context)
    outputs: Outputs = []
    for answer in answers:
        try:
            values = yield from _values(adapter, call, plan, answer)
        except Exception as error:
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
    adapter: "ToolAdapter", call: Call, request: Request, controls: transport.Controls, context: HookContext
) -> Answers:
    """Every candidate's answer, as the hooks leave it, and what hooks may know by then."""
    options, decls = adapter.options, context.decls
    asked = yield from before_request(options.hooks, request, context)
    if isinstance(asked, Choice):
        return [Answer(_checked(options, decls, asked), None)], context
    profile = transport.profile_of(call.lm)
    outgoing = Outgoing(asked, lowered(asked, profile), profile, controls)
    outgoing = _watched(outgoing, call.plan.calls, options, decls, ())
    context = context._replace(changes=outgoing.sent.changes)
    try:
        responses = yield outgoing
        answers: list[Answer] = []
        for number, response in enumerate(responses):
            answers.append((yield from _settled(options, decls, outgoing.candidate(number), response)))
    except Exception as error:
        instead = yield from on_error(options.hooks, error, context)
        if instead is None:
            raise
        answers = [Answer(_checked(options, decls, instead), None)]
    settled: list[Answer] = []
    for answer in answers:
        choice = yield from after_choice(options.hooks, answer.choice, context)
        settled.append(answer._replace(choice=choice))
    return settled, context


def _settled(
    options: Options, decls: ToolDecls, outgoing: Outgoing, response: lm15.Response
) -> "Generator[Outgoing | Pending, Any, Answer]":
    """One candidate's answer, after as many reasks as were allowed and needed (rule 5)."""
    choice, kept, answered = _judged(options, decls, outgoing, response, ()), list[ToolCall](), set[str]()
    for _ in range(options.max_reasks if options.on_invalid == "reask" else 0):
        calls = choice.tool_calls
        if calls is None or not calls.invalid:
            break
        outgoing = outgoing.going_on(continued(outgoing.request, calls))
        with_these = answered | {call.id for call in calls.in_order()}
        if outgoing.watch is not None:
            outgoing = _watched(outgoing, outgoing.watch.field, options, decls, with_these)
        try:
            (response,) = yield outgoing
        except Exception as error:  # noqa: BLE001  (raised with the calls there are, which it must not cost)
            return Answer(merged(kept, choice, len(answered)), response, error)
        kept += further(calls, len(answered))
        answered = with_these
        choice = _judged(options, decls, outgoing, response, answered)
    return Answer(merged(kept, choice, len(answered)), response)


def _judged(
    options: Options, decls: ToolDecls, outgoing: Outgoing, response: lm15.Response, answered: Collection[str]
) -> Choice:
    return _fitted(options, decls, outgoing, answered, choice_from_response(response))


def _watched(
    outgoing: Outgoing, field: str, options: Options, decls: ToolDecls, answered: Collection[str]
) -> Outgoing:
    """The same, with its calls listened to where DSPy streams."""
    judge = partial(_fitted, options, decls, outgoing, answered)
    return outgoing._replace(watch=Watch(field, judge, outgoing.sent.names))


def _fitted(
    options: Options, decls: ToolDecls, outgoing: Outgoing, answered: Collection[str], choice: Choice
) -> Choice:
    """The choice under declared names, its ids apart from those of the conversation (rule 6), checked."""
    rows = outgoing.request["messages"]
    taken = {call["id"] for row in rows if row.get("tool_calls") for call in row["tool_calls"]}
    if taken:
        choice = kept_apart(choice, taken, answered)
    return _checked(options, decls, restored(choice, outgoing.sent.names))


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


def _native_types(adapter: "ToolAdapter", call: Call) -> Plan:
    """Let DSPy's own native types (reasoning, citations) take their fields out of the text, as DSPy does."""
    rest = call.plan.rest
    for name, kind in call.plan.typed:
        if kind in adapter.native_response_types:
            rest = kind.adapt_to_native_lm_feature(rest, name, call.lm, call.settings)
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
