"""The options that sigadapt's adapters add to DSPy's, checked when the adapter is made.

`ToolOptions` types them for an adapter's `**options`. The docstring of `ChatAdapter` says what each is for.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, get_args

from sigadapt.errors import InvalidOption
from sigadapt.json_values import refuse_unknown
from sigadapt.signatures.tool_decl import by_value, from_pickles

if TYPE_CHECKING:
    from sigadapt.text.bodies.template import ResponseTemplate

ToolCalling: TypeAlias = Literal["auto", "native", "prompted"]
Orphans: TypeAlias = Literal["raise", "heal"]
ToolErrors: TypeAlias = Literal["message", "traceback"]
ControlTokens: TypeAlias = Literal["break", "keep"]
OnInvalid: TypeAlias = Literal["raise", "keep", "reask"]
ToolChoice: TypeAlias = str | Sequence[str] | Mapping[str, Any]

_Init = TypeVar("_Init", bound=Callable[..., None])


class SeesRequest(Protocol):
    """A hook that sees the Request. Like all of them, it may be async."""

    def before_request(self, request: Any, context: Any, /) -> Any:
        """Return None, a changed Request, or a Choice that replaces the answer."""
        ...


class SeesChoice(Protocol):
    """A hook that sees the Choice."""

    def after_choice(self, choice: Any, context: Any, /) -> Any:
        """Return None, or a Choice that replaces this one."""
        ...


class SeesError(Protocol):
    """A hook that sees the error."""

    def on_error(self, error: Any, context: Any, /) -> Any:
        """Return None, or a Choice that replaces the error."""
        ...


Hook: TypeAlias = SeesRequest | SeesChoice | SeesError
"""An object with at least one of these methods."""


class ToolOptions(TypedDict, total=False):
    """The keyword arguments that sigadapt's adapters take beyond DSPy's; `ChatAdapter` documents them."""

    tool_calling: ToolCalling | Mapping[str, ToolCalling]
    tool_choice: ToolChoice | None
    on_invalid: OnInvalid | None
    max_reasks: int
    max_pauses: int
    replay_reasoning: str | Mapping[str, str] | Literal[False] | None
    validate_args: bool
    repair: bool
    unwrap: bool
    strict: bool
    hooks: Sequence["Hook"]
    recover: bool
    call_format: str
    formats: "Sequence[str | ResponseTemplate] | None"
    max_tool_bytes: int | None
    orphans: Orphans
    confirm: Literal["raise"] | None
    tool_errors: ToolErrors
    control_tokens: ControlTokens
    bridge_results: bool


DEFAULT_REASKS = 1
_SWITCHES = ("validate_args", "repair", "unwrap", "strict", "recover", "bridge_results")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one adapter, `parallel_tool_calls` of DSPy's among them.

    Raises:
        InvalidOption: for an invalid value; the message names the option and its valid values.
            `not_picklable`, when it is pickled, for an option that the pickler cannot take.
    """

    tool_calling: ToolCalling | Mapping[str, ToolCalling] = "auto"
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    on_invalid: OnInvalid | None = None
    max_reasks: int = DEFAULT_REASKS
    max_pauses: int = 8
    replay_reasoning: str | Mapping[str, str] | Literal[False] | None = None
    validate_args: bool = True
    repair: bool = False
    unwrap: bool = False
    strict: bool = False
    hooks: Sequence["Hook"] = ()
    recover: bool = False
    call_format: str = "hermes"
    formats: "Sequence[str | ResponseTemplate] | None" = None
    max_tool_bytes: int | None = None
    orphans: Orphans = "raise"
    confirm: Literal["raise"] | None = None
    tool_errors: ToolErrors = "message"
    control_tokens: ControlTokens = "break"
    bridge_results: bool = False

    def __post_init__(self) -> None:
        self._check_words()
        for name in ("parallel_tool_calls", *_SWITCHES):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (name == "parallel_tool_calls" and value is None):
                raise InvalidOption(f"expected a boolean, got {value!r}", field=name)
        for name in ("max_reasks", "max_pauses"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise InvalidOption(f"expected an int of 0 or more, got {value!r}", field=name)
        self._check_replay()
        self._check_effects()
        most = self.max_tool_bytes
        if most is not None and (type(most) is not int or most < 1):
            reason = f"expected an int of 1 or more, or None, got {most!r}"
            raise InvalidOption(reason, field="max_tool_bytes")

    def _check_words(self) -> None:
        if self.on_invalid is not None:
            _check_word("on_invalid", self.on_invalid, get_args(OnInvalid))
        _check_word("confirm", self.confirm, ("raise", None))
        _check_word("orphans", self.orphans, get_args(Orphans))
        _check_word("tool_errors", self.tool_errors, get_args(ToolErrors))
        _check_word("control_tokens", self.control_tokens, get_args(ControlTokens))
        if isinstance(self.formats, Iterator):
            raise InvalidOption("an iterator can be read only once", field="formats", fix="Pass a list.")
        modes = self.tool_calling
        for mode in modes.values() if isinstance(modes, Mapping) else (modes,):
            _check_word("tool_calling", mode, get_args(ToolCalling))

    def _check_effects(self) -> None:
        """Refuse an option that another one keeps from having any effect."""
        if self.max_reasks != DEFAULT_REASKS and self.on_invalid != "reask":
            fix = "Add on_invalid='reask', or leave max_reasks out."
            raise InvalidOption(
                "without on_invalid='reask' nothing is asked again", field="max_reasks", fix=fix
            )
        if self.strict and self.tool_calling == "prompted":
            fix = "Leave one of them out."
            raise InvalidOption("no provider reads the schemas of prompted tools", field="strict", fix=fix)
        if self.formats is not None and self.tool_calling == "native" and not self.recover:
            fix = "Add recover=True, or leave formats out."
            raise InvalidOption("no text is read for calls in native mode", field="formats", fix=fix)

    def _check_replay(self) -> None:
        """Refuse a key of reasoning that no OpenAI-compatible server has, for all models or for one."""
        replay = self.replay_reasoning
        if replay is None or replay is False:  # None leaves it to the provider, False replays nothing
            return
        for word in replay.values() if isinstance(replay, Mapping) else (replay,):
            _check_word("replay_reasoning", word, ("reasoning", "reasoning_content"))

    def __deepcopy__(self, memo: dict[int, Any]) -> "Options":
        return Options(**{each.name: deepcopy(getattr(self, each.name), memo) for each in fields(self)})

    def __copy__(self) -> "Options":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        values = {each.name: _pickle(each.name, getattr(self, each.name)) for each in fields(self)}
        return from_pickles, (Options, {}, values)


def _pickle(name: str, value: object) -> bytes:
    try:
        return by_value(value)
    except Exception as error:
        raise InvalidOption(
            f"{value!r} cannot be pickled: {error}",
            code="not_picklable",
            field=name,
            fix="Leave out what belongs to one process, or create the adapter in the worker.",
        ) from error


def _check_word(option: str, value: object, words: tuple[str | None, ...]) -> None:
    if value not in words:
        *others, last = map(repr, words)
        raise InvalidOption(f"expected {', '.join(others)} or {last}, got {value!r}", field=option)


def lists_options(init: _Init) -> _Init:
    """Make help() list each of an `__init__`'s options with its default, in the place of `**options`."""
    whole = inspect.signature(init)
    defaults = {each.name: each.default for each in fields(Options)}
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind)
        for name, kind in ToolOptions.__annotations__.items()
    ]
    vars(init)["__signature__"] = whole.replace(parameters=[*list(whole.parameters.values())[:-1], *options])
    return init


def refuse_unknown_options(adapter: str, names: Iterable[str], options: Sequence[str]) -> None:
    """Refuse a keyword that the adapter does not have, and suggest the closest one that it has."""
    if "lm_kwargs" in names and "lm_kwargs" not in options:  # DSPy called the class as if it were an adapter
        fix = f"Give an instance: {adapter}()."
        raise InvalidOption("the adapter is a class, not an instance", field="adapter", fix=fix)
    refuse_unknown(adapter, names, options)
