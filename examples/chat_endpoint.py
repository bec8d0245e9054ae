"""A chat with a web page: text and calls appear while they are written, and a button approves a payment.

FastAPI serves the page and three endpoints; the last two answer with server-sent events:
- GET /chat tells what a conversation holds, so that a reload of the page changes nothing.
- POST /ask starts a turn. It ends with the answer, or with calls that wait for a person.
- POST /decide continues that turn with what the person decided.

    pip install fastapi uvicorn
    python examples/chat_endpoint.py [openai/gpt-4o-mini]     # then open http://127.0.0.1:8000
"""

import json
import os
import sqlite3
import uuid
from collections.abc import AsyncIterator, Mapping
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
from sigadapt import SigadaptError, ToolCalls, ToolDecl, ToolDecls, ToolResults
from sigadapt.listeners import CallListener, PartialCall
from sigadapt.testing import Answer, Call, Received

MOST_ROUNDS = 8
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


class LateError(Exception):
    """Somebody else went on with the conversation: another tab, or a click before this one."""


class Chat(BaseModel):
    """One conversation as it is stored: its earlier turns, and the turn that is under way."""

    key: str
    version: int = 0  # how often it was stored: who comes with an older one is late
    history: dspy.History = dspy.History(messages=[])
    question: str = ""
    results: ToolResults = ToolResults()
    calls: ToolCalls | None = None  # those that wait for a person

    def waiting(self) -> ToolCalls:
        """The requests that a person has to answer."""
        return ToolCalls() if self.calls is None else self.calls.awaiting_confirmation(TOOLS)

    def decided(self, decisions: Mapping[str, bool]) -> ToolCalls | None:
        """Take the calls that wait, if these decisions are about them: an old button's are not."""
        if not decisions or {request.id for request in self.waiting()} != decisions.keys():
            raise LateError("This was decided, or the turn is over. Reload the page.")
        calls, self.calls = self.calls, None
        return calls

    def end_turn(self, answer: str | None) -> None:
        """Put the turn under way into the history."""
        event = {"question": self.question, "results": self.results or None, "answer": answer}
        if self.question and (answer or self.results):
            self.history = dspy.History(messages=[*self.history.messages, event])
        self.question, self.results, self.calls = "", ToolResults(), None


app = FastAPI()
DB = sqlite3.connect(os.environ.get("CHATS", ":memory:"), check_same_thread=False)
DB.execute("CREATE TABLE IF NOT EXISTS chats (key TEXT PRIMARY KEY, version INTEGER, state TEXT)")


def load(key: str) -> Chat:
    """The conversation as it was stored last; a new one under a new key."""
    row = DB.execute("SELECT state FROM chats WHERE key = ?", [key]).fetchone()
    if row is not None:
        return Chat.model_validate_json(row[0])
    chat = Chat(key=uuid.uuid4().hex)
    with DB:
        DB.execute("INSERT INTO chats VALUES (?, 0, ?)", [chat.key, chat.model_dump_json()])
    return chat


def store(chat: Chat) -> None:
    """Store a conversation in one transaction, unless somebody stored it since it was loaded."""
    last, chat.version = chat.version, chat.version + 1
    given = [chat.version, chat.model_dump_json(), chat.key, last]
    with DB:
        done = DB.execute("UPDATE chats SET version = ?, state = ? WHERE key = ? AND version = ?", given)
    if not done.rowcount:
        raise LateError("This conversation went on elsewhere. Reload the page.")


class Question(BaseModel):
    """The body of /ask."""

    question: str
    chat: str = ""


class Decision(BaseModel):
    """The body of /decide: by the id of each request, whether the person approved it."""

    chat: str
    decisions: dict[str, bool]


@app.get("/")
async def page() -> FileResponse:
    """The page."""
    return FileResponse(PAGE)


@app.get("/chat")
async def show(chat: str) -> dict[str, Any]:
    """What a page shows of a conversation after a reload."""
    held = load(chat)
    now = {"question": held.question, "results": held.results, "answer": None}
    turns = [*held.history.messages, *([now] if held.question else [])]
    return {"chat": held.key, "turns": [shown(turn) for turn in turns], "approve": asked(held.waiting())}


@app.post("/ask")
async def ask(body: Question) -> StreamingResponse:
    """Start a turn. One that waits for a person ends here, and its buttons decide nothing any more."""
    return StreamingResponse(turn(body.chat, body.question), media_type="text/event-stream")


@app.post("/decide")
async def decide(body: Decision) -> StreamingResponse:
    """Run what needs no approval or has one, and go on with the turn."""
    return StreamingResponse(turn(body.chat, "", body.decisions), media_type="text/event-stream")


async def turn(key: str, question: str, decisions: Mapping[str, bool] | None = None) -> AsyncIterator[str]:
    """Ask, run and ask again, until there is an answer or a call that needs an approval."""
    chat = load(key)
    yield event("chat", chat.key)
    try:
        calls = None
        if decisions is not None:
            calls = chat.decided(decisions)
        else:
            chat.end_turn(None)
            chat.question = question
        store(chat)  # before anything runs: a second click finds no request any more, and pays nothing
        for _ in range(MOST_ROUNDS):
            if calls:
                new = await calls.arun(TOOLS, decisions, timeout=30)
                chat.results, decisions = chat.results + new, None
                store(chat)
                yield event("results", [[result.call_id, str(result.value)] for result in new])
            out: Any = None
            async for item in stream(chat):
                if isinstance(item, dspy.Prediction):
                    out = item
                elif isinstance(item, StreamResponse):
                    yield of_chunk(item.chunk)
            calls = out.calls
            if not calls:
                chat.end_turn(out.answer)
                store(chat)
                yield event("answer", out.answer)
                return
            if calls.awaiting_confirmation(TOOLS):
                chat.calls = calls
                store(chat)
                yield event("approve", asked(chat.waiting()))
                return
        yield event("error", f"There is no answer after {MOST_ROUNDS} rounds.")
    except (SigadaptError, dspy.LMError, LateError) as error:  # the status was sent long before
        yield event("error", str(error))


def asked(requests: ToolCalls) -> list[list[Any]]:
    """What a page shows of requests for confirmation: the arguments whole, because `str` cuts long ones."""
    calls = [(each.id, each.call) for each in requests]
    texts = [", ".join(f"{name}={value!r}" for name, value in call.args.items()) for _, call in calls]
    return [[key, call.id, f"{call.name}({text})"] for (key, call), text in zip(calls, texts, strict=True)]


def shown(turn: dict[str, Any]) -> dict[str, Any]:
    """What a page shows of one turn: the question, each call with its result, and the answer."""
    rounds = ToolResults.model_validate(turn["results"] or ToolResults()).rounds
    calls = [
        [call.id, str(call), str(result.value)]
        for each in rounds
        for call, result in zip(each.calls.in_order(), each.results, strict=True)
    ]
    return {"question": turn["question"], "calls": calls, "answer": turn["answer"]}


def stream(chat: Chat) -> Any:
    """One request, streamed. Listeners hold the state of a stream, so they are made for each."""
    listeners = [StreamListener("answer"), CallListener("calls", partial=True)]
    program = dspy.streamify(dspy.Predict(Assist), stream_listeners=listeners)
    return program(history=chat.history, question=chat.question, tools=TOOLS, results=chat.results or None)


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
