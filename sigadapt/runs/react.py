"""ReAct: DSPy's `ReActV2`, with what people who run it in production miss between its requests.

The loop, its predictor and `submit` are DSPy's own. Four things differ:

 a. The calls of a turn run side by side.
 b. Toolsets are resolved for each request, and the calls run with the tools of theirs.
 c. A history that is given is copied, so that two questions after one answer do not see each other.
 d. Each call of the agent is a `Run`, which an error that leaves it carries.
"""

from typing import Any

import dspy
from dspy.signatures.signature import Signature

from sigadapt.adapters.calling.agent_names import refuse_taken_names
from sigadapt.adapters.plan import refuse_invented_work
from sigadapt.dspy_boundary.current_run import open_turn
from sigadapt.dspy_boundary.internals import ReActV2, settings
from sigadapt.errors import InvalidOption
from sigadapt.runs.agent_calls import AgentCalls, AgentResults
from sigadapt.runs.agent_predictor import AgentPredictor
from sigadapt.runs.agent_tools import tools_for_agent
from sigadapt.runs.limits import Limits, check_limits
from sigadapt.runs.run import Run
from sigadapt.schemas.unknown_options import refuse_unknown
from sigadapt.signatures.sources.runnable import forgotten_adapter
from sigadapt.signatures.tool_decls import Sources
from sigadapt.signatures.transcript import read, with_events
from sigadapt.signatures.turns.side_by_side import arun_turn, run_turn


class ReAct(ReActV2):
    """DSPy's agent `ReActV2` with tools that run side by side, toolsets, limits, and runs that are kept.

    It is optimized, saved, streamed and traced as DSPy's agent is.

    Args:
        signature: the inputs and outputs of the agent.
        tools: what it may call, in any form that ToolDecls accepts; toolsets are resolved for each request.
        max_iters: the most turns, after which the model is made to submit.
        limits: what each run of the agent may use.

    Raises:
        InvalidToolDecl: as ToolDecls; `no_function`, for a tool without a function to run.
        InvalidSignature: for an output of `Sources` or `Files`, which the model would invent.
        InvalidOption: for `max_iters` or `limits` that are none; when it is called, for an input that it
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

    ends_by_itself = True
    """Whether a turn with a call that waits continues, although the model submits in it."""

    def __init__(
        self,
        signature: type[Signature] | str,
        tools: Sources,
        max_iters: int = 20,
        *,
        limits: Limits | None = None,
    ) -> None:
        check_limits(limits)
        if type(max_iters) is not int or max_iters < 0:  # pyright: ignore[reportUnnecessaryComparison]
            raise InvalidOption(f"expected an int of 0 or more, got {max_iters!r}", field="max_iters")
        refuse_taken_names(signature)
        super().__init__(signature, tools_for_agent(tools), max_iters)
        refuse_invented_work(self.signature)
        predictor: Any = self.react
        self.react = AgentPredictor(predictor.signature)
        self.limits = limits

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Run the agent on its inputs, in its own run."""
        _refuse_foreign_adapter()
        history = _copy_of(inputs.pop("history", None))
        self._check_inputs(inputs, history)
        with self._run() as run:
            run.ledger.take_over(history)
            return super().forward(history=history, **inputs)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Run the agent on its inputs, in its own run."""
        _refuse_foreign_adapter()
        history = _copy_of(inputs.pop("history", None))
        self._check_inputs(inputs, history)
        with self._run() as run:
            run.ledger.take_over(history)
            return await super().aforward(history=history, **inputs)

    def _check_inputs(self, inputs: dict[str, Any], history: dspy.History) -> None:
        """Refuse to send a request without a question: DSPy's agent drops inputs that it does not know."""
        names = [*self.signature.input_fields]
        refuse_unknown("the agent", inputs, [*names, "history", "max_iters"])
        if names and not history.messages and not inputs.keys() & {*names}:
            raise InvalidOption("the agent got no input and no history", fix=f"Give {names[0]}=...")

    def _execute_tool_calls(self, tool_calls: dspy.ToolCalls) -> AgentResults:
        """Run the calls of a turn side by side; in DSPy's loop, this runs them one by one."""
        calls = self._calls_of(tool_calls)
        with calls.running():
            outcomes = run_turn(calls.to_run, on_begin=calls.begin, on_end=calls.end)
        return calls.results(outcomes)

    async def _aexecute_tool_calls(self, tool_calls: dspy.ToolCalls) -> AgentResults:
        """Run the calls of a turn side by side; in DSPy's loop, this runs them one by one."""
        calls = self._calls_of(tool_calls)
        with calls.running():
            outcomes = await arun_turn(calls.to_run, on_begin=calls.begin, on_end=calls.end)
        return calls.results(outcomes)

    def _calls_of(self, tool_calls: dspy.ToolCalls) -> AgentCalls:
        turn: Any = open_turn.get()
        return AgentCalls(tool_calls, self.tools, turn)

    def _run(self) -> Run:
        modules: list[Any] = settings.caller_modules or []
        is_called = bool(modules) and modules[-1] is self
        return Run(self.limits).at_depth(len(modules) - is_called)


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
