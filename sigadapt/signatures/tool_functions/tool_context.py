"""ToolContext: what a tool knows of its call and of the run around it, and how it asks a person."""

from collections.abc import Iterable
from functools import partial
from types import UnionType
from typing import Annotated, Any, Generic, NoReturn, TypeVar, Union, cast, get_args, get_origin, overload

import pydantic
from typing_extensions import TypeVar as DefaultTypeVar

from sigadapt.dspy_boundary.current_run import open_place
from sigadapt.dspy_boundary.internals import settings
from sigadapt.errors import Declined, InvalidOption, InvalidToolDecl
from sigadapt.json_values import ARGUMENT_LEVELS, Json, compact, cut, fault_in, type_of
from sigadapt.signatures.sources.annotations import UNDERIVABLE, schema_of
from sigadapt.signatures.tool_functions.open_call import Need, OpenCall, QuestionReply, question_key

Deps = DefaultTypeVar("Deps", default=Any)
_T = TypeVar("_T")


class ToolContext(Generic[Deps]):
    """The call that runs, and the run around it. A tool's parameter of this type is no part of its schema.

    Annotate it `ToolContext`, or `ToolContext[Deps]` to type `deps`. sigadapt fills it, however the call is
    run. Make one yourself to test a tool as a function.

    Args:
        call: the call.
        deps: what the tool needs of the program, such as a database connection.
        state: what the run keeps, a dict of JSON values.

    Example:
        >>> import sigadapt
        >>> def add(book: str, context: sigadapt.ToolContext) -> str:
        ...     '''Put a book into the cart.'''
        ...     cart = context.state.setdefault("cart", [])
        ...     cart.append(book)
        ...     return f"{context.call.id}: {len(cart)} in the cart"
        >>> calls = sigadapt.ToolCalls([{"id": "call_7", "name": "add", "args": {"book": "Emma"}}])
        >>> with sigadapt.Run(state={"cart": ["Persuasion"]}) as run:
        ...     [result] = calls.run([add])
        >>> result.value, run.state
        ('call_7: 2 in the cart', {'cart': ['Persuasion', 'Emma']})
        >>> add("Emma", ToolContext(calls[0]))
        'call_7: 1 in the cart'
    """

    def __init__(self, call: Any = None, deps: Any = None, state: dict[str, Any] | None = None) -> None:
        self._open_call = OpenCall(call, refusal=partial(cannot_wait, "this context was made by hand"))
        self._run: Any = None
        self._deps = deps
        self._state: dict[str, Any] = {} if state is None else state

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> NoReturn:
        """Refuse `dspy.Tool`, which asks pydantic for the schema of each parameter.

        Raises:
            InvalidToolDecl: always.
        """
        raise InvalidToolDecl(
            "`dspy.Tool` takes the ToolContext for an argument of the model's",
            fix="Declare the function: `tools=[*sigadapt.ToolDecls([function])]`, or use `sigadapt.ReAct`.",
        )

    @classmethod
    def of_call(cls, open_call: OpenCall) -> "ToolContext[Any]":
        """Return the context of a call that runs here, in the innermost open run."""
        place = open_place()
        run: Any = None if place is None else place.run
        context = cls() if run is None else cls(deps=run.deps, state=run.state)
        vars(context).update(_open_call=open_call, _run=run)
        return context

    @property
    def call(self) -> Any:
        """The `ToolCall`: its id, name and arguments, as the model made it or a person edited it.

        In `dspy.ReAct`, whose calls have no ids, its id is empty.
        """
        return self._open_call.call

    @property
    def deps(self) -> Deps:
        """The `deps` of the run around; None without one."""
        return self._deps

    @property
    def state(self) -> dict[str, Any]:
        """The `state` of the run around, which all of its tools share; an empty dict without a run."""
        return self._state

    @property
    def run(self) -> Any:
        """The innermost `sigadapt.Run` around the call; None without one."""
        return self._run

    @property
    def decision(self) -> Any:
        """What a person decided about the call: True, or the ToolCall as edited; None if nobody was asked."""
        return self._open_call.decision

    @overload
    def ask(self, question: str, type: type[_T], payload: Any = None) -> _T: ...

    @overload
    def ask(self, question: str, type: Any = ..., payload: Any = None) -> Any: ...

    def ask(self, question: str, type: Any = str, payload: Any = None) -> Any:  # noqa: A002  (a type is what it is)
        """Ask a person, and return the answer. Ask before the tool acts: it runs again for the answer.

        The run stops here with `sigadapt.InputNeeded`. When it is resumed with an answer, the tool is called
        again from its beginning, and this returns the answer. The answer counts for the same question of the
        same call: text, type and place in order.

        Args:
            question: what the person reads.
            type: the type of the answer: any that has a JSON Schema.
            payload: a JSON value for the program that shows the question.

        Returns:
            The answer as that type.

        Raises:
            Declined: if the person declined to answer. If the tool does not catch it, its call fails with
                the reason.
            InvalidToolDecl: `nobody_to_ask`, where no run could wait: in `dspy.ReAct`, in a program inside
                of a tool, and in a context that was made by hand.
            InvalidOption: for a type without a JSON Schema, or a payload that is no JSON value.
        """
        text: Any = question
        if not isinstance(text, str) or not text.strip():
            raise InvalidOption(f"expected a question, got {type_of(question)}", field="question")
        adapter, schema = _answer_type(type)
        fault = fault_in(payload, levels=ARGUMENT_LEVELS)
        if fault is not None:
            raise InvalidOption(f"it is no JSON value: {fault.reason}", field="payload", path=fault.path)
        key = question_key(question, schema)
        position = self._open_call.next_position()
        need = Need("answer", question, schema, payload, question=key, position=position)
        reply = self._open_call.reply_to(key, position)
        if reply is None:
            self._open_call.wait([need])
        if reply.declined is not None:
            raise Declined(reply.declined)
        try:
            return adapter.validate_json(compact(reply.value))
        except pydantic.ValidationError as error:
            problems = "; ".join(detail["msg"] for detail in error.errors(include_url=False))
            self._open_call.drop_replies(position)
            hint = f"{question}\n\nThe last answer does not fit: {cut(problems)}"
            self._open_call.wait([need._replace(hint=hint)])

    def ask_server(self, needs: Iterable[Need], state: str | None) -> dict[str, QuestionReply]:
        """Ask what an MCP server asks, all at once, and return the answers by the server's names."""
        call = self._open_call
        call.progress = call.progress.model_copy(update={"server_state": state, "server_replies": None})
        call.wait([*needs])

    @property
    def server_round(self) -> tuple[str | None, dict[str, QuestionReply]] | None:
        """What an MCP server is sent to go on: its state and the answers; None if it did not ask yet."""
        progress = self._open_call.progress
        if progress.server_replies is None:
            return None
        return progress.server_state, progress.server_replies

    def progress(self, message: str, fraction: float | None = None) -> None:
        """Say how far the tool has come: an event `Progress` of `sigadapt.stream`; elsewhere, nothing.

        Args:
            message: what happens now.
            fraction: how much is done, from 0 to 1; None if that is unknown.
        """
        emit_progress = getattr(settings.send_stream, "emit_progress", None)
        if emit_progress is not None:
            emit_progress(self.call.id, message, fraction)


def _answer_type(kind: Any) -> "tuple[pydantic.TypeAdapter[Any], Json]":
    """Return what reads an answer, and its schema."""
    try:
        return pydantic.TypeAdapter(kind), schema_of(kind, "validation")
    except UNDERIVABLE as error:
        reason = f"an answer cannot be of {kind!r}: {cut(str(error))}"
        raise InvalidOption(reason, field="type", fix="Give a type that has a JSON Schema.") from error


def cannot_wait(reason: str, tool: str | None = None) -> InvalidToolDecl:
    """Make the error of a tool that asks, or that has no result yet, where no run can wait for it."""
    return InvalidToolDecl(
        f"it waits for a person or for a result from elsewhere, which nothing can give here: {reason}",
        code="nobody_to_ask",
        tool=tool,
        fix="Run it in `sigadapt.ReAct`, in `dspy.ReActV2` under sigadapt's adapter, or by `calls.run`.",
    )


def is_context(annotation: Any) -> bool:
    """Return whether a parameter with this annotation is a tool's context, perhaps an optional one."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return is_context(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return any(map(is_context, get_args(annotation)))
    kind = cast("object", annotation if origin is None else origin)
    return isinstance(kind, type) and issubclass(kind, ToolContext)
