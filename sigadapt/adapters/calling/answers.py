"""What is read of an answer: its Choice, and while it streams, what listeners get of its calls."""

from dataclasses import replace
from functools import partial
from typing import Any

from sigadapt.adapters.calling.call_record import CallRecord
from sigadapt.adapters.hooks import rebuilt
from sigadapt.adapters.listeners import CallSubscription, TextSubscription
from sigadapt.adapters.outputs import sole_text_field
from sigadapt.adapters.passes.adapter_search import SCHEMAS
from sigadapt.adapters.passes.names import name_restorer
from sigadapt.adapters.passes.order import judge, read
from sigadapt.adapters.passes.prompts import read_calls_in_text
from sigadapt.adapters.passes.tool_fields import tools_hash
from sigadapt.adapters.response.choice import CandidateAnswer, Choice, choice_of
from sigadapt.adapters.response.text_choice import looks_like, mark_recovered, notes_of, openers_of
from sigadapt.dspy_boundary.internals import all_listeners
from sigadapt.providers.wire.reading import Reading
from sigadapt.signatures.calls import ToolCall


def read_choice(record: CallRecord, answer: CandidateAnswer) -> Choice:
    """Return the Choice of an answer, read once: with unique ids (ids), declared names, checked calls."""
    if answer.choice is None:
        answer.choice = _choice_of(record, answer.reading, answer.response)
    return answer.choice


def _choice_of(record: CallRecord, reading: Reading, raw: Any) -> Choice:
    is_from_text = False
    if record.calling.reads_text:
        reading, is_from_text = read_calls_in_text(reading, record.calling, record.text_schemas)
    # Only then: a turn of its own in each saved call would cost more than the record is worth.
    if reading.calls and reading.state is not None and record.is_native:
        reading = reading._replace(offered=tools_hash(record.canonical))
    choice = choice_of(reading, raw, record.made_ids, record.earlier.ids)
    if choice.tool_calls is None:
        notes = () if record.calling.reads_text else notes_of(choice.text or "", record.decls)
        return replace(choice, notes=notes) if notes else choice
    calls = mark_recovered(choice.tool_calls) if is_from_text else choice.tool_calls
    calls = read(calls, record)
    return choice if calls is choice.tool_calls else replace(choice, tool_calls=calls)


def checked_choice(record: CallRecord, choice: Choice) -> Choice:
    """Return a Choice that a hook made, with its calls checked."""
    calls = choice.tool_calls
    if calls is None:
        return choice
    items: list[Any] = [*calls.tool_calls]
    if not all(isinstance(item, ToolCall) for item in items):  # the list is a hook's to change
        calls = rebuilt([*items, *calls.invalid], calls)
    return replace(choice, tool_calls=judge(calls, record))


def recover_hint(record: CallRecord, text: str) -> str:
    """Return what would read a call in a text in which none was looked for; empty if it holds none."""
    call = None if record.calling.reads_text else looks_like(text, record.decls)
    if call is None:
        return ""
    return f"The text holds what looks like a {call[0]} call of {call[1]!r}; recover=True reads it."


def subscribe(record: CallRecord, stream: Any) -> CallSubscription | None:
    """Return the listeners' subscription to the calls of a request; None if nobody can listen."""
    begin_answer = getattr(stream, "begin_answer", None)  # of a whole run (`runs/watching.py`)
    if record.streamed_field is None or not (begin_answer or all_listeners()):
        return None
    adapter = record.call.adapter
    calling = record.calling
    sole = sole_text_field(record.plan.text_signature)
    run: Any = None
    if begin_answer is not None:
        run = begin_answer(record.streamed_field, record.plan.text_signature, adapter.field_marker, sole)
        stream = run
    texts = TextSubscription(sole, adapter.field_marker) if sole and run is None else None
    gate: Any = None
    if calling.reads_text:
        from sigadapt.text.gate import FormatsGate, TextGate  # see text_choice.py

        fields = tuple(record.call.signature.output_fields)
        if calling.formats is None:
            gate = TextGate(record.text_schemas(), fields, **calling.reads)
        else:
            gate = FormatsGate(openers_of(calling.formats))
    declared_name = None
    if record.names or adapter.options.repair:
        declared_name = name_restorer(record)
    return CallSubscription(
        stream,
        field=record.streamed_field,
        read=partial(read_choice, record),
        read_calls=lambda calls: _choice_of(record, Reading(None, None, calls, None), None),
        declared_name=declared_name,
        earlier_ids=record.earlier.ids,
        identities=record.earlier.identities,
        made_id=record.made_ids,
        adapter_tools=SCHEMAS if record.search else (),
        texts=texts,
        gate=gate,
        run=run,
    )
