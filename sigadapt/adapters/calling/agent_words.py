"""What an agent says in words: the answers of a plain history, and an answer without a call.

`dspy.ReActV2` answers by a call of `submit`. A history that a program wrote itself has the answers as values
of output fields, which the agent's predictor lacks. They become what the assistant said, in the form in which
the adapter would read it. Nothing else of such a history is left out without a Change.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import dspy
from dspy.signatures.signature import Signature
from dspy.utils.exceptions import AdapterParseError

from sigadapt.adapters.output_format import OutputFormat
from sigadapt.adapters.outputs import parse_steps, refuse_partial, sole_text_field
from sigadapt.adapters.plan import Plan
from sigadapt.adapters.request.canonical import Change
from sigadapt.adapters.request.messages import refuse_strange
from sigadapt.adapters.response.choice import Choice
from sigadapt.dspy_boundary.internals import SUBMIT
from sigadapt.json_values import is_object, listed
from sigadapt.schemas.caches import WeakCache
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.calls import ToolCalls, Turn, in_turn
from sigadapt.signatures.transcript import Event, collection_in, read, rounds_in

_FORMS: WeakCache[dict[tuple[str, ...], type[Signature]]] = WeakCache()
"""By an agent's signature: signatures of some outputs, by their names."""

_MOST_NAMES = 8  # in the record of what is not sent


def answer_field(agent: Any) -> str | None:
    """Return the output that an agent may answer in words; None if it has to submit."""
    return sole_text_field(agent.signature) if takes_words(agent) else None


def takes_words(agent: Any) -> bool:
    """Return whether an agent keeps words without a call; DSPy's own forgets them."""
    return bool(getattr(agent, "text_answer", False))


class Words(NamedTuple):
    """An answer without a call: the predictor's outputs, and those of the agent if they are its answer."""

    outputs: dict[str, Any]
    answer: dict[str, Any] | None


def words_in(agent: Any, adapter: OutputFormat, plan: Plan, choice: Choice) -> Steps[Words | None]:
    """Return what an agent's model says without a call; None if it does not, or the agent forgets words.

    The agent's one text is read in the adapter's form first. A text without marks is all of it.
    """
    text = choice.text or ""
    if choice.tool_calls is not None or not text.strip() or not takes_words(agent):
        return None
    refuse_partial(adapter, plan._replace(text_signature=agent.signature), choice)
    thoughts = plan.text_signature
    holds_thoughts = bool(adapter.field_marker) and adapter.holds_fields(thoughts, text)
    answer = None
    field = answer_field(agent)
    if field is not None:
        value = (yield from _outputs_in(adapter, agent.signature, text)).get(field)
        if value is None and not holds_thoughts:
            value = adapter.plain(text)
        if isinstance(value, str) and value.strip():
            answer = {field: value.strip()}
    values: dict[str, Any] = {}
    if answer is None and holds_thoughts:
        values = yield from _outputs_in(adapter, thoughts, text)
    outputs = {name: values.get(name) for name in plan.outputs}
    outputs[plan.calls] = ToolCalls(turn=Turn(text=text, reasoning=choice.reasoning))
    return Words(outputs, answer)


def _outputs_in(adapter: OutputFormat, signature: type[Signature], text: str) -> Steps[dict[str, Any]]:
    """Return the outputs that a text marks; none if it marks none, or they cannot be read."""
    try:
        values = yield from parse_steps(adapter, signature, text)
    except AdapterParseError:
        return {}
    return values or {}


def with_words(
    agent: Any, adapter: OutputFormat, plan: Plan, inputs: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Change, ...]]:
    """Return the inputs of an agent's request, with the words of its history, and what is not sent of it."""
    field = plan.history_fields.history
    history = inputs.get(field or "")
    if history is None:
        return inputs, ()
    writer = _HistoryWriter(agent, adapter, plan)
    events: list[Event] = []
    is_new = False
    for number, event in enumerate(read(dspy.History, history, field).messages):
        written = writer.events_of(event, number)
        is_new = is_new or written[0] is not event
        events += written
    if not is_new:
        return inputs, ()
    return {**inputs, str(field): dspy.History(messages=events)}, writer.changes()


class _HistoryWriter:
    """Writes the events of an agent's history as events of its predictor."""

    def __init__(self, agent: Any, adapter: OutputFormat, plan: Plan) -> None:
        self._agent = agent
        self._adapter = adapter
        self._plan = plan
        self._outputs: Mapping[str, Any] = agent.signature.output_fields
        self._texts: Mapping[str, Any] = plan.text_signature.output_fields  # the thoughts, as text
        self._native = set(plan.outputs) - {plan.calls, *self._texts}  # the thoughts, if a provider has them
        self._known = {*plan.text_signature.fields, plan.calls, *self._native}
        self._left_out: list[str] = []

    def changes(self) -> tuple[Change, ...]:
        """Return what was left out."""
        if not self._left_out:
            return ()
        names = listed(self._left_out, _MOST_NAMES, ", ")
        why = f"the agent's request has no place for these values of its history: {names}"
        return (Change("/messages", "dropped", why),)

    def events_of(self, event: Event, number: int) -> list[Event]:
        """Return the events to send for one."""
        if self._known.issuperset(event) and not self._loses_thoughts(event):
            calls = event.get(self._plan.calls)
            if calls is None or calls or not _text_of(calls):
                return [event]
        names = [*self._plan.text_signature.input_fields, *self._outputs, *self._known]
        refuse_strange(event, names, self._plan.history_fields)
        kept = self._sendable(event, number)
        calls = collection_in(kept)
        said = {name: kept.pop(name) for name in self._outputs if name in kept}
        said = {name: value for name, value in said.items() if not _is_said(name, value, calls)}
        if calls and said and not calls.text and not _has_results(kept, calls):
            name = next(name for name, value in kept.items() if collection_in({name: value}) is not None)
            turn = calls.turn.model_copy(update={"text": self._text(said)})
            return [{**kept, name: in_turn(calls, turn)}]
        if calls:
            return [kept, self._words(said)] if said else [kept]
        if calls is not None and calls.text:  # in the model's own words
            return [{name: value for name, value in kept.items() if name not in self._texts}]
        if not said:
            return [kept]
        thoughts = {name: kept.pop(name) for name in self._texts if kept.get(name) is not None}
        others = {name: value for name, value in kept.items() if collection_in({name: value}) is None}
        return [{**others, **self._words({**thoughts, **said})}]

    def _loses_thoughts(self, event: Event) -> bool:
        """Return whether an event has thoughts that no turn of its calls has, for a provider's own field."""
        if not any(_has_text(event.get(name)) for name in self._native):
            return False
        calls = collection_in(event)
        return calls is None or not (calls.turn.reasoning or calls.text)

    def _sendable(self, event: Event, number: int) -> Event:
        """Return what an agent's request can hold of an event."""
        loses_thoughts = self._loses_thoughts(event)
        kept: Event = {}
        has_calls = has_rounds = False
        for name, value in event.items():
            if value is None:
                continue
            is_calls = collection_in({name: value}) is not None
            is_rounds = bool(rounds_in({name: value}, None))
            is_first = (is_calls and not has_calls) or (is_rounds and not has_rounds)
            is_field = name in self._outputs or (name in self._known and name != self._plan.calls)
            if is_first or (is_field and not (loses_thoughts and name in self._native)):
                kept[name] = value
            else:
                self._left_out.append(f"{name!r} of event {number}")
            has_calls = has_calls or is_calls
            has_rounds = has_rounds or is_rounds
        return kept

    def _words(self, said: dict[str, Any]) -> Event:
        """Return the event of an answer in words."""
        return {self._plan.calls: ToolCalls(turn=Turn(text=self._text(said)))}

    def _text(self, said: dict[str, Any]) -> str:
        field = answer_field(self._agent)
        if field is not None and said.keys() == {field} and isinstance(said[field], str):
            return said[field].strip()
        signature = _form_of(self._agent.signature, self._texts, tuple(said))
        values = {name: _thought_of(value) if name in self._texts else value for name, value in said.items()}
        return self._adapter.format_assistant_message_content(signature, values)


def _form_of(
    agent_signature: type[Signature], thoughts: Mapping[str, Any], names: tuple[str, ...]
) -> type[Signature]:
    """Return a signature with these outputs alone."""
    forms = _FORMS.of(agent_signature, dict[tuple[str, ...], type[Signature]])
    if names not in forms:
        fields = {**thoughts, **agent_signature.output_fields}
        kinds = {name: (fields[name].annotation, fields[name]) for name in names}
        make: Any = dspy.Signature
        forms[names] = make(kinds, "Answer.")
    return forms[names]


def _text_of(calls: Any) -> str | None:
    return calls.text if isinstance(calls, ToolCalls) else None


def _has_text(thought: Any) -> bool:
    return bool(_thought_of(thought))


def _thought_of(value: Any) -> Any:
    """Return the text of a thought, which may be a `dspy.Reasoning`, or what one saved as."""
    return value.get("content") if is_object(value) else getattr(value, "content", value)


def _has_results(event: Event, calls: ToolCalls) -> bool:
    """Return whether the results of an event's calls are in the event itself."""
    return calls.tool_call_results is not None or any(rounds_in({name: event[name]}, None) for name in event)


def _is_said(name: str, value: Any, calls: ToolCalls | None) -> bool:
    """Return whether the calls of an output's event say it: by `submit`, or in the text beside them."""
    if value is None or value == "":
        return True
    if calls is None:
        return False
    if not calls:
        return bool(calls.text)
    if any(call.name == SUBMIT and name in call.args for call in calls):
        return True
    return isinstance(value, str) and value in (calls.text or "")
