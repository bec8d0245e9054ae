"""Requests and answers as they were sent: in pairs, each on a line of its own, or in LiteLLM's payload.

Source: `StandardLoggingPayload` of litellm 1.106.
"""

from collections.abc import Iterator

from sigadapt.errors import InvalidHistory
from sigadapt.logs.forms.form import LogForm, RawExchange, seconds_of, text_or_none
from sigadapt.providers import PROVIDERS
from sigadapt.providers.wire.values import an_object
from sigadapt.schemas.json_values import Json, is_object

_SUCCEEDED = ("200", "success", "")


def _is_pair(row: Json) -> bool:
    return "request" in row or "response" in row


# A pair: {"request": {"model": "m", "messages": [...]}, "response": {"choices": [...]}}.
# A payload: {"model": "m", "messages": [...], "model_parameters": {"tools": [...]}, "response": {...}}.
def _exchanges(row: Json) -> Iterator[RawExchange]:
    status = row.get("status")
    if status is not None and str(status) not in _SUCCEEDED and not is_object(status):
        raise InvalidHistory(f"it holds no exchange that succeeded ({status})", code="unreadable_request")
    request = row.get("request")
    if request is None and row.get("messages") is not None:
        settings = an_object(row.get("model_parameters"))
        request = {"model": row.get("model"), **settings, "messages": row["messages"]}
    yield RawExchange(
        request=request,
        response=row.get("response"),
        name=text_or_none(row.get("conversation")),
        time=seconds_of(row.get("startTime")),
    )


PAIRS = LogForm(_is_pair, _exchanges)


def _is_body(row: Json) -> bool:
    return any(provider.is_body(row) or provider.is_request(row) for provider in PROVIDERS)


def _half(row: Json) -> Iterator[RawExchange]:
    if any(provider.is_body(row) for provider in PROVIDERS):
        yield RawExchange(response=row)
    else:
        yield RawExchange(request=row)


BODIES = LogForm(_is_body, _half)
"""A body itself on each line."""


def reason_alone(raw: RawExchange) -> str:
    """Return why half of an exchange, which has no id, holds none."""
    if raw.failure is not None:
        sort = "response" if raw.request is None else "request"
        return f"it looks like a {sort}, but {raw.failure}"
    if raw.request is None:
        return "it looks like a response, but no line before it has its request"
    return "it looks like a request, but the response is missing: no line after it has its answer"
