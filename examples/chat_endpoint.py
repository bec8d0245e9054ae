"""A chat with a web page: text and calls appear while they are written, and a button approves a payment.

FastAPI serves the page and two endpoints, which answer with server-sent events:

- POST /ask starts a turn. It ends with the answer, or with calls that wait for a person.
- POST /decide continues that turn with what the person decided.

    pip install fastapi uvicorn
    python examples/chat_endpoint.py [openai/gpt-4o-mini]     # then open http://127.0.0.1:8000
"""

import json
import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy
import uvicorn
from dspy.streaming import StreamListener, StreamResponse
from fastapi import FastAPI
from fastapi.responses import FileResponse, StreamingResponse
from played import language_model
from pydantic import BaseModel

import sigadapt
from sigadapt import CallListener, PartialCall, SigadaptError, ToolCalls, ToolDecl, ToolDecls, ToolResults
from sigadapt.testing import Answer, Call, Received

MOST_ROUNDS = 8
NONE = ToolResults()
PAGE = Path(__file__).with_name("chat_page.html")


def get_balance() -> str:
    """The balance of the account."""
    return "620 EUR"


def pay(to: str, eur: int) -> str:
    """Pay somebody."""
    return f"Paid {eur} EUR to {to}."


TOOLS = ToolDecls([get_balance, ToolDecl.of(pay, requires_confirmation=True)])


class Assist(dspy.Signature):
    """Help the customer of a bank, with the tools."""

    history: dspy.History = dspy.InputField()
    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    results: ToolResults | None = dspy.InputField(default=None)
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


@dataclass
class Chat:
    """One conversation: its earlier turns, and the turn that is under way."""

    events: list[dict[str, Any]] = field(default_factory=list)
    question: str = ""
    results: ToolResults = field(default_factory=ToolResults)
    calls: ToolCalls | None = None


app = FastAPI()
chats: dict[str, Chat] = {}  # yours: a database. Calls, results and histories survive JSON.


class Question(BaseModel):
    """The body of /ask."""

    question: str
    chat: str = ""


class Decision(BaseModel):
    """The body of /decide: the ids of the calls that the person approved."""

    chat: str
    approved: list[str]


@app.get("/")
def page() -> FileResponse:
    """The page."""
    return FileResponse(PAGE)


@app.post("/ask")
def ask(body: Question) -> StreamingResponse:
    """Start a turn."""
    key = body.chat or uuid.uuid4().hex
    chat = chats.setdefault(key, Chat())
    chat.question, chat.results, chat.calls = body.question, ToolResults(), None
    return StreamingResponse(turn(key, chat), media_type="text/event-stream")


@app.post("/decide")
def decide(body: Decision) -> StreamingResponse:
    """Run what needs no approval or has one, and go on with the turn."""
    chat = chats[body.chat]
    calls, chat.calls = chat.calls, None  # before anything runs, so that a second click pays nothing
    new = ToolResults() if calls is None else run(calls, set(body.approved))
    return StreamingResponse(turn(body.chat, chat, new), media_type="text/event-stream")


def run(calls: ToolCalls, approved: set[str]) -> ToolResults:
    """The results of calls. A call that needs an approval and has none is rejected."""
    requests = {request.args["call"]["id"]: request for request in calls.awaiting_confirmation(TOOLS)}
    values: list[Any] = []
    for call in calls:
        request = requests.get(call.id)
        if request is not None and call.id not in approved:
            values.append(request.rejected())
            continue
        try:
            agreed = call if request is None else request.approved()
            values.append(TOOLS[agreed.name].func(**agreed.bind(TOOLS)))
        except Exception as error:
            values.append(error)
    return ToolResults.of(calls, values)


async def turn(key: str, chat: Chat, new: ToolResults = NONE) -> AsyncIterator[str]:
    """Ask, run and ask again, until there is an answer or a call that needs an approval."""
    yield event("chat", key)
    try:
        for _ in range(MOST_ROUNDS):
            if new:
                chat.results = chat.results + new
                yield event("results", [[result.call_id, str(result.value)] for result in new])
            out: Any = None
            async for item in stream(chat):
                if isinstance(item, dspy.Prediction):
                    out = item
                elif isinstance(item, StreamResponse):
                    yield of_chunk(item.chunk)
            if not out.calls:
                chat.events.append(
                    {"question": chat.question, "results": chat.results or None, "answer": out.answer}
                )
                yield event("answer", out.answer)
                return
            if waiting := out.calls.awaiting_confirmation(TOOLS):
                chat.calls = out.calls
                yield event("approve", [[r.args["call"]["id"], r.args["call"]["args"]] for r in waiting])
                return
            new = run(out.calls, set())
        yield event("error", f"There is no answer after {MOST_ROUNDS} rounds.")
    except (SigadaptError, dspy.LMError) as error:  # the status was sent long before
        yield event("error", str(error))


def stream(chat: Chat) -> Any:
    """One request, streamed. Listeners hold the state of a stream, so they are made for each."""
    listeners = [StreamListener("answer"), CallListener("calls", partial=True)]
    program = dspy.streamify(dspy.Predict(Assist), stream_listeners=listeners)
    history = dspy.History(messages=chat.events)
    return program(history=history, question=chat.question, tools=TOOLS, results=chat.results or None)


def of_chunk(chunk: Any) -> str:
    """The event of a piece of text, of a call that is being written, or of a whole call."""
    if isinstance(chunk, str):
        return event("text", chunk)
    if isinstance(chunk, PartialCall):
        return event("partial", [chunk.index, chunk.name, chunk.arguments])
    return event("call", [[call.index, call.id, str(call)] for call in (*chunk, *chunk.invalid)])


def event(kind: str, data: Any) -> str:
    """A server-sent event."""
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"


def script(received: Received) -> Answer:
    """The model that is played: it looks at the balance, wants to pay, and says what came of it."""
    rows = received.body["messages"]
    last = max(number for number, row in enumerate(rows) if row["role"] == "user")
    results = [row["content"] for row in rows[last:] if row["role"] == "tool"]
    if not results:
        return Answer(text="Let me look at your account.", calls=[Call("get_balance")])
    if len(results) == 1:
        return Answer(calls=[Call("pay", {"to": "Ada", "eur": 120})])
    return Answer(text=f"You had {results[0]}. {results[1]}")


if __name__ == "__main__":
    with language_model(script) as lm:
        dspy.configure(lm=lm, adapter=sigadapt.ChatAdapter(on_invalid="reask"))
        uvicorn.run(app, port=int(os.environ.get("PORT", "8000")), log_level="warning")
