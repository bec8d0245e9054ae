"""Run one job in this process and print what came of it: `python -m benchmarks.peers.jobs.run MODULE JOB`."""

import asyncio
import importlib
import inspect
import json
import logging
import sys
import warnings
from typing import Any

from benchmarks.peers.jobs.shared import began


async def pieces_of(job: Any) -> list[str]:
    """Return what an async generator yields."""
    return [piece async for piece in job]


def outcome(job: Any) -> Any:
    """Run a job, of whichever kind of function it is."""
    found = job()
    if inspect.isasyncgen(found):
        return asyncio.run(pieces_of(found))
    if inspect.isgenerator(found):
        return list(found)
    if inspect.iscoroutine(found):
        return asyncio.run(found)
    return found


def main(module: str, name: str) -> None:
    """Run it."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    job = getattr(importlib.import_module(f"benchmarks.peers.jobs.{module}"), name)
    facts: dict[str, Any] = {"result": None, "error": ""}
    try:
        facts["result"] = outcome(job)
    except Exception as error:  # noqa: BLE001  (it is the outcome)
        facts["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps({**facts, "began": began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
