"""What the jobs of all libraries share: the questions, the tools, and who decides."""

import asyncio
import time
from typing import Any

QUESTION = "Order two of Emma."
FOLLOW_UPS = ("How long does it take?", "How much is it?")

began: list[tuple[str, float]] = []
"""Each call that began to run, and when."""


def order(title: str, copies: int) -> str:
    """Order copies of a book."""
    began.append(("order", time.monotonic()))
    return f"Ordered {copies} of {title}."


def stock(title: str) -> str:
    """Count the copies of a book."""
    began.append(("stock", time.monotonic()))
    time.sleep(0.3)
    return f"7 of {title}."


async def fetch(title: str) -> str:
    """Fetch a book from a far shelf."""
    began.append(("fetch", time.monotonic()))
    await asyncio.sleep(5)
    return f"Fetched {title}."


def decide(name: str, args: Any) -> bool:
    """Ask a person whether a call may run."""
    began.append((f"asked about {name} {args}", time.monotonic()))
    return True
