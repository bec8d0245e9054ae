"""The calls of a recorded conversation that wait for a result, found by the id or the name of a result.

A result is looked up, because a request may have thousands of calls and of results.
"""

from collections import defaultdict, deque
from typing import Any, NamedTuple, TypeAlias

from sigadapt.providers.wire.recorded import RecordedResult
from sigadapt.schemas.json_values import compact
from sigadapt.signatures.calls import InvalidToolCall, ToolCall

_Key: TypeAlias = tuple[str, Any]


class _Waiting(NamedTuple):
    turn: int
    position: int
    call_id: str
    answers: dict[str, RecordedResult]  # of its turn, by the calls' ids

    @property
    def is_answered(self) -> bool:
        return self.call_id in self.answers


class UnansweredCalls:
    """The calls without a result so far. A result takes the first call of the latest turn that it fits."""

    def __init__(self) -> None:
        # By a key, one queue for each turn, the latest turn last.
        self._queues: dict[_Key, list[deque[_Waiting]]] = defaultdict(list)
        self._turn = 0
        self._position = 0

    def begin_turn(self) -> None:
        """Begin the calls of another turn."""
        self._turn += 1
        self._position = 0

    def add(self, call: ToolCall | InvalidToolCall, sent_id: Any, answers: dict[str, RecordedResult]) -> None:
        """Add a call of the turn.

        Args:
            call: the call.
            sent_id: the id that it had in the request, if any.
            answers: where a result of it goes, by `call.id`.
        """
        waiting = _Waiting(self._turn, self._position, call.id, answers)
        self._position += 1
        # A result without an id fits by the name, and so does one with an id if the call had none.
        id_key = ("id", _hashable(sent_id)) if sent_id else ("name of none", call.name)
        for key in (("name", call.name), id_key):
            queues = self._queues[key]
            if not queues or queues[-1][0].turn != self._turn:
                queues.append(deque())
            queues[-1].append(waiting)

    def answer(self, result: RecordedResult) -> bool:
        """Give a result to its call; return whether there is one."""
        name = _hashable(result.name)
        keys: list[_Key] = [("name", name)]
        if result.id:
            keys = [("id", _hashable(result.id)), ("name of none", name)]
        candidates = [waiting for waiting in map(self._next, keys) if waiting is not None]
        if not candidates:
            return False
        call = max(candidates, key=lambda waiting: (waiting.turn, -waiting.position))
        call.answers[call.call_id] = result
        return True

    def _next(self, key: _Key) -> _Waiting | None:
        """Return the first unanswered call of the latest turn that has one under a key."""
        queues = self._queues.get(key, [])
        while queues:
            queue = queues[-1]
            while queue and queue[0].is_answered:
                queue.popleft()
            if queue:
                return queue[0]
            queues.pop()
        return None


def _hashable(value: Any) -> Any:
    """Return a text as it is, and any other JSON as its text."""
    return value if isinstance(value, str) or value is None else ("json", compact(value))
