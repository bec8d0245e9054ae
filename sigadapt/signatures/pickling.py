"""Pickle functions and objects by value, as DSPy saves programs: lambdas and what was made in functions, too.

Plain pickle refuses these, and cannot be told otherwise by an object that holds them. So they are pickled
with cloudpickle first, whatever pickles the object.
"""

import pickle
from typing import Any


def by_value(value: object) -> bytes:
    """Pickle a value. Raise whatever its own classes raise, as a lock or a live session does."""
    import cloudpickle  # noqa: PLC0415  (only who pickles needs it)

    return cloudpickle.dumps(value)


def loaded(data: bytes) -> Any:
    """Return what `by_value` pickled."""
    return pickle.loads(data)  # noqa: S301  (these bytes were inside of a pickle)
