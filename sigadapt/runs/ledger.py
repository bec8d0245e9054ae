"""Ledger: what a run counts, what it may use (`Limits`), and the turn that its outermost agent is in.

DSPy's models, the adapters and the tools report here (`dspy_boundary/current_run.py`), from whatever thread.
What happens in a run happens in the runs around it, too, so each report goes through all of them.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from math import isfinite
from threading import RLock
from typing import Any, NoReturn
from uuid import uuid4

import dspy

from sigadapt.dspy_boundary.current_run import agents_around
from sigadapt.errors import InvalidOption, LimitExceeded
from sigadapt.providers.usage import Usage
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.turns.agent_turn import AgentTurn

_SPENT = ("input_tokens", "output_tokens", "total_tokens", "cost")

_LEAST_SECONDS = 0.001
"""What a tool gets if no time is left: a timeout is above 0."""

_MOST_AGENTS = 100
"""How many agents side by side have their failures counted: a run may be open as long as its program."""

_COUNTING = RLock()
"""Held while a request is checked and counted, so that two threads do not both take the last one."""


_COUNTS = frozenset(("requests", "tool_calls", "input_tokens", "output_tokens", "total_tokens", "failures"))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that a run may use. What is None has no limit.

    Args:
        requests: requests to a model, those of tool searches and reasks included. An answer of DSPy's cache
            is none, and DSPy's retries are one.
        tool_calls: calls of tools that begin to run.
        input_tokens: tokens that the models read.
        output_tokens: tokens that the models wrote, thinking included.
        total_tokens: both.
        cost: US dollars, as DSPy knows the models' prices.
        seconds: the time since the run began. A tool is not waited for any longer.
        failures: turns of an agent in a row in which no call succeeded. Bad calls and a `submit` that does
            not fit are failures, a rejected call is none. The turns of an agent inside of a tool are its own.

    Raises:
        InvalidOption: for a limit that is no number, or below 0.

    Example:
        >>> Limits(requests=5, cost=0.25)
        Limits(requests=5, cost=0.25)
    """

    requests: int | None = None
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    failures: int | None = None

    def __post_init__(self) -> None:
        for limit in fields(self):
            value: Any = getattr(self, limit.name)
            if value is not None:
                _check(limit.name, value)

    def __repr__(self) -> str:
        given = [(limit.name, getattr(self, limit.name)) for limit in fields(self)]
        return f"Limits({', '.join(f'{name}={value!r}' for name, value in given if value is not None)})"


def check_limits(limits: object) -> None:
    """Refuse what is neither Limits nor None."""
    if limits is None or isinstance(limits, Limits):
        return
    fix = "Give sigadapt.Limits(requests=10)."
    raise InvalidOption(f"expected Limits, got {limits!r}", field="limits", fix=fix)


def _check(name: str, value: Any) -> None:
    kinds = (int,) if name in _COUNTS else (int, float)
    if type(value) in kinds and isfinite(value) and value >= 0:
        return
    noun = "an int" if name in _COUNTS else "a number"
    raise InvalidOption(f"expected {noun} of 0 or more as a limit, got {value!r}", field=name)


class Ledger:
    """What one run has used and may use.

    Args:
        limits: what it may use.
        outer: the ledger of the run around it.
    """

    def __init__(self, limits: Limits, outer: "Ledger | None" = None) -> None:
        self.usage = Usage()
        self.own_id = frozenset((uuid4().hex,))
        self.ids = self.own_id if outer is None else self.own_id | outer.ids
        """The ids of the ledgers that count what happens here."""
        self.turn: AgentTurn | None = None
        self.failed_turns = 0
        """How many turns in a row of the agent whose turn it is had no call that succeeded."""
        self._other_agents: dict[int, tuple[AgentTurn, int]] = {}
        """By the agent's id: its last turn, and how many failed."""
        self.resumed_calls: frozenset[str] = frozenset()
        """The ids of the calls of the turn that this run resumes; empty for any other run."""
        self.latest_resumed: Ledger | None = None  # of the runs inside of this one that resumed a turn
        self.limits = limits
        self.outer = outer
        self.depth = len(agents_around())
        """How many tools of agents the run is inside of."""
        self._began: float | None = None
        self._earlier_seconds = 0.0  # before the run waited for a person

    @classmethod
    def of_earlier_run(
        cls, usage: Usage, seconds: float, history: dspy.History, counted_in: Iterable[str] = ()
    ) -> "Ledger":
        """Return the ledger of a run that was saved; `counted_in` has the ids of those that counted it."""
        ledger = cls(Limits())
        ledger.usage = usage
        ledger.turn = AgentTurn(history, {})
        ledger.add_seconds(seconds)
        ledger.ids = frozenset(counted_in)
        return ledger

    def start_clock(self) -> None:
        """Begin to count the seconds."""
        self._began = time.monotonic()

    def stop_clock(self) -> None:
        """Keep the seconds as they are."""
        self._earlier_seconds = self.seconds
        self._began = None

    def close(self) -> None:
        """End the run: its time stands still, and later runs of the agent's history change nothing here."""
        self.stop_clock()
        if self.turn is not None:
            self.turn.leave_history()

    @property
    def seconds(self) -> float:
        """How long the run has taken so far."""
        running = 0.0 if self._began is None else time.monotonic() - self._began
        return self._earlier_seconds + running

    def add_seconds(self, seconds: float) -> None:
        """Count the time of an earlier part of the run."""
        self._earlier_seconds += seconds

    def with_outer(self) -> Iterator["Ledger"]:
        """Yield the ledgers of this run and of the runs around it."""
        ledger: Ledger | None = self
        while ledger is not None:
            yield ledger
            ledger = ledger.outer

    def is_of_tool(self, outer: "Ledger") -> bool:
        """Return whether this is the ledger of a run inside of a tool of another run's agent."""
        return self.depth > outer.depth

    @property
    def is_inside_tool(self) -> bool:
        """Whether what runs now is inside of a tool of an agent of this run."""
        return len(agents_around()) > self.depth

    def is_inside(self, earlier: "Ledger") -> bool:
        """Return whether an earlier run was, too, inside of one of the runs around this one."""
        return any(ledger.own_id & earlier.ids for ledger in self.with_outer())

    def resume(self, earlier: "Ledger | None", turn: AgentTurn | None, call_ids: Iterable[str]) -> None:
        """Go on with a run that waited for a person.

        Args:
            earlier: the ledger of that run, if there was one.
            turn: the turn of the agent that waited; None if no agent did.
            call_ids: the ids of the calls of the turn.
        """
        if earlier is not None:
            self._carry(earlier)
        for ledger in self.with_outer():
            ledger.latest_resumed = self
            if ledger.is_inside_tool:
                continue
            if turn is not None:
                ledger.turn = turn
            elif earlier is not None:
                ledger.turn = ledger.turn or earlier.turn
        self.resumed_calls = frozenset(call_ids)

    def take_over(self, history: dspy.History) -> None:
        """Count what the run used before it waited, if this run of an agent goes on with a resumed turn."""
        outer = self.outer
        if outer is None or outer.latest_resumed is None or not history.messages:
            return
        resumed = outer.latest_resumed
        calls = [value for value in history.messages[-1].values() if isinstance(value, ToolCalls)]
        if any(frozenset(call.id for call in turn_calls) == resumed.resumed_calls for turn_calls in calls):
            outer.latest_resumed = None
            self.go_on_from(resumed)

    def go_on_from(self, resumed: "Ledger") -> None:
        """Count what the run used that resumed the turn."""
        self.usage = resumed.usage
        self.failed_turns = resumed.failed_turns
        self.add_seconds(resumed.seconds)

    def begin_step(self, turn: AgentTurn) -> None:
        """Begin the step of an agent.

        Raises:
            LimitExceeded: the error of a nested agent, which the tool of this one swallowed; `failures`.
        """
        turn.count_calls = self.count_calls
        ledgers = [ledger for ledger in self.with_outer() if not ledger.is_inside_tool]
        for ledger, earlier in [(ledger, ledger.change_turn(turn)) for ledger in ledgers]:
            if earlier is None:
                continue
            if earlier.refusal is not None and earlier.is_before(turn):
                raise earlier.refusal
            ledger.count_failure(earlier)

    def change_turn(self, turn: AgentTurn) -> AgentTurn | None:
        """Take the turn that begins, and return the one before it of the same agent, if there was one."""
        earlier = self.turn
        self.turn = turn
        if earlier is None or earlier.agent in (None, turn.agent):
            return earlier
        self._other_agents[id(earlier.agent)] = earlier, self.failed_turns
        if len(self._other_agents) > _MOST_AGENTS:
            self._other_agents.pop(next(iter(self._other_agents)))
        earlier, self.failed_turns = self._other_agents.pop(id(turn.agent), (None, 0))
        return earlier

    def count_failure(self, turn: AgentTurn) -> None:
        """Count a turn in which no call succeeded, or begin anew after one in which a call did.

        Raises:
            LimitExceeded: for as many in a row as there may be.
        """
        if turn.has_success:
            self.failed_turns = 0
            return
        failure = turn.last_failure
        if failure is None:
            return
        self.failed_turns += 1
        most = self.limits.failures
        if most is not None and self.failed_turns >= most:
            self._refuse(LimitExceeded("failures", self.failed_turns, most, last_failure=failure))

    def begin_request(self, model: str, has_price: Callable[[], bool]) -> None:
        """Count a request that goes out now, or raise why it may not."""
        limits_cost = any(ledger.limits.cost is not None for ledger in self.with_outer())
        if limits_cost and not has_price():
            raise InvalidOption(
                f"no price is known for the model {model!r}, so its cost cannot be limited",
                field="cost",
                fix="Limit total_tokens, or use a model that DSPy knows the price of.",
            )
        with _COUNTING:
            for ledger in self.with_outer():
                ledger.check_spent()
                ledger.check("requests", 1)
            self.add(requests=1)

    def count_answer(self, usage: Mapping[str, Any], cost: float | None) -> None:
        """Count what an answer used."""
        details: Any = usage.get("prompt_tokens_details") or {}
        self.add(
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=usage.get("completion_tokens"),
            cached_tokens=details.get("cached_tokens"),
            cost=cost,
        )

    def check_calls(self, count: int, *, is_last_turn: bool = False) -> None:
        """Raise why a turn of this many calls may not run; after the last one, no more is spent."""
        for ledger in self.with_outer():
            if not is_last_turn:
                ledger.check_spent()
            ledger.check("tool_calls", count)

    def count_calls(self, count: int) -> None:
        """Count calls that begin to run now, or raise why they may not; below 0, take back calls."""
        with _COUNTING:
            for ledger in self.with_outer():
                ledger.check("tool_calls", count)
            self.add(tool_calls=count)

    def note_result(self, call_id: str, result: ToolResult) -> None:
        """Keep the result of a call of an agent before the agent itself has it."""
        for ledger in self.with_outer():
            if ledger.turn is not None:
                ledger.turn.note_result(call_id, result)

    def seconds_left(self) -> float | None:
        """Return how long a tool may run at most; None without a limit."""
        seconds: list[float] = []
        for ledger in self.with_outer():
            limit = ledger.limits.seconds
            if limit is not None:
                seconds.append(limit - ledger.seconds)
        return max(min(seconds), _LEAST_SECONDS) if seconds else None

    def _carry(self, earlier: "Ledger") -> None:
        """Add what the earlier part of this run used, which waited for a person."""
        with _COUNTING:
            for ledger in self.with_outer():
                if not ledger.own_id & earlier.ids:
                    ledger.failed_turns = earlier.failed_turns
                    ledger.usage = ledger.usage.plus(vars(earlier.usage))
                    ledger.add_seconds(earlier.seconds)

    def add(self, **counts: float | None) -> None:
        """Add to what was used, here and in the runs around."""
        with _COUNTING:
            for ledger in self.with_outer():
                ledger.usage = ledger.usage.plus(counts)

    def check_spent(self) -> None:
        """Raise if the tokens, the cost or the time of this run are used up."""
        for name in _SPENT:
            limit: float | None = getattr(self.limits, name)
            if limit is None:
                continue
            used: float | None = getattr(self.usage, name)
            if used is None:
                reason = "an answer came without this figure, so it cannot be limited"
                raise InvalidOption(reason, field=name, fix="Limit the requests.")
            if used > limit:
                self._refuse(LimitExceeded(name, used, limit))
        most_seconds = self.limits.seconds
        if most_seconds is not None and self.seconds >= most_seconds:
            self._refuse(LimitExceeded("seconds", self.seconds, most_seconds))

    def check(self, name: str, more: int) -> None:
        """Raise if this much more of a count would pass its limit."""
        limit: int | None = getattr(self.limits, name)
        used: int = getattr(self.usage, name)
        if limit is not None and more > 0 and used + more > limit:
            next_calls = more if name == "tool_calls" else 0
            self._refuse(LimitExceeded(name, used, limit, next_calls))

    def _refuse(self, error: LimitExceeded) -> NoReturn:
        agents = agents_around()[self.depth :]
        turn = self.turn
        if agents and turn is not None and turn.agent is not agents[0]:
            turn, _ = self._other_agents.get(id(agents[0]), (turn, 0))
        if agents and turn is not None:
            turn.refusal = error
        raise error
