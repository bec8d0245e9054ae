"""RefusedToolCall: a bad call as a loop gets it that knows good calls alone, such as `dspy.ReActV2`."""

from collections.abc import Iterator
from typing import Any, NoReturn

import pydantic
from typing_extensions import Self

from sigadapt.errors import CallCode, UnboundToolCall
from sigadapt.schemas.arguments import Flaw, parse_arguments
from sigadapt.signatures.calls.invalid_call import InvalidToolCall
from sigadapt.signatures.calls.tool_call import ToolCall, refused
from sigadapt.signatures.calls.turn import Turn
from sigadapt.signatures.tool_decls import Sources


class RefusedArguments(dict[str, Any]):
    """The arguments of a bad call. Reading a value, `items` and JSON work; `**arguments` raises."""

    def __init__(self, values: dict[str, Any], call: InvalidToolCall) -> None:
        super().__init__(values.items())
        self.call = call

    # Python unpacks a dict whose `__iter__` is its own through `keys`.
    def __iter__(self) -> Iterator[str]:
        raise UnboundToolCall(self.call)

    def keys(self) -> NoReturn:
        """Raise the error that says what is wrong."""
        raise UnboundToolCall(self.call)

    def __bool__(self) -> bool:
        return True  # so that `call.args or {}` does not replace it with an empty dict


class RefusedToolCall(ToolCall):
    """A bad call for a loop that is not sigadapt's own: it fails with its error when the loop runs it."""

    code: CallCode  # as of an InvalidToolCall
    message: str
    path: str | None = None

    def bind(self, decls: Sources) -> NoReturn:
        """Raise the error that says what is wrong."""
        raise UnboundToolCall(self.as_invalid())

    def as_invalid(self) -> InvalidToolCall:
        """Return the call as the InvalidToolCall that it is."""
        return refused(self, Flaw(self.code, self.message, self.path))

    @classmethod
    def of(cls, call: InvalidToolCall, turn: Turn) -> "RefusedToolCall":
        """Return a bad call, with the turn it was made in, for such a loop."""
        args = parse_arguments(call.arguments)
        if not isinstance(args, dict):
            args = {}
        fields = {**dict(call), "name": call.name or "unnamed", "turn": turn, "args": args}
        return cls.model_validate(fields)

    def saved_beside(self, turn: Turn) -> dict[str, Any]:
        """Return the call as a dict, with what is wrong with it."""
        fields = {**super().saved_beside(turn), "args": dict(self.args.items())}
        for name in ("code", "message", "path"):
            value = getattr(self, name)
            if value is not None:
                fields[name] = value
        return fields

    @pydantic.model_validator(mode="after")
    def _refuse_args(self) -> Self:
        vars(self)["args"] = RefusedArguments(self.args, self.as_invalid())
        return self

    def __str__(self) -> str:
        return str(self.as_invalid())

    __repr__ = __str__
