"""Batch files: a request on a line of the input, its answer on a line of the output, joined by their id.

| provider | input | output |
|---|---|---|
| OpenAI, Mistral, Groq | `custom_id`, `body` | `custom_id`, `response` with its `body`, `error` |
| Anthropic | `custom_id`, `params` | `custom_id`, `result` with `type` and `message` |
| Gemini | `key`, `request` | `key`, `response` |
| Bedrock | `recordId`, `modelInput` | the same with `modelOutput` |

Sources: "Batch API" of OpenAI, "Batch processing" of Anthropic, "Batch mode" of Gemini and "Process multiple
prompts with batch inference" of Amazon Bedrock, read on 2026-11-24.
"""

from collections.abc import Iterator
from typing import Any

from sigadapt.logs.forms.form import LogForm, RawExchange, first_of, missing, text_or_none
from sigadapt.providers.wire.values import an_object
from sigadapt.schemas.json_values import Json, compact, cut, is_object

_INPUT = "a line of a batch's input"
_OUTPUT = "a line of a batch's output"
_SUCCEEDED = range(200, 300)


def _is_batch(row: Json) -> bool:
    if "modelInput" in row or "custom_id" in row:
        return True
    return isinstance(row.get("key"), str) and not row.keys().isdisjoint(("request", "response", "error"))


def _exchanges(row: Json) -> Iterator[RawExchange]:
    if "modelInput" in row:
        if row.get("modelOutput") is None:
            raise missing(_INPUT, f"its modelOutput is missing{_failure_of(row)}")
        yield RawExchange(request=row["modelInput"], response=row["modelOutput"])
        return
    key = text_or_none(first_of(row, "custom_id", "key"))
    if key is None:
        raise missing("a line of a batch", "its custom_id is missing")
    request = first_of(row, "body", "params", "request")
    if request is not None:
        yield RawExchange(request=request, response=row.get("response"), key=key)
        return
    body = _body_of(row)
    if body is None:
        yield RawExchange(key=key, failure=_failure_of(row))
        return
    yield RawExchange(response=body, key=key)


def _body_of(row: Json) -> Any:
    """Return the answer in a line of the output; None if the request failed."""
    result = an_object(row.get("result"))
    if result:
        return result.get("message") if result.get("type") == "succeeded" else None
    response: Any = row.get("response")
    if not is_object(response) or row.get("error"):
        return None
    if "body" not in response:
        return response
    return response["body"] if response.get("status_code", 200) in _SUCCEEDED else None


def _failure_of(row: Json) -> str:
    """Return what a line of the output says about a request that failed; empty if it says nothing."""
    result = an_object(row.get("result"))
    body = an_object(an_object(row.get("response")).get("body"))
    reason = row.get("error") or result.get("error") or body.get("error") or result.get("type")
    return "" if reason is None else f": {cut(compact(reason))}"


def reason_alone(raw: RawExchange) -> str:
    """Return why half of a batch's exchange holds none."""
    sort, other = (_OUTPUT, "request: the input") if raw.request is None else (_INPUT, "response: the output")
    if raw.failure is not None:
        return f"it looks like {sort}, but its request was not answered{raw.failure}"
    return f"it looks like {sort}, but no line has its {other} with the id {raw.key!r}"


FORM = LogForm(_is_batch, _exchanges)
