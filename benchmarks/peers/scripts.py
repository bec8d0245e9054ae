"""What the model answers in the scripted runs, request by request."""

import json
from collections.abc import Callable
from typing import Any

from sigadapt.testing import Answer, Call, Failure, Received, Reply

QUESTION = "Order two of Emma."
DONE = "Both copies of Emma are on their way."

Script = Callable[[int, int, Received], Reply]
"""From the step, the number of the request in it and the request, to the reply."""


def order(title: str = "Emma", copies: Any = 2) -> Call:
    """A call of `order`."""
    return Call("order", {"title": title, "copies": copies})


def stock(title: str = "Emma") -> Call:
    """A call of `stock`."""
    return Call("stock", {"title": title})


def calls(*made: Call, **more: Any) -> Answer:
    """A turn of calls."""
    return Answer(calls=list(made), **more)


def done(request: Received, text: str = DONE, finish: str | None = None, **more: Any) -> Reply:
    """The last answer: by `submit` where the request offers it, else as text."""
    if not offers_submit(request):
        return Answer(text=text, finish=finish, **more)
    arguments: Any = {"answer": text}
    if finish and request.wire in {"openai", "responses"}:
        arguments = json.dumps(arguments)[:-2]
    if finish and request.wire not in {"openai", "responses"}:
        return Answer(text=text, finish=finish, **more)
    return calls(Call("submit", arguments), finish=finish, **more)


def offers_submit(request: Received) -> bool:
    """Whether the program ends its run by calling `submit`."""
    return '"submit"' in json.dumps(request.body.get("tools"))


def rounds(*turns: Any, then: str = DONE) -> Script:
    """A script of the turns of the first step, then the last answer; later steps get the last answer."""

    def script(step: int, number: int, request: Received) -> Reply:
        if step == 0 and number < len(turns):
            turn = turns[number]
            return turn(request) if callable(turn) else turn
        return done(request, then)

    return script


def stays(*turns: Any) -> Script:
    """The same, where the last turn of the first step repeats."""

    def script(step: int, number: int, request: Received) -> Reply:
        if step:
            return done(request)
        turn = turns[min(number, len(turns) - 1)]
        return turn(request) if callable(turn) else turn

    return script


def failing_after_yes(step: int, number: int, request: Received) -> Reply:
    """A script in which the request after the decision fails."""
    if step == 0:
        return calls(order())
    return Failure(400) if step == 1 else done(request)


def failing_branch(step: int, number: int, request: Received) -> Reply:
    """A script in which the first branch fails."""
    if step == 0 and number == 0:
        return calls(order())
    return Failure(400) if step == 1 else done(request)


def body_without_text(finish: str, refusal: str | None = None) -> dict[str, Any]:
    """A body of OpenAI chat in which no text comes."""
    message = {"role": "assistant", "content": None}
    if refusal is not None:
        message["refusal"] = refusal
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    }
