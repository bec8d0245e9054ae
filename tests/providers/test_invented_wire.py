"""A wire that nobody speaks yet: one file that reads, writes and streams it is enough to send with it.

sigadapt/providers/README.md, on adding a provider, begins with it.
"""

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dspy
import pytest
from dspy import lm15
from internals import BY_WIRE, PROVIDERS, ROUTES, Reading, Response, Route, Server
from support import Turns

import sigadapt
from sigadapt import ToolResults
from sigadapt.json_values import Json
from sigadapt.providers.provider import Provider, Result, Role
from sigadapt.providers.route import RouteModels
from sigadapt.providers.usage import AnswerUsage, answer_usage, count_in
from sigadapt.providers.wire.values import RawCall
from sigadapt.providers.wire.writing import arguments_of, functions_chosen

NAME = "acme"


class Acme(Provider):
    """Turns that say and want.

    An answer: `{"acme": 1, "says": "Let me look.", "wants": [{"ref": "c1", "tool": "f", "with": {}}],
    "end": "wants"}`; its stream has the same members in pieces. A request: `{"model": "m", "most": 77,
    "rules": "Be brief.", "talk": [{"who": "user", "says": "Weather?"}], "toolbox": [...]}`.
    """

    name = NAME
    path = "/talk"
    arguments_as_objects = True

    def is_body(self, body: Json) -> bool:
        return "acme" in body

    def read(self, body: Json) -> list[Reading]:
        calls: list[RawCall] = [(want["ref"], want["tool"], want["with"]) for want in body.get("wants", ())]
        finish = {"wants": "tool_calls", "done": "stop"}.get(str(body.get("end")))
        return [Reading(body.get("says"), None, calls, finish)]

    def usage(self, body: Json) -> AnswerUsage | None:
        spent: Json = body.get("spent") or {}
        return answer_usage(spent, read=count_in(spent, "in"), written=count_in(spent, "out"))

    def assemble(self, events: Iterable[Json]) -> Json:
        whole: Json = {"acme": 1, "says": "", "wants": []}
        for event in events:
            whole["says"] += event.get("says", "")
            whole["wants"] += event.get("wants", [])
            whole["end"] = event.get("end")
            whole["spent"] = event.get("spent")
        return whole

    def message(self, role: Role, content: str | Sequence[Json], route: Route) -> Json:
        return {"who": role, "says": content}

    def turn(self, message: Json, state: Json | None, route: Route) -> list[Json]:
        wants = [
            {"ref": call["id"], "tool": call["function"]["name"], "with": arguments_of(call)}
            for call in message["tool_calls"]
        ]
        return [{"who": "assistant", "says": message["content"], "wants": wants}]

    def results(self, results: Sequence[Result], turn: Sequence[Json], route: Route) -> list[Json]:
        return [{"who": "tool", "ref": result.id, "gave": result.text} for result in results]

    def tools(self, tools: list[Json]) -> list[Json]:
        return [{"name": tool["function"]["name"], "takes": tool["function"]["parameters"]} for tool in tools]

    def tool_choice(self, choice: str | Json | None, *, parallel: bool | None = None) -> Json:
        mode, _ = functions_chosen(choice) or ("auto", [])
        return {} if choice is None else {"tool_choice": mode}

    def body(self, written: Json) -> Json:
        names = {
            "messages": "talk",
            "max_completion_tokens": "most",
            "tools": "toolbox",
            "tool_choice": "pick",
        }
        renamed = {names.get(key, key): part for key, part in written.items()}
        if renamed["talk"] and "role" in renamed["talk"][0]:  # the instructions, as lm15 wrote them
            renamed["rules"] = renamed["talk"].pop(0)["content"]
        return renamed


PROVIDER = Acme(Route(NAME, "lm15", models=RouteModels(server=NAME)))


@pytest.fixture
def in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row that a contributor adds to `sigadapt/providers/__init__.py`."""
    monkeypatch.setitem(BY_WIRE, NAME, PROVIDER)
    tables = {
        "PROVIDERS": (PROVIDERS, (*PROVIDERS, PROVIDER)),
        "ROUTES": (ROUTES, (*ROUTES, *PROVIDER.routes)),
    }
    for module in [each for key, each in sys.modules.items() if key.startswith("sigadapt")]:
        for key, (old, new) in tables.items():
            if getattr(module, key, None) is old:
                monkeypatch.setattr(module, key, new)


CALL = {"acme": 1, "says": "Let me look.", "wants": [{"ref": "c1", "tool": "f", "with": {"city": "Paris"}}]}
ANSWERS = [{**CALL, "end": "wants"}, {"acme": 1, "says": "[[ ## answer ## ]]\nSunny.", "end": "done"}]
SPENT = {"in": 90, "out": 10}
# An answer may have the shape of another wire's, too: it is read as that of the provider that was asked.
LIKE_ANTHROPIC: Json = {"type": "message", "role": "assistant", "content": []}


def pieces(answer: Mapping[str, Any]) -> list[bytes]:
    says = answer["says"]
    events = [
        {"says": says[:6]},
        {"says": says[6:]},
        {"wants": answer.get("wants", [])},
        {"end": answer["end"], "spent": SPENT},
    ]
    return [f"data: {json.dumps({'acme': 1, **event})}\n\n".encode() for event in events]


class Count:
    """A hook that keeps the tokens of each answer, and the wire that it was read in."""

    def __init__(self) -> None:
        self.totals: list[int | None] = []
        self.dialects: list[str | None] = []

    def after_choice(self, choice: sigadapt.Choice, context: Any) -> None:
        self.totals.append(choice.usage and choice.usage.total_tokens)
        self.dialects.append(choice.dialect)


def f(city: str) -> str:
    """Return the weather of a city."""
    return city


@pytest.mark.usefixtures("in_the_table")
@pytest.mark.parametrize("beside", [{}, LIKE_ANTHROPIC], ids=["its own", "another"])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_one_file_is_enough_to_send(*, is_streamed: bool, beside: Json) -> None:
    """Send and read, whole and streamed.

    request-shaping: A wire of its own is sent from one file.
    response-choice: An answer is read as that of the provider asked.
    """
    sent: list[tuple[str, Json]] = []
    count = Count()

    async def respond(_: str, path: str, __: Mapping[str, str], content: bytes) -> Response:
        answer = {**ANSWERS[len(sent)], **beside}
        sent.append((path, json.loads(content)))
        if json.loads(content).get("stream"):
            return Response(200, "text/event-stream", pieces(answer))
        return Response(200, "application/json", [json.dumps({**answer, "spent": SPENT}).encode()])

    server = Server(respond)
    access = lm15.AccessPolicy(provider=NAME, base_url=server.url, env_keys=("ACME_API_KEY",))
    definition = lm15.ProviderDefinition.chat(access, compat=lm15.OpenAIChatCompat())
    lm15.register_provider(definition, replace=True)
    try:
        lm = dspy.LM(f"{NAME}/m", api_key="k", max_tokens=77, cache=False, num_retries=0)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native", hooks=[count])):
            first = asked(is_streamed=is_streamed, question="Weather?", tools=[f])
            results = ToolResults.of(first.calls, ["sunny"])
            last = asked(is_streamed=is_streamed, question="Weather?", tools=[f], results=results)
    finally:
        server.stop()
        lm15.unregister_provider(NAME)
    assert [(call.id, call.name, call.args) for call in first.calls] == [("c1", "f", {"city": "Paris"})]
    assert (first.calls.text, last.answer) == ("Let me look.", "Sunny.")
    assert (count.totals, count.dialects) == ([100, 100], [NAME, NAME])
    (first_path, _), (path, body) = sent
    assert (first_path, path) == ("/talk", "/talk")
    assert body["talk"] == [
        {"who": "user", "says": body["talk"][0]["says"]},
        {"who": "assistant", "says": "Let me look.", "wants": CALL["wants"]},
        {"who": "tool", "ref": "c1", "gave": "sunny"},
    ]
    assert (body["model"], body["most"]) == ("m", 77)
    assert body["rules"].startswith("Answer, or use")
    assert [tool["name"] for tool in body["toolbox"]] == ["f"]


def asked(*, is_streamed: bool, **inputs: Any) -> Any:
    if not is_streamed:
        return dspy.Predict(Turns)(**inputs)

    async def run() -> Any:
        program: Any = dspy.streamify(dspy.Predict(Turns))
        items: list[Any] = [item async for item in program(**inputs)]
        return items[-1]

    return asyncio.run(run())
