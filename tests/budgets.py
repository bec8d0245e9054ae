"""How much a test tries: a third, or all if SIGADAPT_WHOLE is set, as `tasks.py test --coverage` does."""

import os

WHOLE = bool(os.environ.get("SIGADAPT_WHOLE"))


def share(count: int) -> int:
    """Return how many of so many cases this run tries."""
    return count if WHOLE else max(1, count // 3)
