"""An agent behind `useChat` of the AI SDK: a page shows each call, and a payment waits for a click.

FastAPI serves the page and two endpoints:
- POST /api/chat runs the agent and streams what happens. Decisions go on with the run that waits.
- GET /api/chat tells what a conversation holds, as messages of `useChat`.

    pip install fastapi uvicorn
    npm install --prefix examples ai@6 @ai-sdk/react@3 react@19 react-dom@19 esbuild
    (cd examples && npx esbuild use_chat_page.jsx --bundle --jsx=automatic --outfile=use_chat_page.js)
    python examples/use_chat.py [openai/gpt-4o-mini]     # then open http://127.0.0.1:8000
"""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import dspy
import uvicorn
from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse, StreamingResponse
from played import language_model
from pydantic import BaseModel

import sigadapt
from sigadapt import InputNeeded, ToolDecl, ToolDecls, ui
from sigadapt.events import Ended, Event, Failed, ResultReady
from sigadapt.testing import Answer, Call, Received

SCRIPT = Path(os.environ.get("PAGE", Path(__file__).with_name("use_chat_page.js")))


def get_balance() -> str:
    """The balance of the account."""
    return "620 EUR"


def pay(to: str, eur: int) -> str:
    """Pay somebody."""
    return f"Paid {eur} EUR to {to}."


TOOLS = ToolDecls([get_balance, ToolDecl.of(pay, requires_confirmation=True)])
AGENT = sigadapt.ReAct("question -> answer", tools=TOOLS)


class Chat(BaseModel):
    """One conversation: what was said and done, and the run that waits for a person, as JSON."""

    history: dspy.History = dspy.History(messages=[])
    waiting: str | None = None


CHATS: dict[str, Chat] = {}  # a database, in production: see examples/chat_endpoint.py
app = FastAPI()


@app.get("/")
async def page() -> HTMLResponse:
    """The page, which is one script."""
    return HTMLResponse('<!doctype html><div id="root"></div><script src="page.js"></script>')


@app.get("/page.js")
async def script_of_page() -> FileResponse:
    """The page's script."""
    return FileResponse(SCRIPT)


@app.get("/api/chat")
async def show(chat: str) -> list[dict[str, Any]]:
    """What a page shows after a reload."""
    return list(messages_of(CHATS.get(chat, Chat())))


@app.post("/api/chat")
async def ask(body: dict[str, Any]) -> StreamingResponse:
    """Run the agent, from a question or from decisions."""
    chat, last = CHATS.setdefault(body["id"], Chat()), body["messages"][-1]
    decisions = {
        part["approval"]["id"]: part["approval"]["approved"]
        for part in last["parts"]
        if part.get("state") == "approval-responded"
    }
    waiting, chat.waiting = chat.waiting, None  # a decision counts once: a second click finds nothing
    if decisions and waiting:
        events, message = resumed(chat, waiting, decisions), last["id"]
    else:
        text = "".join(part["text"] for part in last["parts"] if part["type"] == "text")
        events, message = run(chat, question=text, history=chat.history), None
    return StreamingResponse(ui.ai_sdk(events, message_id=message), headers=ui.AI_SDK_HEADERS)


async def run(chat: Chat, **inputs: Any) -> AsyncIterator[Event]:
    """Yield the events of a run, and keep what it leaves: a history, or a run that waits."""
    async for event in sigadapt.stream(AGENT, **inputs):
        if isinstance(event, Ended):
            chat.history = event.prediction.history
        elif isinstance(event, Failed) and isinstance(event.error, InputNeeded):
            chat.waiting = event.error.model_dump_json()
        yield event


async def resumed(chat: Chat, waiting: str, decisions: dict[str, bool]) -> AsyncIterator[Event]:
    """Run the turn that waited, show its results, and go on."""
    history = await InputNeeded.model_validate_json(waiting).aresume(TOOLS, decisions)
    for result in sigadapt.rounds(history)[-1].results:  # of calls that the page shows already
        yield ResultReady(result.call_id, result, step=1)
    async for event in run(chat, history=history):
        yield event


def messages_of(chat: Chat) -> Iterator[dict[str, Any]]:
    """Yield a conversation as messages of `useChat`."""
    error = InputNeeded.model_validate_json(chat.waiting) if chat.waiting else None
    events = chat.history.messages if error is None else [*error.history.messages, error.event]
    for number, event in enumerate(events):
        if event.get("question"):
            text = {"type": "text", "text": event["question"]}
            yield {"id": f"user-{number}", "role": "user", "parts": [text]}
        pairs = [pair for each in sigadapt.rounds([event]) for pair in each.pairs]
        # The agent's `submit` is its answer, which is a text.
        parts = [part_of(call, result) for call, result in pairs if call.name != "submit"]
        if event.get("answer"):
            parts.append({"type": "text", "text": event["answer"]})
        if error is not None and event is events[-1]:
            parts += [part_of(request.call, None, request.id) for request in error.requests]
        if parts:
            yield {"id": f"assistant-{number}", "role": "assistant", "parts": parts}


def part_of(call: Any, result: Any, approval: str | None = None) -> dict[str, Any]:
    """Return a call as `useChat` shows it, with its result or the request for a yes."""
    part = {"type": "dynamic-tool", "toolCallId": call.id, "toolName": call.name, "input": call.args}
    if approval is not None:
        return {**part, "state": "approval-requested", "approval": {"id": approval}}
    if result.is_error:
        return {**part, "state": "output-error", "errorText": str(result.value)}
    return {**part, "state": "output-available", "output": result.value}


def script(received: Received) -> Answer:
    """The model that is played: it looks at the balance, wants to pay, and says what came of it."""
    rows = received.body["messages"]
    last = max(number for number, row in enumerate(rows) if row["role"] == "user")
    results = [row["content"] for row in rows[last:] if row["role"] == "tool"]
    if not results:
        return Answer(calls=[Call("get_balance")])
    if len(results) == 1:
        return Answer(calls=[Call("pay", {"to": "Ada", "eur": 120})])
    return Answer(calls=[Call("submit", {"answer": f"You had {results[0]}. {results[1]}"})])


if __name__ == "__main__":
    with language_model(script) as lm:
        dspy.configure(lm=lm, adapter=sigadapt.ChatAdapter(confirm="raise"))
        uvicorn.run(app, port=int(os.environ.get("PORT", "8000")), log_level="warning")
