"""Fine-tuning files: a whole conversation on a line, whose answers are examples of what to say.

Each of the model's messages is an exchange: the messages before it are its request. OpenAI's files have
`messages`, `tools` and a `weight` of 0 for a message that is no example; those of Gemini have `contents`.
Another line may hold a longer or a shorter part of the same conversation, so an exchange has a digest.

Sources: "Supervised fine-tuning" of OpenAI, and "Prepare supervised fine-tuning data" of Google, read on
2026-11-24.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

from sigadapt.logs.forms.form import LogForm, RawExchange, answer_of, missing
from sigadapt.providers.wire.values import objects
from sigadapt.schemas.json_values import Json, compact, is_object

_NAME = "a line of a fine-tuning file"


def _is_example(row: Json) -> bool:
    if isinstance(row.get("messages"), list):
        return row.keys().isdisjoint(("model", "response", "request"))
    contents = objects(row.get("contents"))
    return bool(contents) and contents[-1].get("role") == "model" and "response" not in row


def _exchanges(row: Json) -> Iterator[RawExchange]:
    rows_key = "messages" if "messages" in row else "contents"
    role = "assistant" if rows_key == "messages" else "model"
    messages: list[Any] = row[rows_key]
    rest = {key: value for key, value in row.items() if key != rows_key}
    digest = hashlib.sha256(compact(rest).encode())
    has_answer = False
    for place, message in enumerate(messages):
        digest.update(f"{compact(message)}\n".encode())
        if place == 0 or not is_object(message) or message.get("role") != role:
            continue
        has_answer = True
        if message.get("weight") == 0:
            continue
        answer: Json = {name: value for name, value in message.items() if name != "weight"}
        response = {"candidates": [{"content": answer, "finishReason": "STOP"}]}
        if role == "assistant":
            response = answer_of(answer)
        request = {**rest, rows_key: [_without_weight(earlier) for earlier in messages[:place]]}
        yield RawExchange(request=request, response=response, digest=digest.hexdigest())
    if not has_answer:
        raise missing(_NAME, f"the answer is missing: no message of the role {role} follows another")


def _without_weight(message: Any) -> Any:
    if not is_object(message) or "weight" not in message:
        return message
    plain: Json = {**message}
    plain.pop("weight")
    return plain


FORM = LogForm(_is_example, _exchanges)
