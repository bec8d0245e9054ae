"""All exceptions that sigadapt raises, and all codes of an invalid call.

The tree:

    SigadaptError
     +- InvalidToolDecl       a tool declaration that no model could use; before any request
     +- InvalidSignature      tool fields that do not fit together; before any request
     +- InvalidHistory        calls without results, or results without calls; before any request
     +- InvalidOption         an adapter option, dialect or LM that cannot work; before any request
     +- UnreadableResponse    the value to read is not a model response
     +- UnusableAnswer        a turn that ended without an answer; says why, carries the `choice`
     +- InputNeeded           a turn that waits for a person or for a result; carries all to go on
     +- Declined              a person declined to answer the question of a tool
     +- LimitExceeded         a request or a turn that would pass a limit of its run; carries the `run`
     +- UnboundToolCall       a call that `ToolCall.bind` found unusable; carries it as an invalid `call`
     +- ToolCallParseError    the answer holds invalid calls; carries the whole `choice`
         +- MissingToolCalls  a required calls field got no call

Each carries `code`, `field`, `tool`, `path` (a JSON Pointer), `reason` and `fix`; those that do not apply are
None. An invalid call that raises nothing is an `InvalidToolCall` with one of the `CallCode`s below (one bad
call). What errors carry is defined on floors above, and imported here for its types alone.
"""

import pickle
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from uuid import uuid4

import dspy
from dspy.utils.exceptions import AdapterParseError

if TYPE_CHECKING:  # a door: tests/test_repository.py
    from sigadapt.adapters.response.choice import Choice
    from sigadapt.runs.run import Run
    from sigadapt.signatures.calls import ToolCalls
    from sigadapt.signatures.tool_results.results import ToolResults
    from sigadapt.signatures.tool_results.tool_result import ToolResult

CallCode: TypeAlias = Literal[
    "invalid_json",
    "truncated",
    "not_an_object",
    "duplicate_key",
    "missing_name",
    "unknown_tool",
    "schema_mismatch",
    "missing_tool_calls",
    "malformed_call",
    "unread_call",
]
"""What can be wrong with a call.

`truncated`: the answer was cut off inside the arguments, or its turn was refused or failed. `malformed_call`:
the provider reports a call that it could not read, whose text is the provider's message, or it ends the turn
for a call that did not come; or no call can be read in markup of a known format. `unread_call`: markup of no
known format names a declared tool as what is called.
"""

AnswerCode: TypeAlias = Literal["refused", "cut_off", "filtered", "failed", "paused", "empty"]
"""Why a turn ended without an answer."""


# What Python does not call printable and languages need: spaces of any width, and the two joiners of Persian,
# of Indic scripts and of emoji.
_PRINTED = frozenset("\u00a0\u1680\u202f\u205f\u3000\u200c\u200d") | set(map(chr, range(0x2000, 0x200B)))


def printable(text: str, *, also: str = "") -> str:
    """Return a text with escapes for what steers a terminal, as control and bidirectional characters do."""
    if text.isprintable():
        return text
    exceptions = _PRINTED.union(also)
    return "".join(
        ch if ch.isprintable() or ch in exceptions else ch.encode("unicode_escape").decode() for ch in text
    )


class SigadaptError(Exception):
    """Base class of all sigadapt errors. `str(error)` says where, what is wrong, and what to do.

    Args:
        reason: what is wrong, in one sentence.
        code: a stable word for programs to branch on; each class has a default.
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
    run: "Run | None" = None
    """The `sigadapt.Run` that the error left, if there was one."""

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
        self.field = field
        self.tool = tool
        self.path = path
        self.reason = reason
        self.fix = fix
        where = [f"{kind} {name!r}" for kind, name in (("field", field), ("tool", tool)) if name]
        where += [f"at {path or '/'}"] if path is not None else []
        head = f"{', '.join(where)}: " if where else ""
        end = "" if reason.endswith(("?", "!", "...")) else "."
        sentence = f"{head}{reason.removesuffix(end)}{end}" + (f" {fix}" if fix else "")
        Exception.__init__(self, printable(sentence, also="\n"))

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception's own reduce would pass the finished sentence as `reason`.
        return Exception.__new__, (type(self), *self.args), self.__dict__


class UndeclaredTypeWarning(UserWarning):
    """A tool has a parameter without an annotation, so a model may send any value there."""


class InvalidToolDecl(SigadaptError):
    """A tool declaration that no model could use. Raised before any request is sent (fail before the call).

    Example:
        >>> from sigadapt import ToolDecls
        >>> ToolDecls([{"name": "f", "parameters": {"type": "dict"}}])
        Traceback (most recent call last):
        sigadapt.errors.InvalidToolDecl: tool 'f', at /type: 'dict' is not a JSON Schema type. Use 'object'.
    """

    code = "invalid_tool_decl"


class InvalidSignature(SigadaptError):
    """Tool fields of a signature that do not fit together. Raised before any request is sent.

    Example:
        >>> print(InvalidSignature("is a second calls field", field="more_calls", fix="Remove one."))
        field 'more_calls': is a second calls field. Remove one.
    """

    code = "invalid_signature"


class InvalidOption(SigadaptError):
    """An option, a dialect or a language model that cannot do what was asked. Raised before any request.

    Example:
        >>> import sigadapt
        >>> sigadapt.ChatAdapter(on_invalid="ignore")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        sigadapt.errors.InvalidOption: ...
    """

    code = "invalid_option"


class InvalidHistory(SigadaptError):
    """A conversation that no provider would accept, such as a call without its result.

    Example:
        >>> from sigadapt import ToolCalls, ToolResults
        >>> ToolResults.of(ToolCalls([{"name": "now", "args": {}}]), {})
        Traceback (most recent call last):
        sigadapt.errors.InvalidHistory: tool 'now': call 'call_1' has no value. Give one, or use \
ToolResult.unanswered(call). An adapter does so with orphans='heal'.
    """

    code = "invalid_history"


class UnreadableResponse(SigadaptError):
    """The value to read is not a model response: its format is unknown, or it is an error body.

    Example:
        >>> from sigadapt import choice_from_response
        >>> choice_from_response({})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        sigadapt.errors.UnreadableResponse: ...
    """

    code = "unreadable_response"


class UnusableAnswer(SigadaptError):
    """A turn that ended without an answer: refused, cut off, filtered, failed, paused or empty.

    It is not an `AdapterParseError`, so DSPy does not pay for a second request: the same question would most
    likely end in the same way.

    Args:
        reason: what happened, with the provider's own words.
        code: one of `AnswerCode`.
        choice: the `Choice`: all that the turn did bring.
        field: the calls field of the signature.
        fix: what to do about it.

    Example:
        >>> from sigadapt import choice_from_response
        >>> message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
        >>> choice = choice_from_response({"choices": [{"message": message, "finish_reason": "stop"}]})
        >>> error = UnusableAnswer("the model refused", code="refused", choice=choice)
        >>> error.code, error.choice.text
        ('refused', 'I cannot help with that.')
    """

    code = "unusable_answer"

    def __init__(
        self,
        reason: str,
        *,
        code: AnswerCode,
        choice: Any,
        field: str | None = None,
        fix: str | None = None,
    ) -> None:
        super().__init__(reason, code=code, field=field, fix=fix)
        self.choice: Choice = choice


class EmptyAnswer(UnusableAnswer, AdapterParseError):
    """An agent's turn without a word or a call. DSPy's AdapterParseError too, so the agent continues.

    Example:
        >>> error = EmptyAnswer("the answer is empty", choice=None)
        >>> error.code, isinstance(error, UnusableAnswer), isinstance(error, AdapterParseError)
        ('empty', True, True)
    """

    def __init__(self, reason: str, *, choice: Any, field: str | None = None) -> None:
        super().__init__(reason, code="empty", choice=choice, field=field)
        _as_of_dspy(self, "")


def _as_of_dspy(error: Any, response: str, adapter_name: str = "sigadapt", signature: Any = None) -> None:
    """Set what DSPy reads of an AdapterParseError, whose constructor would write about text fields."""
    error.message = str(error)
    error.lm_response = response
    error.adapter_name = adapter_name
    error.signature = signature
    error.parsed_result = error.model = error.provider = error.provider_code = None
    error.status = error.request_id = error.retry_after = None


class InputNeeded(SigadaptError):
    """A turn that waits: for a person's yes, for an answer to a tool's question, or for a result.

    A turn waits for approvals before any of its calls runs (`confirm="raise"`). With a question, or a result
    that comes from elsewhere, the calls beside it have run: `.results` has their results, and they do not run
    again. It is no ValueError, so `dspy.ReActV2` ends at once. It can be pickled, and saved as JSON.

    Args:
        calls: the ToolCalls of the turn, those that wait for nothing included.
        requests: what it waits for, as ToolCalls. Each request has an `.id`, a `.kind` (`approval`, `answer`
            or `result`), the `.call`, a `.hint` for the person, and for an answer its `.schema` and a
            `.payload`, for a result `.pending`.
        history: a copy of the `dspy.History` before the turn.
        event: what the event of the turn holds beside its calls: the inputs of the request, and the outputs.
        field: the calls field of the signature.
        results_field: the signature's field of ToolResults; None if it has none.

    Example:
        >>> import dspy
        >>> from sigadapt import ToolCalls, ToolContext
        >>> def send(text: str, context: ToolContext) -> str:
        ...     to = context.ask("To whom?")
        ...     return f"Sent to {to}."
        >>> calls = ToolCalls([{"id": "call_1", "name": "send", "args": {"text": "Hello"}}])
        >>> try:
        ...     calls.run([send])
        ... except InputNeeded as error:
        ...     text = error.model_dump_json()
        >>> loaded = InputNeeded.model_validate_json(text)
        >>> print(loaded)
        1 of 1 calls waits: send(text='Hello'). Decide by error.requests, then error.resume(tools, decisions).
        >>> [request] = loaded.requests
        >>> request.kind, request.hint, request.schema
        ('answer', 'To whom?', {'type': 'string'})
        >>> history = loaded.resume([send], {request.id: "Ada"})
        >>> history.messages[0]["calls"].tool_call_results.tool_call_results[0].value
        'Sent to Ada.'
    """

    code = "input_needed"
    requests: "ToolCalls"
    trace: str = ""  # of the class, for errors that were pickled before there was one
    """The span in which the run waited, as a W3C `traceparent`; empty if nobody traced it."""

    def __init__(  # noqa: PLR0917  (the library alone makes it)
        self,
        calls: Any,
        requests: Any,
        history: dspy.History,
        event: Mapping[str, Any] | None = None,
        field: str = "calls",
        results_field: str | None = None,
    ) -> None:
        waiting_calls = {request.call.id: str(request.call) for request in requests}
        waits = "waits" if len(waiting_calls) == 1 else "wait"
        names = ", ".join(waiting_calls.values())
        super().__init__(
            f"{len(waiting_calls)} of {len(calls.in_order())} calls {waits}: {names}",
            fix="Decide by error.requests, then error.resume(tools, decisions).",
        )
        self.id: str = f"run_{uuid4().hex}"
        """A random id: the key under which a program keeps the run."""
        self.calls: ToolCalls = calls
        self.requests = requests
        self.history = history
        self.event = dict(event or {})
        self.field = field
        self.results_field = results_field
        self.results: list[ToolResult] = []
        """The ToolResults that the turn has brought already."""
        self.progress: dict[str, Any] = {}
        """What was decided about calls that still wait, by their ids, so that no person is asked twice."""
        self.state: dict[str, Any] = {}
        """The state of the run, as JSON values."""
        self.one_by_one = False
        """Whether the calls of the turn run one by one, because the program said so."""

    def resume(
        self,
        tools: object,
        decisions: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        *,
        partial: bool = False,
    ) -> dspy.History:
        """Run the turn's calls as was decided, and return the history with the turn and its results.

        Go on with `agent(history=...)`. This error and its history stay as they are. If `resume` is
        interrupted, the error gets the results of the calls that ended, and a second `resume` runs only the
        others. The library cannot know whether a decision has been used: remove a request that was decided
        before you resume, as `sigadapt.WaitingRuns.take` does.

        Args:
            tools: the tools of the program, with their functions, in any form that ToolDecls accepts.
            decisions: by `request.id`. For an approval, as for `ToolCalls.run`. For an answer, a JSON value
                that fits `request.schema`, or `sigadapt.Declined(reason)`. For a result, its value, a
                ToolResult of the call, or `Declined`.
            timeout: as for `ToolCalls.run`.
            partial: whether requests may stay undecided. What is decided runs.

        The run's saved state is put into the run that is open here; without one, a run is opened for it.

        Raises:
            InputNeeded: with the requests that are left or new, and the same `id`.
            InvalidHistory: as `ToolCalls.run`: `undecided`, `unknown_decision`. Nothing has run then.
            InvalidOption: `invalid_decision`, for a decision of another kind, such as an answer that does not
                fit. Nothing has run then. Others as `ToolCalls.run`.
        """
        from sigadapt.runs import waiting  # a door: tests/test_repository.py

        return waiting.resume(self, tools, decisions, timeout, partial=partial)

    async def aresume(
        self,
        tools: object,
        decisions: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        *,
        partial: bool = False,
    ) -> dspy.History:
        """Do the same as `resume`, with the calls run as `ToolCalls.arun` runs them."""
        from sigadapt.runs import waiting  # a door: tests/test_repository.py

        return await waiting.aresume(self, tools, decisions, timeout, partial=partial)

    def results_of(
        self,
        tools: object,
        decisions: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        *,
        partial: bool = False,
    ) -> "ToolResults":
        """Do the same as `resume`, and return the turn's `ToolResults`, for a loop written by hand."""
        from sigadapt.runs import waiting  # a door: tests/test_repository.py

        return waiting.results_of(self, tools, decisions, timeout, partial=partial)

    async def aresults_of(
        self,
        tools: object,
        decisions: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        *,
        partial: bool = False,
    ) -> "ToolResults":
        """Do the same as `results_of`, with the calls run as `ToolCalls.arun` runs them."""
        from sigadapt.runs import waiting  # a door: tests/test_repository.py

        return await waiting.aresults_of(self, tools, decisions, timeout, partial=partial)

    def model_dump_json(self) -> str:
        """Return all of it as JSON text, for another process or another day.

        Raises:
            InvalidHistory: `unreadable_history`, for an input or a state that JSON cannot hold.
        """
        from sigadapt.runs import waiting  # a door: tests/test_repository.py

        return waiting.to_json(self)

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> "InputNeeded":
        """Return the error that `model_dump_json` wrote.

        Keep the text on the server: sign what a client could change in it (`sigadapt.trust.sign`).

        Raises:
            InvalidHistory: `unreadable_history`, for a text that is something else.
        """
        from sigadapt.runs import waiting  # a door: tests/test_repository.py

        return waiting.from_json(cls, text)


class Declined(SigadaptError):
    """A person declined to answer a question of a tool. As a decision, it says so to `resume`.

    `ToolContext.ask` raises it. If the tool does not catch it, its call fails with the reason.

    Args:
        reason: what the model reads.

    Example:
        >>> print(Declined("It is Friday."))
        It is Friday.
    """

    code = "declined"

    def __init__(self, reason: str = "The person declined to answer.") -> None:
        super().__init__(reason)


class LimitExceeded(SigadaptError):
    """A run has reached one of its limits (`sigadapt.Limits`), and what comes next was not begun.

    It is no ValueError, so `dspy.ReActV2` ends at once. `error.run.history` has what the run did so far.

    Args:
        name: the limit, which is the error's `code`, such as `requests`.
        used: what the run has used of it.
        limit: the most that it may use.
        more: what comes next would use, if that alone passes the limit.
        last_failure: what the last call that failed says, for the limit `failures`.

    Example:
        >>> error = LimitExceeded("requests", 2, 2)
        >>> print(error)
        the run has used 2 of 2 requests. Raise the limit, or go on later with \
agent(history=error.run.history).
    """

    def __init__(
        self, name: str, used: float, limit: float, more: int = 0, last_failure: str | None = None
    ) -> None:
        detail = f", and the next turn has {more}" if more else ""
        if last_failure is not None:
            detail = f", the last one: {last_failure}"
        super().__init__(
            f"the run has used {used:g} of {limit:g} {name.replace('_', ' ')}{detail}",
            code=name,
            fix="Raise the limit, or go on later with agent(history=error.run.history).",
        )
        self.used = used
        self.limit = limit


class UnboundToolCall(SigadaptError):
    """A call whose arguments cannot be converted to the types of its function.

    Args:
        call: the call as an `InvalidToolCall`. The error has its code, name, path and message.

    Example:
        >>> from sigadapt import ToolCall, ToolDecls
        >>> call = ToolCall(id="call_1", name="serach", args={})
        >>> try:
        ...     call.bind(ToolDecls([{"name": "search"}]))
        ... except UnboundToolCall as error:
        ...     error.code, error.call
        ('unknown_tool', <unknown_tool: serach({})>)
    """

    code = "unbound_tool_call"

    def __init__(self, call: Any) -> None:
        super().__init__(call.message, code=call.code, tool=call.name, path=call.path)
        self.call = call


class ToolCallParseError(SigadaptError, AdapterParseError):
    """The answer holds invalid calls (one bad call).

    It is also a DSPy `AdapterParseError`, so that DSPy's own modules handle it as one.

    Args:
        reason: what is wrong, in one sentence.
        choice: the `Choice`: the whole answer, valid calls and text included.
        code: the code of the first invalid call.
        field: the signature field concerned.
        tool: the tool concerned.
        path: a JSON Pointer into that tool's arguments.
        fix: what to do about it.
        adapter_name: the adapter's class name, for DSPy.
        signature: the signature of the request, for DSPy.

    Example:
        >>> from sigadapt import choice_from_response
        >>> body = {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}
        >>> error = ToolCallParseError("1 call is invalid", choice=choice_from_response(body))
        >>> error.code, error.choice.text, isinstance(error, AdapterParseError)
        ('tool_call_parse_error', 'Hello.', True)
    """

    code = "tool_call_parse_error"

    def __init__(
        self,
        reason: str,
        *,
        choice: Any,
        code: str | None = None,
        field: str | None = None,
        tool: str | None = None,
        path: str | None = None,
        fix: str | None = None,
        adapter_name: str = "sigadapt",
        signature: Any = None,
    ) -> None:
        SigadaptError.__init__(self, reason, code=code, field=field, tool=tool, path=path, fix=fix)
        self.choice: Choice = choice
        # What the model said. Optimizers show it.
        calls: list[Any] = [] if choice.tool_calls is None else choice.tool_calls.in_order()
        lines = [f"{call}: {call.message}" if hasattr(call, "message") else str(call) for call in calls]
        summary = "\n".join([*([choice.text] if choice.text else []), *lines])
        _as_of_dspy(self, summary, adapter_name, signature)

    def _repr_html_(self) -> str:
        return self.choice.rendered(self).html()

    def __rich__(self) -> Any:
        return self.choice.rendered(self).rich()

    def __reduce__(self) -> tuple[Any, ...]:
        # A signature made in a function or from a text is not found by name where the error is loaded. An
        # error has to leave its process all the same, and says what stayed behind.
        new, of, state = super().__reduce__()
        with suppress(pickle.PicklingError, AttributeError, TypeError):
            pickle.dumps(self.signature)
            return new, of, state
        name = getattr(self.signature, "__name__", type(self.signature).__name__)
        note = f"The signature {name} did not travel with this error."
        notes = [*state.get("__notes__", ()), note]
        return new, of, {**state, "signature": None, "__notes__": notes}


class MissingToolCalls(ToolCallParseError):
    """A required calls field got no call (required is required).

    `.field` is the name of the field, and `.choice.text` the text that the model wrote instead of a call.

    Example:
        >>> from sigadapt import choice_from_response
        >>> body = {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}
        >>> print(MissingToolCalls("has no call", choice=choice_from_response(body), field="calls"))
        field 'calls': has no call.
    """

    code = "missing_tool_calls"
