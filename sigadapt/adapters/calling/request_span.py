"""One request in its span: what it asks, and the answer as it is read, in which a bad call is a fault."""

from sigadapt.adapters.calling.answers import read_choice
from sigadapt.adapters.calling.call_record import CallRecord
from sigadapt.adapters.outputs import fault_of
from sigadapt.adapters.response.choice import CandidateAnswer
from sigadapt.dspy_boundary.tracer import RequestSpan, Tracer
from sigadapt.signatures.awaiting import Steps


def in_span(
    tracer: Tracer, record: CallRecord, number: int, answering: Steps[CandidateAnswer]
) -> Steps[CandidateAnswer]:
    """Return the answer of one candidate, asked for in a span."""
    candidate = record if record.controls.candidates == 1 else record.for_candidate(number)
    with tracer.request(record) as span:
        answer = yield from answering
        answer.trace = tracer.position()
        _show(span, candidate, answer)
        return answer


def _show(span: RequestSpan, record: CallRecord, answer: CandidateAnswer) -> None:
    try:
        choice = read_choice(record, answer)
    except Exception as error:  # noqa: BLE001  (raised where the answer is read next)
        span.take(None, error)
    else:
        span.take(choice, fault_of(choice))
