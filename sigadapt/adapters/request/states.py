"""Provider state that was saved: looked at before it is sent back, because anybody may have written it."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from sigadapt.adapters.request.canonical import Request
from sigadapt.errors import InvalidHistory, SigadaptError
from sigadapt.providers.route import Route
from sigadapt.providers.wire.reading import MOST_VALUES
from sigadapt.schemas.json_values import ARGUMENT_LEVELS, cut, fault_in, is_array, is_object
from sigadapt.signatures.calls import Turn

_LISTS = (("blocks", dict, "objects"), ("ids", str, "strings"), ("lost", str, "strings"))


def state_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the provider state of a message's turn; None if it has none."""
    turn = row.get("turn")
    return None if turn is None else turn.state


def stores_nothing(request: Request) -> bool:
    """Return whether a request asks the provider to store nothing of it, also in LiteLLM's `extra_body`."""
    settings: Mapping[str, Any] = request
    extra: Any = settings.get("extra_body")
    return settings.get("store") is False or (is_object(extra) and extra.get("store") is False)


def refuse_unreadable_states(request: Request, route: Route) -> None:
    """Raise InvalidHistory `unreadable_state`, unless every state has the form in `wire/reading.py`."""
    for number, row in enumerate(request["messages"]):
        state = state_of(row)
        if state is not None and (fault := _fault(state, route)):
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


def _fault(state: dict[str, Any], route: Route) -> str | None:
    if not isinstance(state.get("dialect"), str):
        return "it names no dialect"
    for key, kind, kind_name in _LISTS:
        default: list[Any] | None = None if key == "blocks" else []  # every state has blocks
        items = state.get(key, default)
        if not is_array(items) or not all(isinstance(item, kind) for item in items):
            return f"its {key} are not a list of {kind_name}"
    for key, kind, fault in (
        ("fields", dict, "fields are not an object"),
        ("endpoint", str, "endpoint is no text"),
    ):
        if not isinstance(state.get(key, kind()), kind):
            return f"its {fault}"
    if route.replays(state):
        content = [state["blocks"], state.get("fields")]
        fault = fault_in(content, levels=ARGUMENT_LEVELS + 2, most=MOST_VALUES * len(state["blocks"]) + 1_000)
        return f"a block cannot be sent: {fault.reason}, at {fault.path}" if fault else None
    return None
