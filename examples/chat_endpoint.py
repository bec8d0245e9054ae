"""A chat with a page that is one HTML file: text and calls appear as they come, a button approves a payment.

POST /ask and POST /decide answer with AG-UI's events, and end with what waits (`approve`) or the answer.
GET /chat returns what a page shows after a reload. In the middle of a run, that page reads on from /stream,
and its Stop button posts to /stop.

    pip install fastapi uvicorn
    python examples/chat_endpoint.py [openai/gpt-4o-mini]     # then open http://127.0.0.1:8000
"""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from bank import AGENT, serve
from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse, Response, StreamingResponse
from pydantic import BaseModel

from sigadapt import SigadaptError, ui

CHATS = ui.Chats(AGENT, os.environ.get("CHATS", "chats.db"))
USER = "ada"  # who is logged in: take it from your session, never from the body
app = FastAPI()


class Question(BaseModel):
    """The body of /ask."""

    question: str
    chat: str = ""


class Decision(BaseModel):
    """The body of /decide: by the id of each request, whether the person approved it."""

    chat: str
    decisions: dict[str, bool]


@app.post("/ask")
async def ask(body: Question) -> StreamingResponse:
    """Run the agent on a message."""
    message = {"id": uuid4().hex, "role": "user", "content": body.question}
    return run(body.chat or uuid4().hex, messages=[message])


@app.post("/decide")
async def decide(body: Decision) -> StreamingResponse:
    """Carry out decisions, and run the agent on."""
    payloads = {key: {"approved": approved} for key, approved in body.decisions.items()}
    resume = [{"interruptId": key, "status": "resolved", "payload": value} for key, value in payloads.items()]
    return run(body.chat, messages=[], resume=resume)


def run(chat: str, **members: Any) -> StreamingResponse:
    """Return what a run of AG-UI writes."""
    try:
        texts = CHATS.ag_ui({"threadId": chat, "runId": uuid4().hex, **members}, USER)
    except SigadaptError as error:
        raise HTTPException(400, str(error)) from error
    return streamed(chat, texts)


def streamed(chat: str, texts: AsyncIterator[str]) -> StreamingResponse:
    """Return a stream with the page's own events around those of AG-UI."""
    return StreamingResponse(events(chat, texts), media_type="text/event-stream")


async def events(chat: str, texts: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the key of the chat, the events of the run, and how it ended."""
    yield f"event: chat\ndata: {json.dumps(chat)}\n\n"
    async for text in texts:
        yield text
    for part in [part for message in CHATS.messages(chat, USER)[-1:] for part in message["parts"]]:
        if part.get("state") == "approval-requested":
            call = f"{part['toolName']} {json.dumps(part['input'], separators=(',', ':'))}"
            rows = [[part["approval"]["id"], part["toolCallId"], call]]
            yield f"event: approve\ndata: {json.dumps(rows)}\n\n"
        elif part["type"] == "text":
            yield f"event: answer\ndata: {json.dumps(part['text'])}\n\n"


@app.get("/chat")
async def show(chat: str) -> list[dict[str, Any]]:
    """What a page shows of a chat after a reload."""
    return CHATS.messages(chat, USER)


@app.get("/stream")
async def read_on(chat: str) -> Response:
    """What is left of the run under way."""
    texts = await CHATS.resume(chat, USER, form="ag_ui")
    return Response(status_code=204) if texts is None else streamed(chat, texts)


@app.post("/stop")
async def stop(chat: str) -> bool:
    """End the run under way, after the tools that have begun."""
    return await CHATS.stop(chat, USER)


@app.get("/")
async def page() -> FileResponse:
    """The page."""
    return FileResponse(Path(__file__).with_name("chat_page.html"))


if __name__ == "__main__":
    serve(app)
