"""The tools of every run, which note what ran; no library is imported here."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

PAUSE = 0.4


class Shop:
    """A bookshop with tools that work, fail and take time."""

    def __init__(self) -> None:
        self.ran: list[dict[str, Any]] = []

    def begin(self, name: str, **args: Any) -> dict[str, Any]:
        """Note a call that begins to run."""
        entry = {"name": name, "args": args, "began": time.monotonic(), "ended": None}
        self.ran.append(entry)
        return entry

    def functions(self, names: list[str]) -> list[Callable[..., Any]]:
        """Return the tools of these names, as plain functions."""

        def order(title: str, copies: int) -> str:
            """Order copies of a book."""
            entry = self.begin("order", title=title, copies=copies)
            entry["ended"] = time.monotonic()
            return f"Ordered {copies} of {title}."

        def stock(title: str) -> str:
            """Count the copies of a book."""
            entry = self.begin("stock", title=title)
            if title == "Nowhere":
                raise LookupError("no such title: Nowhere")
            entry["ended"] = time.monotonic()
            return f"7 of {title}."

        def slow(title: str) -> str:
            """Ask the slow shelf."""
            entry = self.begin("slow", title=title)
            time.sleep(PAUSE)
            entry["ended"] = time.monotonic()
            return f"slow {title}"

        async def later(title: str) -> str:
            """Ask the far shelf."""
            entry = self.begin("later", title=title)
            await asyncio.sleep(PAUSE)
            entry["ended"] = time.monotonic()
            return f"later {title}"

        def ends(title: str) -> str:
            """Take the next copy of an empty shelf."""
            self.begin("ends", title=title)
            empty: list[str] = []
            return next(iter(empty))

        every = {function.__name__: function for function in (order, stock, slow, later, ends)}
        return [every[name] for name in names]
