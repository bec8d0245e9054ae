"""The options that sigadapt's adapters add to DSPy's, checked when the adapter is made."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import closest
from sigadapt.signatures.pickling import by_value, loaded

ToolCalling: TypeAlias = Literal["auto", "native", "prompted"]
OnInvalid: TypeAlias = Literal["raise", "keep", "reask"]
ToolChoice: TypeAlias = str | Sequence[str] | Mapping[str, Any]

_WORDS: dict[str, tuple[str, ...]] = {
    "on_invalid": get_args(OnInvalid),
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one adapter.

    Args:
        tool_calling: `native` sends declarations as the provider's own tools. `prompted` describes them in
            the prompt and reads the calls from the text. `auto` decides for each model (`calling/modes.py`).
            A mapping from model names to these decides by name, and leaves other models to `auto`.
        call_format: the text format in which prompted calls are asked for (`docs/text_formats.md`).
        max_tool_bytes: the most bytes of JSON that a request's tools may have; None for any. A request with
            more is refused with the largest tools (`request/tool_budget.py`).
        recover: whether calls are read from the text of a native answer that has none; they are marked
            `recovered`.
        tool_choice: `auto`, `required`, `none`, a tool's name, several names, or an object as a provider
            documents it; None leaves it to the model. A tool that the provider runs has its name or its type.
        parallel_tool_calls: whether one answer may have several calls; None leaves it to the provider.
        on_invalid: what to do with a bad call. `raise` raises a ToolCallParseError; `keep` puts it in
            `ToolCalls.invalid`; `reask` sends the errors back as failed results, asks again, and raises if
            the answer still has bad calls. None, the default, raises; but in a `dspy.ToolCalls` field, which
            belongs to somebody's loop, all but `raise` hand on a bad call as one that fails when it is run.
        max_reasks: how many times `reask` asks again.
        validate_args: whether calls are checked against the declarations.
        repair: whether to repair arguments that are not JSON, if possible; such a call is marked `repaired`.
        unwrap: whether to decode arguments that were encoded as JSON text twice; marked `unwrapped`.
        strict: whether to ask for the provider's strict mode; a declaration's own `strict` comes first.
        hooks: objects called around the model call, in order (`hooks.py`).

    Raises:
        InvalidOption: for an invalid value; the message names the option and its valid values.
            `not_picklable`, when it is pickled, for an option that the pickler cannot take.
    """

    tool_calling: ToolCalling | Mapping[str, ToolCalling] = "auto"
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    on_invalid: OnInvalid | None = None
    max_reasks: int = 1
    validate_args: bool = True
    repair: bool = False
    unwrap: bool = False
    strict: bool = False
    hooks: Sequence[Any] = ()
    recover: bool = False
    call_format: str = "hermes"
    max_tool_bytes: int | None = None

    def __post_init__(self) -> None:
        for name, words in _WORDS.items():
            value = getattr(self, name)
            if value not in words and not (name == "on_invalid" and value is None):
                raise InvalidOption(f"expected {_either(words)}, got {value!r}", field=name)
        asked = self.tool_calling
        for mode in asked.values() if isinstance(asked, Mapping) else (asked,):
            if mode not in get_args(ToolCalling):
                expected = _either(get_args(ToolCalling))
                raise InvalidOption(f"expected {expected}, got {mode!r}", field="tool_calling")
        for name in ("parallel_tool_calls", "validate_args", "repair", "unwrap", "strict", "recover"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (name == "parallel_tool_calls" and value is None):
                raise InvalidOption(f"expected a boolean, got {value!r}", field=name)
        if type(self.max_reasks) is not int or self.max_reasks < 0:
            raise InvalidOption(f"expected an int of 0 or more, got {self.max_reasks!r}", field="max_reasks")

        if self.max_tool_bytes is not None and (
            type(self.max_tool_bytes) is not int or self.max_tool_bytes < 1
        ):
            reason = f"expected an int of 1 or more, or None, got {self.max_tool_bytes!r}"
            raise InvalidOption(reason, field="max_tool_bytes")

    def __deepcopy__(self, memo: dict[int, Any]) -> "Options":
        return Options(**{each.name: deepcopy(getattr(self, each.name), memo) for each in fields(self)})

    def __copy__(self) -> "Options":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (
            {each.name: _pickled(each.name, getattr(self, each.name)) for each in fields(self)},
        )


def _pickled(name: str, value: object) -> bytes:
    try:
        return by_value(value)
    except Exception as error:
        raise InvalidOption(
            f"{value!r} cannot be pickled: {error}",
            code="not_picklable",
            field=name,
            fix="Leave out of it what lives in one process, or make the adapter where it is used.",
        ) from error


def _unpickled(values: dict[str, bytes]) -> Options:
    return Options(**{name: loaded(value) for name, value in values.items()})


def with_switch(
    tool_calling: ToolCalling | Mapping[str, ToolCalling],
    use_native_function_calling: bool | None,  # noqa: FBT001
) -> ToolCalling | Mapping[str, ToolCalling]:
    """Return the option as DSPy's own switch changes it: False turns `auto` into `prompted`."""
    return "prompted" if tool_calling == "auto" and use_native_function_calling is False else tool_calling


def refuse_unknown(adapter: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a keyword that the adapter does not have, and suggest the closest one that it has.

    Raises:
        InvalidOption: for the first unknown keyword.
    """
    for name in [name for name in given if name not in known]:
        near = closest(name, known)
        fix = f"Did you mean {near!r}?" if near else f"It takes {', '.join(known)}."
        raise InvalidOption(f"{adapter} has no such option", field=name, fix=fix)


def _either(words: tuple[str, ...]) -> str:
    *others, last = map(repr, words)
    return f"{', '.join(others)} or {last}"
