"""One request of a program with tools over the loopback provider, and what of its body a test looks at."""

import asyncio
import contextlib
import json
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import dspy
from support import Talk, Turns, get_weather, is_array, is_object, lm_of

import sigadapt
from sigadapt import Change
from sigadapt.testing import Answer, LoopbackProvider, Received

Json = dict[str, Any]
WIRES = ("openai", "responses", "anthropic", "gemini", "ollama")
ROUTES = [
    (wire, engine) for wire in WIRES for engine in ("auto", "litellm") if (wire, engine) != ("ollama", "auto")
]
"""Every wire over every engine that speaks it."""
DONE = Answer(text="[[ ## answer ## ]]\nDone.\n\n[[ ## completed ## ]]")


class Sent(NamedTuple):
    """What arrived, the changes on record, what the program got, and the model that was asked."""

    received: Sequence[Received]
    changes: list[Change]
    out: Any
    lm: Any

    @property
    def body(self) -> Any:
        """The body of the last request."""
        return self.received[-1].body

    @property
    def bodies(self) -> list[Json]:
        return [each.body for each in self.received]

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
    is_async: bool = False,
    **inputs: Any,
) -> Sent:
    """Ask once, and get an answer or several; `lm` has more of the model, `options` of the adapter."""
    script: Any = answer if callable(answer) or is_array(answer) else [answer]
    with LoopbackProvider(script) as provider:
        model: Any = lm_of(provider, wire, engine, **{"cache": False, "num_retries": 0, **(lm or {})})
        is_made = isinstance(adapter, dspy.Adapter)
        made = (
            adapter
            if is_made
            else adapter(**{"tool_calling": "native", "on_invalid": "keep", **(options or {})})
        )
        with dspy.context(lm=model, adapter=made):
            program: Any = dspy.Predict(signature)
            program.demos = list(demos)
            given = {"question": "Hm?", "tools": [get_weather], **inputs}
            out = asyncio.run(program.acall(**given)) if is_async else program(**given)
    changes = [change for entry in model.history for change in entry.get("changes") or ()]
    return Sent(provider.received, changes, out, model)


class Failing:
    """A hook that keeps the changes of a request that fails."""

    changes: Sequence[Change] = ()

    def on_error(self, error: Any, context: Any) -> None:
        self.changes = context.changes


def changes_of(model: str, **inputs: Any) -> list[Change]:
    """What changes of a request on its way to a model behind LiteLLM, which nobody answers."""
    hook = Failing()
    lm = dspy.LM(
        model, engine="litellm", api_base="http://127.0.0.1:9", api_key="k", cache=False, num_retries=0
    )
    adapter = sigadapt.ChatAdapter(tool_calling="native", hooks=[hook])
    with dspy.context(lm=lm, adapter=adapter), contextlib.suppress(dspy.LMError):
        dspy.Predict(Talk)(**{"question": "Hm?", "tools": [get_weather], **inputs})
    return [*hook.changes]


class Engine:
    """An engine of the user's own, which calls the first tool and keeps what it was asked."""

    supports_function_calling, supports_reasoning, supports_response_schema = True, True, False
    supported_params = ("tools",)

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def complete(self, request: Any) -> Any:
        self.asked.append(request)
        call = dspy.lm15.ToolCallPart(id="call_1", name=request.tools[0].name, input={"text": "x"})
        message = dspy.lm15.Message.assistant((call,))
        how: Any = {"finish_reason": "tool_call", "usage": dspy.lm15.Usage()}
        return dspy.lm15.Response(id="r", model=request.model, message=message, **how)


class Server:
    """A provider over a conversation: it answers with the bodies that it is given, and keeps what it gets."""

    def __init__(
        self, provider: LoopbackProvider, answers: list[bytes], wire: str, engine: str, lm: Json
    ) -> None:
        self.provider, self.answers, self.wire = provider, answers, wire
        self.lm: Any = lm_of(provider, wire, engine, **{"cache": False, "num_retries": 0, **lm})

    def ask(self, *bodies: Any, options: Json | None = None, is_async: bool = False, **inputs: Any) -> Any:
        """The prediction of one question, which is answered so; the last body repeats."""
        self.answers[:] = [json.dumps(body).encode() for body in bodies]
        made: Any = sigadapt.ChatAdapter
        adapter = made(**{"tool_calling": "native", "on_invalid": "keep", **(options or {})})
        with dspy.context(lm=self.lm, adapter=adapter):
            predict, given = dspy.Predict(Turns), {"question": "?", "tools": [get_weather], **inputs}
            return asyncio.run(predict.acall(**given)) if is_async else predict(**given)

    @property
    def sent(self) -> list[Json]:
        return [request.body for request in self.provider.received]

    @property
    def changes(self) -> list[str]:
        """Why something was changed in the last request."""
        return [change.why for change in self.lm.history[-1].get("changes") or ()]


@contextlib.contextmanager
def serving_bodies(wire: str, engine: str = "auto", **lm: Any) -> Generator[Server]:
    answers: list[bytes] = []
    with LoopbackProvider(lambda _: answers.pop(0) if len(answers) > 1 else answers[0]) as provider:
        yield Server(provider, answers, wire, engine, lm)


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
