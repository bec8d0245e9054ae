"""One request of a program with tools over the loopback provider, and what of its body a test looks at."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import dspy
from support import Talk, get_weather, is_array, is_object, lm_of

import sigadapt
from sigadapt import Change
from sigadapt.testing import Answer, LoopbackProvider

Json = dict[str, Any]
WIRES = ("openai", "responses", "anthropic", "gemini", "ollama")
ROUTES = [
    (wire, engine) for wire in WIRES for engine in ("auto", "litellm") if (wire, engine) != ("ollama", "auto")
]
"""Every wire over every engine that speaks it."""
DONE = Answer(text="[[ ## answer ## ]]\nDone.\n\n[[ ## completed ## ]]")


class Sent(NamedTuple):
    """What arrived, the changes on record, and what the program got."""

    body: Any
    changes: list[Change]
    out: Any

    @property
    def whats(self) -> list[tuple[str, str]]:
        """Where and what was changed; each change says why."""
        assert all(change.why for change in self.changes)
        return [(change.where, change.what) for change in self.changes]


def send(
    wire: str = "openai",
    engine: str = "auto",
    answer: Any = DONE,
    *,
    signature: Any = Talk,
    lm: Json | None = None,
    demos: Sequence[Any] = (),
    adapter: Any = sigadapt.ChatAdapter,
    options: Json | None = None,
    **inputs: Any,
) -> Sent:
    """Ask once; `lm` has more of the model, `options` of the adapter."""
    with LoopbackProvider([answer]) as provider:
        model: Any = lm_of(provider, wire, engine, **{"cache": False, "num_retries": 0, **(lm or {})})
        made = adapter(**{"tool_calling": "native", "on_invalid": "keep", **(options or {})})
        with dspy.context(lm=model, adapter=made):
            program: Any = dspy.Predict(signature)
            program.demos = list(demos)
            out = program(**{"question": "Hm?", "tools": [get_weather], **inputs})
        (received,) = provider.received
    return Sent(received.body, [*(model.history[-1].get("changes") or ())], out)


def history(*events: Json, saved: bool = False) -> dspy.History:
    """A conversation of these events, or the same as it is loaded from JSON."""
    made = dspy.History(messages=list(events))
    return dspy.History.model_validate_json(made.model_dump_json()) if saved else made


def rows(body: Json) -> list[Json]:
    """The messages of a request on any wire."""
    return body.get("messages") or body.get("contents") or body["input"]


def members(value: Any, key: str) -> list[Any]:
    """The values under a key, at any depth."""
    if is_object(value):
        found = [each for part in value.values() for each in members(part, key)]
        return [*found, value[key]] if key in value else found
    return [each for part in value for each in members(part, key)] if is_array(value) else []


def names_of(body: Json) -> list[str]:
    """The names of the declared functions on any wire."""
    return [each for each in members(body.get("tools", []), "name") if isinstance(each, str)]
