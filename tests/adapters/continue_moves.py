"""One step of many conversations, each over its own column, for `test_change_of_provider.py` in a process.

Reads, by conversation, its column, what it saved so far as JSON, and the turns that the provider gives.
Writes what was saved then, what was sent, and what was recorded.
"""

import json
import sys
from typing import Any

import dspy
from support import Talk
from wire_bodies import serving
from wire_matrix import declared

import sigadapt
from sigadapt import ToolCalls, ToolDecls, ToolResults

CLIENT_TOOLS: dict[str, dict[str, Any]] = {
    "anthropic": {"type": "bash_20250124", "name": "bash"},
    "responses": {"type": "shell", "environment": {"type": "local"}},
}


def step(column: str, saved: dict[str, Any], turns: list[Any]) -> dict[str, Any]:
    """Give the results of the last calls, or ask, and save what comes."""
    events = dspy.History.model_validate(saved["history"])
    inputs: dict[str, Any] = {"question": None if events.messages else "Weather?"}
    if events.messages:
        calls = ToolCalls.model_validate(events.messages[-1]["calls"])
        inputs["results"] = ToolResults.of(calls, ["sunny"] * len(calls))
    own = [CLIENT_TOOLS[column]] if column in CLIENT_TOOLS else []
    tools = ToolDecls([declared("get_weather"), *own])
    with serving(column, *turns) as served:
        lm = served.lm()
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
            out = dspy.Predict(Talk)(tools=tools, history=events, **inputs)
        sent, entry = served.sent, lm.history[0]
    event = {name: value for name, value in inputs.items() if value is not None}
    history = dspy.History(messages=[*events.messages, {**event, "calls": out.calls}])
    changes = [[change.what, change.why] for change in entry.get("changes") or ()]
    return {"history": history.model_dump(mode="json"), "sent": sent, "changes": changes}


if __name__ == "__main__":
    asked: dict[str, Any] = json.load(sys.stdin)
    json.dump({name: step(*each) for name, each in asked.items()}, sys.stdout)
