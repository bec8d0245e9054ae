"""The command of the examples of batches, and the provider on this machine that they ask by default."""

import argparse
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from batch_rows import done

from sigadapt.testing import Answer, Call, Failure, LoopbackProvider, Received


def main(run: Callable[..., None]) -> None:
    """The command of both examples."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="where the Parquet files are written")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--model", help="ask this model; without it, a provider on this machine")
    parser.add_argument("--retry-failed", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with nullcontext() if given.model else LoopbackProvider(answer, keep=0) as provider:
        lm = {"model": given.model} if provider is None else provider.lm_options("openai")
        ids = done(given.folder, retry_failed=given.retry_failed)
        run(given.folder, given.rows, lm | {"num_retries": 3}, ids)


_asked: set[int] = set()


def answer(received: Received) -> Answer | Failure:
    """Call `get_weather`; for some rows fail once, fail always, or cut the call off."""
    number = int(re.findall(r"city (\d+)", str(received.body))[-1])
    is_new = number not in _asked
    _asked.add(number)
    if number % 50 == 7 and is_new:
        return Failure(503, "try again")
    if number % 50 == 8:
        return Failure(400, "no such city")
    return Answer(
        calls=[Call("get_weather", '{"city": "' if number % 10 == 3 else {"city": f"city {number}"})]
    )
