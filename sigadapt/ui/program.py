"""The program of the chats: its inputs, its tools, and what a page sees of a run of it."""

import inspect
import types
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Union, get_args, get_origin

import dspy

from sigadapt.dspy_boundary.contract import ReActV2
from sigadapt.errors import InvalidOption, SigadaptError
from sigadapt.json_values import cut, is_iterable, is_mapping
from sigadapt.runs.events import CallReady, Event, Origin, ReasoningDelta, TextDelta
from sigadapt.signatures.calls import ToolCall
from sigadapt.signatures.confirmation import visible_args
from sigadapt.signatures.sources.runnable import forgotten_adapter
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import decls_of
from sigadapt.ui.page_requests import PageFile

HISTORY = "history"
_ADDED_TOOLS = ("submit", "finish")
_OWN_ANSWER = (dspy.Predict, dspy.ChainOfThought)
"""Programs that put out what their predictor does, as it is."""


class ChatProgram:
    """A program as chats run it.

    Args:
        module: the program.
        field: as for `Chats`, and so are tools, show and files.

    Raises:
        InvalidOption: for an input that it does not have; for a tool that waits, if the program could not go
            on when its result has come.
    """

    def __init__(
        self,
        module: dspy.Module,
        *,
        field: str | None,
        tools: Any,
        show: Iterable[str] | None,
        files: str | None,
    ) -> None:
        self.module = module
        self.field = _question_field(module, field)
        """The input that takes the user's text."""
        self.takes_history = isinstance(module, ReActV2) or HISTORY in _input_names(module)
        """Whether it goes on with a history that it is given as `history`."""
        self._tools = tools
        self._decls: dict[int | None, dict[str, ToolDecl]] = {}  # by the `id` of the agent, which is held
        self._check_going_on()
        self.files = None if files is None else FilesInput(module, files)
        self.shown_fields = _field_names(show)
        """Fields that are shown, whichever predictor puts them out."""

    def _check_going_on(self) -> None:
        modules = [module for _, module in self.module.named_sub_modules()]
        decls = [decl for module in modules for decl in _decls_in(_tools_of_module(module))]
        # For a yes, or for a result from elsewhere.
        waiting = [decl.name for decl in decls if decl.requires_confirmation is not False or decl.external]
        tool = next(iter(waiting), None)
        has_signature = getattr(self.module, "signature", None) is not None
        parameters: Mapping[str, inspect.Parameter] = {} if has_signature else _parameters_of(self.module)
        if tool is None or any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
            return
        parameter = parameters.get(self.field)
        if not self.takes_history:
            lacks = f": it has no input {HISTORY!r}"
        elif parameter is not None and parameter.default is parameter.empty:
            lacks = f" without {self.field!r}"
        else:
            return
        reason = f"the tool {tool!r} may wait, and the program could not go on{lacks}"
        fix = (
            f"Write `def forward(self, {HISTORY}, {self.field}=None)`: a run goes on with the history alone."
        )
        raise InvalidOption(reason, field="program", fix=fix)

    def check_adapter(self) -> None:
        """Refuse an adapter that would run the program's tools without sigadapt.

        Raises:
            InvalidSignature: `forgotten_adapter`.
        """
        if not any(_tools_of_module(module) for _, module in self.module.named_sub_modules()):
            return
        error = forgotten_adapter("Chats needs an adapter of sigadapt, and would run under {adapter}")
        if error is not None:
            raise error

    def tools_of(self, agent_name: str | None) -> Any:
        """Return the tools of an agent in it; of the first module with tools, if there is no such agent."""
        if self._tools is not None:
            return self._tools
        modules: dict[str, Any] = dict(self.module.named_sub_modules())  # the program itself is the first
        if agent_name in modules:
            return _tools_of_module(modules[agent_name])
        return next((tools for module in modules.values() if (tools := _tools_of_module(module))), ())

    def decl_of(self, agent: dspy.Module | None, name: str) -> ToolDecl | None:
        """Return the declaration of a tool of an agent; None where it is not known before a request."""
        key = None if agent is None else id(agent)
        if key not in self._decls:
            tools = self.tools_of(None) if agent is None else _tools_of_module(agent)
            self._decls[key] = {decl.name: decl for decl in _decls_in(tools)}
        return self._decls[key].get(name)


class ShownRun:
    """What a page shows of one run while it streams: the texts of the program's own answer, and of its agent.

    A field of an inner predictor may hold what no customer is to read. Whether it is one is known when the
    program has put out something, so what might be one is not written before. The outputs are.

    Args:
        program: the program.
        message: the user's text.
    """

    def __init__(self, program: ChatProgram, message: str) -> None:
        self._program = program
        self._is_own_answer = isinstance(program.module, _OWN_ANSWER)
        modules = [module for _, module in program.module.named_sub_modules()]
        self._has_one_agent = len([module for module in modules if isinstance(module, ReActV2)]) == 1
        self._message = message
        self.fields = program.shown_fields

    def shows(self, event: Event) -> bool:
        """Return whether the page shows an event while it comes."""
        if not isinstance(event, (TextDelta, ReasoningDelta)) or event.origin is None:
            return True
        if isinstance(event, TextDelta) and event.field in self.fields:
            return True
        return self._is_own_answer or self._is_of_agent(event.origin)

    def _is_of_agent(self, origin: Origin) -> bool:
        """Return whether a step is of the agent that got the message, or goes on with it."""
        if origin.agent is None:
            return origin.has_calls
        if self._has_one_agent or not origin.texts:
            return True
        return any(self._message in text for text in origin.texts)

    def args_of(self, event: CallReady, call: ToolCall) -> Any:
        """Return the arguments of a call as they will run, those with defaults too, whoever is asked."""
        decl = self._program.decl_of(None if event.origin is None else event.origin.agent, call.name)
        return call.args if decl is None else visible_args(decl, call.args)


class FilesInput:
    """The input that takes a user's files: which types it takes, and whether one or many.

    Raises:
        InvalidOption: the program has no such input, or it takes no files.
    """

    def __init__(self, program: dspy.Module, name: str) -> None:
        annotation = _annotation_of(program, name)
        kinds = [*_kinds_in(annotation)]
        if not kinds:
            reason = f"the input {cut(repr(name))} takes no files"
            fix = "Give it the type dspy.Image, dspy.Audio, dspy.File, or a list of one of them."
            raise InvalidOption(reason, field="files", fix=fix)
        self.name = name
        self._kinds = kinds
        self._takes_many = any(get_origin(each) is list for each in (annotation, *get_args(annotation)))

    def flaw_of(self, files: Sequence[PageFile]) -> str | None:
        """Return why these files are not taken; None if they are."""
        if len(files) > 1 and not self._takes_many:
            return f"The input {self.name!r} takes one file, and there are {len(files)}."
        for file in files:
            if self._kind_of(file) is None:
                return f"The input {self.name!r} takes no file of the type {file.media_type}."
        return None

    def inputs(self, files: Sequence[PageFile]) -> dict[str, Any]:
        """Return the input of a run; none for a message without files, if the program takes one alone."""
        values = [self._value(file) for file in files]
        if self._takes_many:
            return {self.name: values}
        return {self.name: values[0]} if values else {}

    def _kind_of(self, file: PageFile) -> type | None:
        family = file.media_type.partition("/")[0]
        wanted = {"image": dspy.Image, "audio": dspy.Audio}.get(family)
        for kind in (wanted, dspy.File):
            if kind in self._kinds:
                return kind
        return None

    def _value(self, file: PageFile) -> Any:
        kind = self._kind_of(file)
        if kind is dspy.Image:
            return dspy.Image(url=file.address)
        if kind is dspy.Audio:
            return dspy.Audio(data=file.data, audio_format=file.media_type.partition("/")[2])
        return dspy.File(file_data=file.address, filename=file.name)


def _annotation_of(program: dspy.Module, name: str) -> Any:
    """Return the type of an input, in the signature of the program or of a module inside of it."""
    for _, module in program.named_sub_modules():
        signature: Any = getattr(module, "signature", None)
        if signature is not None and name in signature.input_fields:
            return signature.input_fields[name].annotation
    reason = f"the program has no input {cut(repr(name))}"
    raise InvalidOption(reason, field="files", fix="Name the input that takes the user's files.")


def _kinds_in(annotation: Any) -> list[type]:
    if annotation in (dspy.Image, dspy.Audio, dspy.File):
        return [annotation]
    if get_origin(annotation) in (list, Union, types.UnionType):
        return [kind for each in get_args(annotation) for kind in _kinds_in(each)]
    return []


def _question_field(program: dspy.Module, field: str | None) -> str:
    """Return the input that takes the user's text.

    Raises:
        InvalidOption: there is none, or none of this name.
    """
    names = _input_names(program)
    if field is not None:
        if names and field not in names:
            fix = f"Its inputs are {', '.join(names)}."
            raise InvalidOption(f"the program has no input {field!r}", field="field", fix=fix)
        return field
    for name in names:
        if name != HISTORY:
            return name
    reason = "the program says nothing about its inputs"
    raise InvalidOption(reason, field="field", fix="Name the input: Chats(..., field='question').")


def _input_names(program: dspy.Module) -> list[str]:
    """Return the inputs of a program's signature; without one, the parameters of its `forward`.

    Those of a program that takes any are those of its only predictor, such as `dspy.ChainOfThought`'s.
    """
    signature: Any = getattr(program, "signature", None)
    if signature is not None:
        return [*signature.input_fields]
    kinds = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    names = [name for name, parameter in _parameters_of(program).items() if parameter.kind in kinds]
    predictors: list[Any] = program.predictors()
    return names or ([*predictors[0].signature.input_fields] if len(predictors) == 1 else [])


def _parameters_of(program: dspy.Module) -> Mapping[str, inspect.Parameter]:
    """Return what a program's `forward` takes, by name."""
    for name in ("forward", "aforward"):
        with suppress(AttributeError):
            # DSPy's modules warn whoever reads their `forward` as one reads an attribute.
            return inspect.signature(object.__getattribute__(program, name)).parameters
    return {}


def _field_names(show: object) -> frozenset[str]:
    names = [] if show is None else [*show] if is_iterable(show) and not isinstance(show, str) else [None]
    if all(isinstance(name, str) for name in names):
        return frozenset(map(str, names))
    reason = f"show takes the names of fields, not {cut(repr(show))}"
    raise InvalidOption(reason, field="show", fix="Give a list, such as show=['topic'].")


def name_of_agent(program: dspy.Module, agent: object) -> str | None:
    """Return the name of an agent inside of a program, for other processes; None if it isn't there."""
    names = [name for name, module in program.named_sub_modules() if module is agent]
    return names[0] if names else None


def _tools_of_module(module: Any) -> Any:
    """Return the tools of a module, without those that DSPy's agents add; `[]` for one without."""
    tools: Any = getattr(module, "tools", None)
    if is_mapping(tools):
        return [tool for name, tool in tools.items() if name not in _ADDED_TOOLS]
    return [] if tools is None else tools


def _decls_in(tools: Any) -> Sequence[ToolDecl]:
    """Return the declarations of tools; none for a toolset, whose tools depend on the request."""
    if callable(tools):
        return ()
    with suppress(SigadaptError):  # which the program raises
        return decls_of(tools).tools
    return ()
