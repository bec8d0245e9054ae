"""Run one library's programs in a process of its own: commands as lines of JSON in, facts out.

python -m benchmarks.peers.worker sigadapt_runs
"""

import asyncio
import importlib
import json
import logging
import os
import sys
import time
import warnings
from dataclasses import asdict
from functools import cache
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")

from benchmarks.peers.library import Cannot, Library, Outcome, Setup
from benchmarks.peers.shop import Shop

CANCEL_AFTER = 0.15


def words(error: BaseException | None, depth: int = 0) -> str:
    """Return an error as a traceback shows it, with its causes."""
    if error is None or depth > 5:
        return ""
    causes = [*getattr(error, "exceptions", ()), error.__cause__, error.__context__]
    text = f"{type(error).__name__}: {error}"
    return " | ".join([text, *(words(cause, depth + 1) for cause in causes if cause is not None)])


async def cancelled(library: Library, arguments: dict[str, Any], name: str) -> Outcome:
    """Cancel the task of a run while a tool runs."""
    task = asyncio.ensure_future(library.acall(arguments))
    while not task.done() and not any(entry["name"] == name for entry in library.shop.ran):  # noqa: ASYNC110  (a tool's thread says so)
        await asyncio.sleep(0.01)
    await asyncio.sleep(CANCEL_AFTER)
    task.cancel()
    return await task


async def ticking(library: Library, arguments: dict[str, Any], ticks: list[float]) -> Outcome:
    """Run it in an event loop that also does something else."""

    async def tick() -> None:
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.02)

    other = asyncio.ensure_future(tick())
    try:
        return await library.acall(arguments)
    finally:
        other.cancel()


def take(library: Library, step: list[Any], ticks: list[float]) -> Outcome:
    """Take one step of a case."""
    kind, how, value = step
    if kind == "reload":
        library.reload()
        return Outcome()
    arguments = library.arguments(kind, value)
    if how == "sync":
        return library.call(arguments)
    if how == "ticking":
        running = ticking(library, arguments, ticks)
    elif how == "streamed":
        running = library.stream(arguments)
    elif how.startswith("cancel "):
        running = cancelled(library, arguments, how.removeprefix("cancel "))
    else:
        running = library.acall(arguments)
    return loop().run_until_complete(running)


@cache
def loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of every async step: a client belongs to the loop that it began on."""
    return asyncio.new_event_loop()


def facts(library: Library, step: list[Any]) -> dict[str, Any]:
    """Take a step and return what came of it."""
    ticks: list[float] = []
    found: dict[str, Any] = {"error": "", "cannot": ""}
    outcome = Outcome()
    try:
        outcome = take(library, step, ticks)
    except Cannot as reason:
        found["cannot"] = str(reason)
    except BaseException as error:  # noqa: BLE001  (it is the outcome)
        found["error"] = words(error)
        library.failed(error)
    return {**asdict(outcome), **found, "ran": library.shop.ran, "ticks": ticks}


def main(module: str) -> None:
    """Serve until the input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no reply
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    program = importlib.import_module(f"benchmarks.peers.{module}").Runs
    library: Any = None
    for line in sys.stdin:
        command = json.loads(line)
        if "open" in command:
            reply: dict[str, Any] = {"cannot": ""}
            try:
                library = program(Setup(**command["open"]), Shop())
            except Exception as reason:  # noqa: BLE001  (a library may refuse what the case asks)
                reply = {"cannot": str(reason)}
        else:
            reply = facts(library, command["step"])
        print(json.dumps(reply, default=str), file=replies, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
