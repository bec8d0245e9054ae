"""Provider state that was saved: looked at before it is sent back, because anybody may have written it."""

from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from sigadapt.adapters.request.canonical import Request
from sigadapt.errors import InvalidHistory, SigadaptError
from sigadapt.providers.reading import MOST_VALUES
from sigadapt.schemas.json_values import ARGUMENT_LEVELS, cut, fault_in
from sigadapt.signatures.calls import Turn

_WITH_TEXT = frozenset({"text", "thinking"})


def state_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the provider state of a message's turn; None if it has none."""
    turn = row.get("turn")
    return None if turn is None else turn.state


def refuse_unreadable_states(request: Request, takes: Collection[str]) -> None:
    """Raise InvalidHistory `unreadable_state`, unless every turn's state is of the form of `reading.py`."""
    for number, row in enumerate(request["messages"]):
        state = state_of(row)
        fault = None if state is None else _fault(state, takes)
        if fault:
            raise _refusal(f"message {number}", fault)


@contextmanager
def replaying(turn: Turn) -> Generator[None]:
    """Turn what a state of the right form and the wrong content leads to into InvalidHistory."""
    try:
        yield
    except SigadaptError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        names = ", ".join(sorted(cut(str(key)) for key in turn.state or ()))
        raise _refusal("a turn", f"{type(error).__name__}: {error} (it holds {names})") from error


def _refusal(where: str, fault: str) -> InvalidHistory:
    return InvalidHistory(
        f"the provider state of {where} cannot be sent back: {cut(fault)}",
        code="unreadable_state",
        fix="Load turns from what model_dump or model_dump_json wrote, or leave their state out.",
    )


def _fault(state: dict[str, Any], takes: Collection[str]) -> str | None:
    if not isinstance(state.get("dialect"), str):
        return "it names no dialect"
    items = state.get("items")
    if not isinstance(items, list):
        return "it has no list of items"
    if not isinstance(state.get("fields", {}), dict) or fault_in(state.get("fields"), levels=ARGUMENT_LEVELS):
        return "its fields are no object of JSON values"
    goes_back = state["dialect"] in takes
    faults = (_item_fault(item, goes_back=goes_back) for item in cast("list[Any]", items))
    return next((f"item {number} {fault}" for number, fault in enumerate(faults) if fault), None)


def _item_fault(item: Any, *, goes_back: bool) -> str | None:
    if not isinstance(item, dict):
        return "is no object"
    known = cast("dict[str, Any]", item)
    if not isinstance(known.get("type"), str):
        return "has no type"
    if known["type"] in _WITH_TEXT and not isinstance(known.get("text"), str):
        return "has no text"
    if not isinstance(known.get("id", ""), str):
        return "has an id that is no text"
    if not isinstance(known.get("name", ""), str):
        return "has a name that is no text"
    fault = _wire_fault(known["wire"], goes_back) if "wire" in known else None
    return fault or (
        _continuation_fault(known["continuation"], goes_back) if "continuation" in known else None
    )


def _wire_fault(value: Any, goes_back: bool) -> str | None:  # noqa: FBT001
    if not isinstance(value, dict):
        return "has a block that is no object"
    fault = fault_in(cast("Any", value), levels=ARGUMENT_LEVELS, most=MOST_VALUES) if goes_back else None
    return f"has a block that cannot be sent: {fault.reason}, at {fault.path}" if fault else None


def _continuation_fault(value: Any, goes_back: bool) -> str | None:  # noqa: FBT001
    if not _is_continuation(value):
        return "has a continuation that is not [provider, kind, data]"
    fault = fault_in(list(value), levels=ARGUMENT_LEVELS) if goes_back else None
    return f"has a continuation that cannot be sent: {fault.reason}, at {fault.path}" if fault else None


def _is_continuation(value: Any) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    parts = cast("list[Any]", value)
    return [*map(type, parts)] == [str, str, dict] and "" not in parts
