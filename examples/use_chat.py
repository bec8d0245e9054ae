"""An agent behind `useChat` of the AI SDK: a page shows each call, and a payment waits for a click.

POST /api/chat runs the agent or carries out a decision. GET /api/chat returns what a page shows after a
reload; a page that was reloaded in the middle of a run reads on from /api/chat/ID/stream, and its Stop button
posts to /api/chat/ID/stop.

    pip install fastapi uvicorn
    npm install --prefix examples ai@6 @ai-sdk/react@3 react@19 react-dom@19 esbuild
    (cd examples/use_chat_page && npx esbuild page.jsx --bundle --jsx=automatic --outfile=page.js)
    python examples/use_chat.py [openai/gpt-4o-mini]     # then open http://127.0.0.1:8000
"""

import os
from pathlib import Path
from typing import Any

from bank import AGENT, serve
from fastapi import FastAPI, HTTPException
from fastapi.responses import Response, StreamingResponse
from starlette.staticfiles import StaticFiles

from sigadapt import SigadaptError, ui

CHATS = ui.Chats(AGENT, os.environ.get("CHATS", "chats.db"))
USER = "ada"  # who is logged in: take it from your session, never from the body
PAGE = os.environ.get("PAGE", Path(__file__).with_name("use_chat_page"))
app = FastAPI()


@app.post("/api/chat")
async def answer(body: dict[str, Any]) -> StreamingResponse:
    """Run the agent, from a message or from decisions."""
    try:
        texts = CHATS.ai_sdk(body, USER)
    except SigadaptError as error:
        raise HTTPException(400, str(error)) from error
    return StreamingResponse(texts, headers=ui.AI_SDK_HEADERS)


@app.get("/api/chat")
async def show(chat: str) -> list[dict[str, Any]]:
    """What a page shows after a reload."""
    return CHATS.messages(chat, USER)


@app.get("/api/chat/{chat}/stream")
async def read_on(chat: str) -> Response:
    """What is left of the run under way."""
    texts = await CHATS.resume(chat, USER)
    if texts is None:
        return Response(status_code=204)
    return StreamingResponse(texts, headers=ui.AI_SDK_HEADERS)


@app.post("/api/chat/{chat}/stop")
async def stop(chat: str) -> bool:
    """End the run under way, after the tools that have begun."""
    return await CHATS.stop(chat, USER)


app.mount("/", StaticFiles(directory=PAGE, html=True))

if __name__ == "__main__":
    serve(app)
