"""RefusedArguments: arguments that can be read, but that no function can be called with.

A loop that is not sigadapt's own runs each call as `tool(**call.args)`. Where a bad call is handed on to such
a loop, these are its arguments: `**` raises the error that says what is wrong, before any tool runs (one bad
call).
"""

from collections.abc import Iterator
from typing import Any, NoReturn

from sigadapt.errors import AnyInvalidCall, UnboundToolCall


class RefusedArguments(dict[str, Any]):
    """The arguments of a bad call. Reading a value, `items` and JSON work; `**arguments` raises.

    It is true even if it is empty, because loops write `**(call.args or {})`.


    Args:
        values: the decoded arguments; empty if they could not be decoded.
        call: the bad call, for the error.

    Raises:
        UnboundToolCall: when the arguments are unpacked or iterated.
    """

    def __init__(self, values: dict[str, Any], call: AnyInvalidCall) -> None:
        super().__init__(values.items())
        self.call = call

    def _refuse(self) -> NoReturn:
        raise UnboundToolCall(self.call)

    # Python unpacks a dict whose `__iter__` is its own through `keys`.
    def __iter__(self) -> Iterator[str]:
        self._refuse()

    def keys(self) -> NoReturn:
        """Raise the error that says what is wrong."""
        self._refuse()

    def __bool__(self) -> bool:
        return True
