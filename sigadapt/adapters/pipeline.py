"""The flow of one call with tool fields, in reading order, for sync and async alike.

    Signature -> Plan -> Request -> (dspy.LM) -> Response -> Choice -> outputs

`steps` is a generator of pure code: it yields what to send and is sent the responses, so that only its
drivers, `run` and `arun`, know whether anybody waits.
"""

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from dspy import lm15
from dspy.clients.base_lm import BaseLM
from dspy.signatures.signature import Signature

from sigadapt.adapters import transport
from sigadapt.adapters.choice import Choice, choice_from_response
from sigadapt.adapters.options import Options
from sigadapt.adapters.outputs import outputs_of, refuse_bad_calls
from sigadapt.adapters.plan import Plan, reduced
from sigadapt.adapters.reask import continued, merged
from sigadapt.adapters.request import Request, build_request, decls_of
from sigadapt.signatures.calls import ToolCall
from sigadapt.signatures.decls import ToolDecls
from sigadapt.signatures.leniency import repair, unwrap

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
    """A request on its way, and how it is to be sent."""

    request: Request
    controls: transport.Controls

    def candidate(self, number: int) -> "Outgoing":
        """The same, for one of its candidates alone."""
        return self._replace(controls=self.controls.candidate(number))


def run(adapter: "ToolAdapter", call: Call) -> Outputs:
    """Drive `steps` with a language model that answers at once."""
    work = steps(adapter, call)
    step = resume(work, None)
    while isinstance(step, Outgoing):
        step = resume(work, transport.send(call.lm, *step))
    return step


async def arun(adapter: "ToolAdapter", call: Call) -> Outputs:
    """Drive `steps` with a language model that is awaited."""
    work = steps(adapter, call)
    step = resume(work, None)
    while isinstance(step, Outgoing):
        step = resume(work, await transport.asend(call.lm, *step))
    return step


def resume(work: "Steps", responses: list[lm15.Response] | None) -> Outgoing | Outputs:
    """Take the steps up to the next request, or to the end."""
    try:
        return work.send(cast("Any", responses))
    except StopIteration as done:
        return done.value


Steps: TypeAlias = Generator[Outgoing, list[lm15.Response], Outputs]


def steps(adapter: "ToolAdapter", call: Call) -> Steps:
    """All that happens between the inputs and the outputs; everything that can be wrong is found first."""
    transport.refuse_unsupported(call.lm, adapter.options)
    decls = decls_of(call.plan, call.inputs)
    plan = _native_types(adapter, call)
    controls, generation = transport.controls_of(call.lm, call.settings)
    messages = adapter.format(plan.rest, call.demos, call.inputs)
    request = build_request(str(call.lm.model), messages, decls, adapter.options, generation)
    outgoing = Outgoing(request, controls)
    responses = yield outgoing
    outputs: Outputs = []
    for number, response in enumerate(responses):
        choice, last = yield from _settled(adapter, decls, outgoing.candidate(number), response)
        if adapter.options.on_invalid != "keep":
            refuse_bad_calls(choice, plan, call.signature)
        values = outputs_of(adapter, plan, call.signature, choice)
        outputs.append(values | _native_values(adapter, call, choice, last))
    return outputs


def _settled(
    adapter: "ToolAdapter", decls: ToolDecls, sent: Outgoing, response: lm15.Response
) -> Generator[Outgoing, list[lm15.Response], tuple[Choice, lm15.Response]]:
    """One candidate's choice, after as many reasks as were allowed and needed (rule 5)."""
    options = adapter.options
    choice, kept = _judged(options, decls, response), list[ToolCall]()
    for _ in range(options.max_reasks if options.on_invalid == "reask" else 0):
        calls = choice.tool_calls
        if calls is None or not calls.invalid:
            break
        kept += calls
        sent = sent._replace(request=continued(sent.request, calls))
        (response,) = yield sent
        choice = _judged(options, decls, response)
    return merged(kept, choice), response


def _judged(options: Options, decls: ToolDecls, response: lm15.Response) -> Choice:
    """The response's choice: repaired and unwrapped where that was asked for, then checked."""
    choice = choice_from_response(response)
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
    for name, field in call.plan.rest.output_fields.items():
        if (kind := cast("Any", field.annotation)) in adapter.native_response_types:
            rest = kind.adapt_to_native_lm_feature(rest, name, call.lm, call.settings)
    return call.plan if rest is call.plan.rest else reduced(call.plan, rest)


def _native_values(
    adapter: "ToolAdapter", call: Call, choice: Choice, response: lm15.Response
) -> dict[str, Any]:
    """What DSPy's native types read off the response, and the log probabilities if they were asked for."""
    native = {
        name: field.annotation
        for name, field in call.signature.output_fields.items()
        if cast("Any", field.annotation) in adapter.native_response_types
    }
    if not native and response.logprobs is None:
        return {}
    output = transport.legacy_output(response, logprobs=response.logprobs is not None)
    if choice.reasoning:
        output["reasoning_content"] = choice.reasoning
    found = {name: cast("Any", kind).parse_lm_response(output) for name, kind in native.items()}
    values = {name: value for name, value in found.items() if value is not None}
    return values | ({"logprobs": output["logprobs"]} if "logprobs" in output else {})
