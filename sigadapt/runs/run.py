"""Run: what happened in a part of a program, what it used, and what it may use, whatever runs inside.

A run that is open inside of another counts in both, and shares the outer one's `deps` and `state`.
`ledger.py` counts and refuses, and holds the turn of the outermost agent, from which the history is made.
`rounds` reads the turns with calls of any history, each with its results.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic

import dspy
import jiter
from typing_extensions import Self

from sigadapt.adapters.request.orphans import rounds_of
from sigadapt.display import Displayable, Rendering, rendered_rounds
from sigadapt.dspy_boundary.current_run import RunPlace, enter_run, open_place
from sigadapt.dspy_boundary.patches import RUNS, install
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.json_values import is_mapping, is_object, is_sequence, type_of
from sigadapt.providers.usage import Usage
from sigadapt.runs.ledger import Ledger, Limits, check_limits
from sigadapt.signatures.tool_functions.tool_context import Deps
from sigadapt.signatures.tool_results.results import Round, ToolResults, text_of_result
from sigadapt.signatures.tool_results.tool_result import ToolResult, message_in
from sigadapt.signatures.transcript import read

_NO_DEPS: Any = None


class Rounds(Displayable, tuple[Round, ...]):
    """The rounds of a run, the earliest first. They print as a table, in a terminal and in a notebook."""

    __slots__ = ()

    def _rendering(self) -> Rendering:
        return rendered_rounds(
            [[(call, result, text_of_result(result)) for call, result in turn.pairs] for turn in self]
        )

    def __str__(self) -> str:
        return self._rendering().text()

    __repr__ = __str__


def rounds(source: Any) -> Rounds:
    """Return the rounds of a run: each turn with calls, and the results of these calls.

    Args:
        source: a `dspy.History`, what its `model_dump` or `model_dump_json` wrote, the events of one, or an
            object with a `history`, such as the Prediction of an agent, an InputNeeded, or a recorded
            `Conversation`, whose turn under way counts too.

    Returns:
        The rounds in order, those of `submit` too. A round has `.text` (what the model said beside the
        calls), `.calls`, `.results`, and `.pairs` of a call and its result, bad calls included. An
        unanswered call has a failed result that says so. A failed tool's result is the type and the message
        of its exception.

    Raises:
        InvalidHistory: `unreadable_history`, for what is no history and has none.

    Example:
        >>> from sigadapt import ToolCalls, ToolResults
        >>> calls = ToolCalls([{"id": "call_1", "name": "now", "args": {}}])
        >>> event = {"question": "When?", "calls": calls, "results": ToolResults.of(calls, ["noon"])}
        >>> [one] = rounds({"messages": [event]})
        >>> [(call.name, result.value) for call, result in one.pairs]
        [('now', 'noon')]
    """
    events = read(dspy.History, _history_of(source), None).messages
    under_way = getattr(source, "results", None)  # of a Conversation
    if isinstance(under_way, ToolResults):
        events = [*events, {"results": under_way}]
    return Rounds(map(_as_read, rounds_of(events)))


def _history_of(source: Any) -> Any:
    """Return the history of a run, as an object or as JSON."""
    history: Any = source
    if is_sequence(source):
        history = {"messages": source}
    elif isinstance(source, (str, bytes)):
        content = source.encode() if isinstance(source, str) else source
        try:
            history = jiter.from_json(content)
        except ValueError:
            history = None
    elif not isinstance(source, dspy.History) and not (is_mapping(source) and "messages" in source):
        history = getattr(source, "history", None)
    if history is None:
        reason = f"{type_of(source)} is no history, and has none"
        fix = "Give a dspy.History, what it saved as, or the prediction of an agent."
        raise InvalidHistory(reason, code="unreadable_history", fix=fix)
    return history


def _as_read(turn: Round) -> Round:
    """Return a round with failed results as the model reads them."""
    results: list[ToolResult] = []
    for result in turn.results:
        if result.is_error:
            message = message_in(result.value, result.name)
            results.append(result.model_copy(update={"value": message}))
        else:
            results.append(result)
    return turn.model_copy(update={"results": tuple(results)})


class Run(Generic[Deps]):
    """Everything that a program does inside of `with sigadapt.Run() as run:`.

    It covers this task or thread, and the tasks, `asyncio.to_thread`s, threads of DSPy and workers of
    sigadapt that start inside. It can be read at any time, also when it is over. Runs side by side share
    nothing.

    Args:
        limits: what the run may use.
        deps: an object of the program's, such as a database connection, for its tools.
        state: a dict of plain JSON values, for its tools.

    Raises:
        InvalidOption: for limits or a state that are none; if the run was entered before.

    Example:
        >>> import dspy, sigadapt
        >>> from sigadapt.testing import Answer, LoopbackProvider
        >>> with LoopbackProvider([Answer(text="[[ ## answer ## ]] Hi.", usage=(40, 4))]) as net:
        ...     with dspy.context(lm=dspy.LM(**net.lm_options("openai")), adapter=sigadapt.ChatAdapter()):
        ...         with sigadapt.Run(sigadapt.Limits(requests=5)) as run:
        ...             answer = dspy.Predict("question -> answer")(question="Hello?")
        >>> run.usage.requests, run.usage.input_tokens, run.usage.output_tokens
        (1, 40, 4)
    """

    deps: Deps

    def __init__(
        self, limits: Limits | None = None, deps: Deps = _NO_DEPS, state: dict[str, Any] | None = None
    ) -> None:
        check_limits(limits)
        if state is not None and not is_object(state):
            fix = "Give a dict of plain JSON values."
            raise InvalidOption(f"expected a dict, got {state!r}", field="state", fix=fix)
        self.limits = limits or Limits()
        self.deps = deps
        self.state: dict[str, Any] = {} if state is None else state
        self.error: BaseException | None = None
        """What left the block, if anything did."""
        self.ledger = Ledger(self.limits)
        self._shares_state = state is None
        self._leave: Callable[[], None] | None = None

    @classmethod
    def of_ledger(cls, ledger: Ledger) -> "Run[Any]":
        """Return a run that is over, as it was saved."""
        run = cls()
        run.ledger = ledger
        return run

    def __enter__(self) -> Self:
        if self._leave is not None:
            raise InvalidOption("a run is entered once", fix="Make another: sigadapt.Run().")
        place = open_place()
        outer: Any = None if place is None else place.run
        if outer is not None:
            self.deps = outer.deps if self.deps is None else self.deps
            self.state = outer.state if self._shares_state else self.state
        install(RUNS)
        self.ledger = Ledger(self.limits, None if outer is None else outer.ledger)
        self.ledger.start_clock()
        self._leave = enter_run(RunPlace(self, place))
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._leave is not None:
            self._leave()
        self.ledger.close()
        self.error = error
        if error is not None and not self._has_left(getattr(error, "run", None)):
            with suppress(AttributeError, TypeError):  # an error that takes no attributes
                vars(error)["run"] = self

    def _has_left(self, run: Any) -> bool:
        """Return whether an error that leaves this run keeps another one, as a run inside of this one."""
        if not isinstance(run, Run):
            return False
        if run._leave is None:  # noqa: SLF001  (its own class; the run of another process)
            return True
        # A nested agent's history is no use to the agent that it worked for. An error that is raised twice
        # has the run of the first time.
        return self.ledger in run.ledger.with_outer() and not run.ledger.is_of_tool(self.ledger)

    @property
    def usage(self) -> Usage:
        """What the run has used so far, nested programs included."""
        return self.ledger.usage

    @property
    def history(self) -> dspy.History:
        """What the outermost agent did so far, each call with a result: `agent(history=...)` goes on from it.

        A call that was interrupted or not run has a failed result that says so. The history is empty if no
        agent has begun; with several agents, it is that of the one which asked last.
        """
        turn = self.ledger.turn
        return dspy.History(messages=[]) if turn is None else turn.history()

    @property
    def rounds(self) -> Rounds:
        """The rounds of this history: each turn with calls, and their results."""
        return rounds(self.history)

    def __repr__(self) -> str:
        return f"<Run: {self.usage}>"

    def __getstate__(self) -> dict[str, Any]:
        # An error takes its run along to another process: what happened, without the program's objects.
        return {
            "limits": self.limits,
            "state": self.state,
            "usage": self.usage,
            "seconds": self.ledger.seconds,
            "counted_in": sorted(self.ledger.ids),
            "history": self.history,
        }

    def __setstate__(self, saved: dict[str, Any]) -> None:
        ledger = Ledger.of_earlier_run(
            saved["usage"], saved["seconds"], saved["history"], saved["counted_in"]
        )
        self.__dict__.update(vars(Run.of_ledger(ledger)))
        self.limits = saved["limits"]
        self.state = saved["state"]


def run_of(error: BaseException) -> Run[Any]:
    """Return the run that an error left, also of an error of `dspy.LM` or of a cancelled task.

    Args:
        error: what `sigadapt.ReAct` or a block of `sigadapt.Run` raised, or an error raised from it.

    Raises:
        InvalidOption: `no_run`, for any other error.

    Example:
        >>> try:
        ...     with Run() as run:
        ...         raise ValueError("no")
        ... except ValueError as error:
        ...     run_of(error) is run
        True
    """
    cause: BaseException | None = error
    while cause is not None:
        run: Run[Any] | None = getattr(cause, "run", None)
        if isinstance(run, Run):
            return run
        cause = cause.__cause__ or cause.__context__
    raise InvalidOption(
        f"no run was left by this {type(error).__name__}",
        code="no_run",
        fix="Run the program inside of `with sigadapt.Run() as run:`.",
    )
