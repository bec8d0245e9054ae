"""Every exception sigadapt raises, and every code of a bad call.

The tree:

    SigadaptError
     +- InvalidToolDecl       a declaration no model could use; before any request
     +- InvalidSignature      tool fields that do not fit together; before any request
     +- InvalidHistory        calls without results, or results without calls; before any request
     +- InvalidOption         an adapter option, dialect or LM that cannot work; before any request
     +- UnreadableResponse    what came back is no model response
     +- ToolCallParseError    the answer holds bad calls; carries the whole `choice`
         +- MissingToolCalls  a required calls field got no call

Each carries `code`, `field` or `tool`, `path` (a JSON Pointer), `reason` and `fix`. A bad call that does not
raise is an `InvalidToolCall` with one of the `CallCode`s below (docs/rules.md).
"""

from typing import Any, Literal, Protocol, TypeAlias

from dspy.utils.exceptions import AdapterParseError

CallCode: TypeAlias = Literal[
    "invalid_json",
    "truncated",
    "not_an_object",
    "duplicate_key",
    "missing_name",
    "unknown_tool",
    "schema_mismatch",
    "missing_tool_calls",
]
"""What can be wrong with a call. `truncated` is undecodable text whose answer was cut off."""


class SigadaptError(Exception):
    """Base of every error sigadapt raises; `str(error)` says where, what and what to do.

    Args:
        reason: what is wrong, in one sentence.
        code: a stable word for programs to branch on.
        field: the signature field or option concerned.
        tool: the tool concerned.
        path: a JSON Pointer into that tool's schema or arguments.
        fix: what to do about it.

    Example:
        >>> error = SigadaptError("is given twice", code="duplicate_name", tool="search", fix="Rename one.")
        >>> print(error)
        tool 'search': is given twice. Rename one.
        >>> error.code
        'duplicate_name'
    """

    code: str = "sigadapt_error"

    def __init__(
        self,
        reason: str,
        *,
        code: str | None = None,
        field: str | None = None,
        tool: str | None = None,
        path: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.code = code or type(self).code
        self.field, self.tool, self.path = field, tool, path
        self.reason, self.fix = reason, fix
        Exception.__init__(self, _sentence(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception's own reduce would call the class with the finished sentence as its reason.
        return _revive, (type(self), self.args, self.__dict__)


def _revive(cls: type[SigadaptError], args: tuple[Any, ...], state: dict[str, Any]) -> SigadaptError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


def _sentence(error: SigadaptError) -> str:
    where = [f"{kind} {name!r}" for kind, name in (("field", error.field), ("tool", error.tool)) if name]
    if error.path is not None:
        where.append(f"at {error.path or '/'}")
    head = f"{', '.join(where)}: " if where else ""
    return f"{head}{error.reason.rstrip('.')}." + (f" {error.fix}" if error.fix else "")


class InvalidToolDecl(SigadaptError):
    """A tool declaration that no model could use: raised before any request leaves (rule 4).

    Example:
        >>> from sigadapt import ToolDecls
        >>> ToolDecls([{"name": "f", "parameters": {"type": "dict"}}])
        Traceback (most recent call last):
        sigadapt.errors.InvalidToolDecl: tool 'f', at /type: 'dict' is not a JSON Schema type. Use 'object'.
    """

    code = "invalid_tool_decl"


class InvalidSignature(SigadaptError):
    """Tool fields of a signature that do not fit together; names the field and the fix."""

    code = "invalid_signature"


class InvalidOption(SigadaptError):
    """An option, a dialect or a language model that cannot do what was asked; raised before any request."""

    code = "invalid_option"


class InvalidHistory(SigadaptError):
    """A conversation that no provider would take: a call without its result, or a result without its call."""

    code = "invalid_history"


class UnreadableResponse(SigadaptError):
    """What was read is not a model response: of no known wire format, or an error body."""

    code = "unreadable_response"


class AnyChoice(Protocol):
    """What an error needs of a `Choice`, which is defined on a floor above."""

    @property
    def text(self) -> str | None:
        """What the model said."""
        ...

    @property
    def tool_calls(self) -> Any:
        """The `ToolCalls` it made, good and bad."""
        ...


class ToolCallParseError(SigadaptError, AdapterParseError):
    """The answer holds calls that cannot be used; `.choice` has all of it, good calls and text included.

    A DSPy `AdapterParseError`, so that DSPy's own modules treat it as one. `code` is the first bad call's.
    """

    code = "tool_call_parse_error"

    def __init__(
        self,
        reason: str,
        *,
        choice: AnyChoice,
        code: str | None = None,
        field: str | None = None,
        tool: str | None = None,
        path: str | None = None,
        fix: str | None = None,
        adapter_name: str = "sigadapt",
        signature: Any = None,
    ) -> None:
        SigadaptError.__init__(self, reason, code=code, field=field, tool=tool, path=path, fix=fix)
        self.choice = choice
        # What AdapterParseError and DSPyError promise their handlers; their own constructors would
        # write a message about text fields, which is not what went wrong.
        self.message = str(self)
        self.adapter_name, self.signature = adapter_name, signature
        self.lm_response, self.parsed_result = choice.text or "", None
        self.model = self.provider = self.provider_code = self.status = None
        self.request_id = self.retry_after = None


class MissingToolCalls(ToolCallParseError):
    """A required calls field got no call (rule 7); `.field` names it, `.choice.text` is what came instead."""

    code = "missing_tool_calls"
