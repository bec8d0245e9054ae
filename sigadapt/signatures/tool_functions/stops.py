"""CallStop: the end of a call that waits for a person, or for a result from elsewhere.

It is no `Exception`, so a tool's own `except Exception` does not catch it, and `finally` runs. The code that
runs the calls of a turn makes requests of what the call needs (`calls/input_requests.py`).
"""

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import pydantic

from sigadapt.schemas.json_values import Json, short_hash

Kind: TypeAlias = Literal["approval", "answer", "result"]
"""What a request asks for: a yes to a call, an answer to a question, or the result of a call."""


class Need(NamedTuple):
    """One thing that a call waits for."""

    kind: Kind
    hint: str  # the question to a person
    schema: Json | None = None  # of an answer
    payload: Any = None
    pending: Any = None  # the handle of a result
    args: Json | None = None  # the call's arguments, if a hook changed them
    question: str = ""  # the `question_key` that the answer is kept under
    position: int = 0  # of the question among those of its call
    member: str | None = None  # the name of the question among those that an MCP server asks at once
    has_handle: bool = False  # whether the tool gave one, which may be None


class QuestionReply(pydantic.BaseModel):
    """What a person answered to one question of a call."""

    model_config = pydantic.ConfigDict(frozen=True)

    question: str
    position: int = 0
    value: Any = None
    declined: str | None = None  # the reason not to answer


class CallProgress(pydantic.BaseModel):
    """What was decided about a call that waits. It is saved with the run, so nobody is asked twice."""

    model_config = pydantic.ConfigDict(frozen=True)

    approved: dict[str, Any] | None = None  # the arguments that a person said yes to
    pin: str | None = None  # `pin_of` the tool that they said yes to
    is_edited: bool = False  # whether that person changed them
    changes: tuple[dict[str, Any], ...] = ()  # arguments of a hook's that a person said yes to
    replies: tuple[QuestionReply, ...] = ()
    server_state: str | None = None  # the `request_state` of an MCP server that asked
    server_replies: dict[str, QuestionReply] | None = None  # by the server's names for its questions


NO_PROGRESS = CallProgress()


class CallStop(BaseException):
    """Ends a call that waits.

    Args:
        needs: what it waits for.
        progress: what was decided about it so far, as far as that still holds.
    """

    def __init__(self, needs: Sequence[Need], progress: CallProgress = NO_PROGRESS) -> None:
        super().__init__("the call waits")
        self.needs = tuple(needs)
        self.progress = progress


def stop_in(error: BaseException) -> CallStop | None:
    """Return the stop that an error is, or that a task group has put into a group of errors."""
    if isinstance(error, CallStop):
        return error
    inner_errors: Sequence[BaseException] = getattr(error, "exceptions", ())
    stops = [stop for inner in inner_errors if (stop := stop_in(inner)) is not None]
    if not stops:
        return None
    needs = [need for stop in stops for need in stop.needs]
    return CallStop(needs, stops[0].progress)


class LaterCallStop(CallStop):
    """Stands for a call that did not begin, because an earlier call of a turn in sequence waits."""

    def __init__(self) -> None:
        super().__init__(())


def question_key(question: str, schema: Json) -> str:
    """Return what an answer is kept under: the question's text and the schema of its answer."""
    return short_hash(json.dumps([question, schema], sort_keys=True))
