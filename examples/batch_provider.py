"""The provider on this machine that the examples of batches ask by default, and its bad days."""

import re

from sigadapt.testing import Answer, Call, Failure, Received

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
