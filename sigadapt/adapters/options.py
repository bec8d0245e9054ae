"""The options of an adapter beyond DSPy's own, checked once, when the adapter is made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import closest

ToolCalling: TypeAlias = Literal["auto", "native"]
OnInvalid: TypeAlias = Literal["raise", "keep", "reask"]
ToolChoice: TypeAlias = str | Sequence[str] | dict[str, Any]

_WORDS: dict[str, tuple[str, ...]] = {
    "tool_calling": get_args(ToolCalling),
    "on_invalid": get_args(OnInvalid),
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one adapter.

    Args:
        tool_calling: `native` sends declarations as the provider's own tools; `auto` does so where DSPy knows
            that the model supports function calling and refuses, with the reason, where it does not.
        tool_choice: `auto`, `required`, `none`, a tool's name, or several names; None leaves it to the model.
        parallel_tool_calls: whether one answer may hold several calls; None leaves it to the provider.
        on_invalid: `raise` a ToolCallParseError for a bad call, `keep` bad calls in `ToolCalls.invalid`, or
            `reask`: send the errors back as failed results, ask again, and raise if that does not help.
        max_reasks: how many times `reask` asks again.
        validate_args: whether calls are checked against the declarations.
        repair: whether arguments that are no JSON are repaired where they can be; such a call is marked.
        strict: whether every tool asks for the provider's strict mode; a declaration's own comes first.
        hooks: objects around the model call, asked in order (`hooks.py`).
        unwrap: whether arguments encoded as JSON text once too often are decoded; such a call is marked.

    Raises:
        InvalidOption: naming the option and what it takes.

    Example:
        >>> Options(on_invalid="drop")
        Traceback (most recent call last):
        sigadapt.errors.InvalidOption: field 'on_invalid': 'drop' is unknown. Use 'raise', 'keep' or 'reask'.
    """

    tool_calling: ToolCalling = "auto"
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    on_invalid: OnInvalid = "raise"
    max_reasks: int = 1
    validate_args: bool = True
    repair: bool = False
    unwrap: bool = False
    strict: bool = False
    hooks: Sequence[Any] = ()

    def __post_init__(self) -> None:
        for name, words in _WORDS.items():
            value = getattr(self, name)
            if value not in words:
                raise InvalidOption(f"{value!r} is unknown", field=name, fix=f"Use {_either(words)}.")
        for name in ("parallel_tool_calls", "validate_args", "repair", "unwrap", "strict"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (name == "parallel_tool_calls" and value is None):
                raise InvalidOption(f"{value!r} is not a boolean", field=name)
        if type(self.max_reasks) is not int or self.max_reasks < 0:
            raise InvalidOption(
                f"{self.max_reasks!r} is not a count", field="max_reasks", fix="Use 0 or more."
            )


def refuse_unknown(adapter: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise InvalidOption for a keyword the adapter does not have, with the nearest it has."""
    for name in [name for name in given if name not in known]:
        near = closest(name, known)
        fix = f"Did you mean {near!r}?" if near else f"It takes {', '.join(known)}."
        raise InvalidOption(f"{adapter} has no such option", field=name, fix=fix)


def _either(words: tuple[str, ...]) -> str:
    *others, last = map(repr, words)
    return f"{', '.join(others)} or {last}"
