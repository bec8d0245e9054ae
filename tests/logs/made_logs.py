"""Lines of logs that tests make: what users, models and tools said, as requests with their answers."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

import json
from typing import Any

CITIES = ["Lima", "Oslo", "Bonn", "Kyiv", "Riga", "Cork", "Graz", "Pisa"]
Event = dict[str, Any]


def tool(name: str, description: str = "", **properties: Any) -> dict[str, Any]:
    """A function's declaration of chat completions; a property is a schema, or the name of a type."""
    schemas = {
        key: value if isinstance(value, dict) else {"type": value} for key, value in properties.items()
    }
    parameters = {
        "type": "object",
        "properties": schemas,
        "required": list(schemas),
        "additionalProperties": False,
    }
    function = {"name": name, "description": description or name, "parameters": parameters}
    return {"type": "function", "function": function}


WEATHER = tool("get_weather", "Weather of a city.", city="string")
CLOCK = tool("get_time", "Time in a city.", city="string")
REFUND = tool("refund", "Refund an order.", order="integer", cents="integer")


def user(text: str) -> Event:
    return {"role": "user", "content": text}


def model(text: str | None = None, *calls: tuple[str, str, Any]) -> Event:
    """What a model said: its words, and its calls as an id, a name and arguments."""
    tool_calls = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for call_id, name, args in calls
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": tool_calls} if calls else {})}


def result(call_id: str, value: Any) -> Event:
    return {"role": "tool", "tool_call_id": call_id, "content": value}


def log(events: list[Event], tools: Any = (WEATHER,), system: str = "", **beside: Any) -> list[Any]:
    """A line for each answer of the model, as an application logs request by request."""
    head = [{"role": "system", "content": system}] if system else []
    name = beside.pop("conversation", None)
    lines: list[Any] = []
    for number, event in enumerate(events):
        if event["role"] != "assistant":
            continue
        request = {"model": "m", "messages": [*head, *events[:number]], "tools": [*tools], **beside}
        finish = "tool_calls" if event.get("tool_calls") else "stop"
        line = {"request": request, "response": {"choices": [{"message": event, "finish_reason": finish}]}}
        lines.append(line if name is None else {**line, "conversation": name})
    return lines


def asks(question: str, name: str, args: Any, value: Any = "ok", call_id: str = "c1") -> list[Event]:
    """A turn with one call, its result, and the answer."""
    return [user(question), model(None, (call_id, name, args)), result(call_id, value), model("Done.")]


def turns(count: int, tag: str, *, counts: bool = False) -> list[Event]:
    """A conversation of turns with a call each; `counts` has ids that a server counts from one on."""
    events: list[Event] = []
    for number in range(count):
        call_id = f"call_{number + 1}" if counts else f"call_{tag}Xy7{number}aB9"
        question = f"{tag}: weather on day {number}?"
        events += asks(question, "get_weather", {"city": f"{tag}{number}"}, f"{number} C", call_id)[:3]
        events.append(model(f"It is {number} C in {tag}."))
    return events


def weather_log(system: str = "", **beside: Any) -> list[Any]:
    """A conversation about each of `CITIES`."""
    lines: list[Any] = []
    for number, city in enumerate(CITIES):
        events = asks(f"Weather in {city}?", "get_weather", {"city": city}, "18 C", f"c{number}")
        lines += log(events, (WEATHER, CLOCK), system, **beside)
    return lines
