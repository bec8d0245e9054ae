"""Provider state that was saved: looked at before it is sent back, because anybody may have written it."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from sigadapt.adapters.request.canonical import Request
from sigadapt.errors import InvalidHistory, SigadaptError
from sigadapt.schemas.json_values import cut, is_object
from sigadapt.signatures.calls import Turn


def state_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the provider state of a message's turn; None if it has none."""
    turn = row.get("turn")
    return None if turn is None else turn.state


def stores_nothing(request: Request) -> bool:
    """Return whether a request asks the provider to store nothing of it, also in LiteLLM's `extra_body`."""
    settings: Mapping[str, Any] = request
    extra: Any = settings.get("extra_body")
    return settings.get("store") is False or (is_object(extra) and extra.get("store") is False)


@contextmanager
def replaying(turn: Turn) -> Generator[None]:
    """Turn what a state of the right form and the wrong content leads to into InvalidHistory."""
    try:
        yield
    except SigadaptError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        names = ", ".join(sorted(cut(str(key)) for key in turn.state or ()))
        raise unreadable_state("a turn", f"{type(error).__name__}: {error} (it holds {names})") from error


def unreadable_state(where: str, fault: str) -> InvalidHistory:
    """Make the error of a state that nobody can send back."""
    return InvalidHistory(
        f"the provider state of {where} cannot be sent back: {cut(fault)}",
        code="unreadable_state",
        fix="Load turns from what model_dump or model_dump_json wrote, or leave their state out.",
    )
