"""ReAct: DSPy's `ReActV2`, with what people who run it in production miss between its requests.

The loop, its predictor and `submit` are DSPy's own. Six things differ:

 a. The calls of a turn run side by side.
 b. Toolsets are resolved for each request, and the calls run with the tools of theirs.
 c. A history that is given is copied, so that two questions after one answer do not see each other.
 d. Each call of the agent is a `Run`, which an error that leaves it carries.
 e. Words without a call are the answer, or are kept (`agent_words.py`).
 f. The predictor does not take the state of a `dspy.ReAct`. Both agents keep their state under the name
    `react`, and DSPy loads what is there, whatever fields it has: the instructions would ask for fields that
    this agent lacks, and its fields would get descriptions of others.
"""

from typing import Any

import dspy
from dspy.signatures.signature import Signature

from sigadapt.adapters.calling.agent_steps import refuse_taken_names
from sigadapt.adapters.plan import refuse_invented_work
from sigadapt.dspy_boundary.contract import ReActV2
from sigadapt.dspy_boundary.current_run import open_turn
from sigadapt.dspy_boundary.internals import OwnSignature
from sigadapt.errors import InvalidOption
from sigadapt.json_values import is_mapping, is_sequence, refuse_unknown
from sigadapt.runs.ledger import Limits, check_limits
from sigadapt.runs.run import Run
from sigadapt.runs.waiting import resumed_run
from sigadapt.signatures.sources.runnable import forgotten_adapter
from sigadapt.signatures.tool_decls import Sources
from sigadapt.signatures.transcript import read, with_events
from sigadapt.turns.agent_calls import AgentCalls, AgentResults, tools_for_agent
from sigadapt.turns.agent_turn import AgentTurn
from sigadapt.turns.running import copy_of_state

_NEXT_TOOL = ("next_tool_name", "next_tool_args")
"""Outputs of `dspy.ReAct`, and of no other agent."""


class ReAct(ReActV2):
    """DSPy's agent `ReActV2` with tools that run side by side, toolsets, limits, and runs that are kept.

    It is optimized, saved, streamed and traced as DSPy's agent is.

    Args:
        signature: the inputs and outputs of the agent.
        tools: what it may call, in any form that ToolDecls accepts; toolsets are resolved for each request.
        max_iters: the most turns, after which the model is made to submit.
        limits: what each run of the agent may use.
        text_answer: whether what the model says without a call is the answer, if the agent has one output, of
            type `str` or `str | None`; the prediction's `termination_reason` is then `"text"`. With other
            outputs, the words stay in the round, and the last request reads them. `False` is DSPy's way:
            the words are forgotten, and the model is made to submit.

    Raises:
        InvalidToolDecl: as ToolDecls; `no_function`, for a tool without a function to run.
        InvalidSignature: for an output of `Sources` or `Files`, which the model would invent, and for a field
            with a name that the agent's loop uses; when it is called, `forgotten_adapter`, under an adapter
            that is not sigadapt's.
        InvalidOption: for `max_iters`, `limits` or `text_answer` that are none; for the state of a
            `dspy.ReAct`, when it is loaded; when it is called, for an input that it
            does not have, or for no input and no history.
        ValueError: DSPy's, for a signature with fields that the agent needs for itself, and for a tool named
            `submit`.

    An error that leaves it has the run up to there: `agent(history=error.run.history)` continues it, and
    runs no call twice.

    Example:
        >>> import dspy, sigadapt
        >>> from sigadapt.testing import Answer, Call, LoopbackProvider
        >>> def stock(title: str) -> int:
        ...     '''How many there are.'''
        ...     return 7
        >>> agent = sigadapt.ReAct("question -> answer", tools=[stock], limits=sigadapt.Limits(requests=5))
        >>> script = [
        ...     Answer(calls=[Call("stock", {"title": "Emma"})]),
        ...     Answer(calls=[Call("submit", {"answer": "Seven."})]),
        ... ]
        >>> with LoopbackProvider(script) as net:
        ...     with dspy.context(lm=dspy.LM(**net.lm_options("openai")), adapter=sigadapt.ChatAdapter()):
        ...         agent(question="How many of Emma?").answer
        'Seven.'
    """

    __signature__ = OwnSignature()

    ends_by_itself = True
    """Whether a turn with a call that waits continues, although the model submits in it."""

    def __init__(
        self,
        signature: type[Signature] | str,
        tools: Sources,
        max_iters: int = 20,
        *,
        limits: Limits | None = None,
        text_answer: bool = True,
    ) -> None:
        check_limits(limits)
        _check_options(max_iters, text_answer)
        refuse_taken_names(signature)
        super().__init__(signature, tools_for_agent(tools), max_iters)
        refuse_invented_work(self.signature)
        predictor: Any = self.react
        self.react = Predict(predictor.signature)
        self.limits = limits
        self.text_answer = text_answer

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Run the agent on its inputs, in its own run."""
        _refuse_foreign_adapter()
        given = inputs.pop("history", None)
        history = _copy_of(given)
        self._check_inputs(inputs, history)
        with Run(self.limits) as run:
            _take_over(run, history, given, inputs)
            return super().forward(history=history, **inputs)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Run the agent on its inputs, in its own run."""
        _refuse_foreign_adapter()
        given = inputs.pop("history", None)
        history = _copy_of(given)
        self._check_inputs(inputs, history)
        with Run(self.limits) as run:
            _take_over(run, history, given, inputs)
            return await super().aforward(history=history, **inputs)

    def _check_inputs(self, inputs: dict[str, Any], history: dspy.History) -> None:
        """Refuse to send a request without a question: DSPy's agent drops inputs that it does not know."""
        names = [*self.signature.input_fields]
        refuse_unknown("the agent", inputs, [*names, "history", "max_iters"])
        if names and not history.messages and not inputs.keys() & {*names}:
            raise InvalidOption("the agent got no input and no history", fix=f"Give {names[0]}=...")

    def _execute_tool_calls(self, tool_calls: dspy.ToolCalls) -> AgentResults:
        """Run the calls of a turn side by side; in DSPy's loop, this runs them one by one."""
        return self._calls_of(tool_calls).run()

    async def _aexecute_tool_calls(self, tool_calls: dspy.ToolCalls) -> AgentResults:
        """Run the calls of a turn side by side; in DSPy's loop, this runs them one by one."""
        return await self._calls_of(tool_calls).arun()

    def _forced_submit(
        self, history: dspy.History, pending_inputs: dict[str, Any], break_reason: str, turn_index: int
    ) -> dspy.Prediction:
        """Return what the model said without a call, if that is an answer; else ask it to submit."""
        turn = self._turn_in_words()
        if (answer := _answer_in_words(turn, history)) is not None:
            return answer
        inputs = _with_words(history, pending_inputs, turn)
        try:
            prediction = super()._forced_submit(history, inputs, break_reason, turn_index)
        except ValueError:  # also of a model that cannot be forced, and said its answer
            if (answer := _answer_in_words(self._turn_in_words(), history)) is None:
                raise
            return answer
        return prediction if turn is None else self._with_words_before(prediction)

    async def _aforced_submit(
        self, history: dspy.History, pending_inputs: dict[str, Any], break_reason: str, turn_index: int
    ) -> dspy.Prediction:
        """Return what the model said without a call, if that is an answer; else ask it to submit."""
        turn = self._turn_in_words()
        if (answer := _answer_in_words(turn, history)) is not None:
            return answer
        inputs = _with_words(history, pending_inputs, turn)
        try:
            prediction = await super()._aforced_submit(history, inputs, break_reason, turn_index)
        except ValueError:
            if (answer := _answer_in_words(self._turn_in_words(), history)) is None:
                raise
            return answer
        return prediction if turn is None else self._with_words_before(prediction)

    def _turn_in_words(self) -> AgentTurn | None:
        """Take the turn that this agent is in, if its model made no call in it."""
        turn: Any = open_turn.get()
        if not isinstance(turn, AgentTurn) or turn.agent is not self or not turn.has_words:
            return None
        open_turn.set(None)
        return turn

    def _with_words_before(self, prediction: Any) -> dspy.Prediction:
        """Make one round of the words and the forced submit that followed them."""
        turn: Any = open_turn.get()
        if isinstance(turn, AgentTurn):
            turn.leave_to_agent()
        words, submitted = prediction.history.messages[-2:]
        calls = _with_text(submitted["tool_calls"], words["tool_calls"].text)
        prediction.history.messages[-2:] = [{**words, **submitted, "tool_calls": calls}]
        return prediction

    def _calls_of(self, tool_calls: dspy.ToolCalls) -> AgentCalls:
        turn: Any = open_turn.get()
        return AgentCalls(tool_calls, self.tools, turn)


def _take_over(run: Run, history: dspy.History, given: object, inputs: dict[str, Any]) -> None:
    """Go on with what a run used and kept that waited, whether another run is open around it or not."""
    resumed = resumed_run(given)
    asks_anew = bool(inputs.keys() - {"max_iters"})
    if resumed is None or asks_anew or run.ledger.outer is not None:
        run.ledger.take_over(history)
        return
    run.state.update(copy_of_state(resumed.state))
    run.ledger.go_on_from(resumed.ledger)


def _check_options(max_iters: object, text_answer: object) -> None:
    """Refuse options of another type, which would show turns later."""
    if type(text_answer) is not bool:
        raise InvalidOption(f"expected True or False, got {text_answer!r}", field="text_answer")
    if type(max_iters) is not int or max_iters < 1:
        raise InvalidOption(f"expected an int of 1 or more, got {max_iters!r}", field="max_iters")


def _answer_in_words(turn: AgentTurn | None, history: dspy.History) -> dspy.Prediction | None:
    """Return the prediction of a run that ended with words; None if they are no answer."""
    if turn is None or turn.answer is None:
        return None
    history.messages.append(turn.words())
    return dspy.Prediction(**turn.answer, history=history, termination_reason="text")


def _with_words(
    history: dspy.History, pending_inputs: dict[str, Any], turn: AgentTurn | None
) -> dict[str, Any]:
    """Keep what the model said where the last request reads it, and return the inputs that this one lacks."""
    if turn is None:
        return pending_inputs
    history.messages.append(turn.words())
    return {}


def _with_text(calls: dspy.ToolCalls, text: str | None) -> dspy.ToolCalls:
    """Return the calls of a turn with a text before its own."""

    def of_turn(call: Any) -> Any:
        joined = "\n\n".join(filter(None, (text, call.turn.text)))
        return call.model_copy(update={"turn": call.turn.model_copy(update={"text": joined})})

    return calls.model_copy(update={"tool_calls": [of_turn(call) for call in calls.tool_calls]})


def _refuse_foreign_adapter() -> None:
    """Refuse to run under DSPy's own adapter, which runs calls that were cut off, and keeps no run."""
    error = forgotten_adapter("sigadapt.ReAct needs an adapter of sigadapt, and would run under {adapter}")
    if error is not None:
        raise error


def _copy_of(history: Any) -> dspy.History:
    """Return a new history with the same events."""
    if history is None:
        return dspy.History(messages=[])
    return with_events(read(dspy.History, history, "history"))


class Predict(dspy.Predict):
    """The predictor of `sigadapt.ReAct`. Tracers show its name, so it has that of DSPy's."""

    def load_state(self, state: Any, **options: Any) -> Any:
        """Load what `dump_state` gave.

        Raises:
            InvalidOption: for the state of a `dspy.ReAct`, before anything is loaded.
        """
        signature: Any = self.signature
        if any(name not in signature.fields and _has_field(state, name) for name in _NEXT_TOOL):
            raise InvalidOption(
                "this is the state of a dspy.ReAct, whose predictor has other fields than this agent's",
                field="state",
                fix="Optimize this agent itself, or give it the instructions that are yours, by "
                "agent.react.signature.with_instructions(...). Then save it again.",
            )
        return super().load_state(state, **options)


def _has_field(state: Any, name: str) -> bool:
    """Return whether the signature or an example of a saved predictor has a field."""
    if not is_mapping(state):
        return False
    signature: Any = state.get("signature")
    fields: Any = signature.get("fields") if is_mapping(signature) else None
    prefixes = [field.get("prefix") for field in fields if is_mapping(field)] if is_sequence(fields) else []
    if any(_name_of(prefix) == name for prefix in prefixes):
        return True
    demos: Any = state.get("demos")
    return is_sequence(demos) and any(name in demo for demo in demos)


def _name_of(prefix: Any) -> str:
    """Return the name of a field whose prefix is DSPy's own."""
    return str(prefix).rstrip(":").replace(" ", "_").lower()
