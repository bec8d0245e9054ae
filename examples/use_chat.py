"""An agent behind `useChat` of the AI SDK: a page shows each call, and a payment waits for a click.

FastAPI serves the page and two endpoints: POST /api/chat runs the agent or carries out a decision, and
GET /api/chat returns what a page shows after a reload.

    pip install fastapi uvicorn
    npm install --prefix examples ai@6 @ai-sdk/react@3 react@19 react-dom@19 esbuild
    (cd examples/use_chat_page && npx esbuild page.jsx --bundle --jsx=automatic --outfile=page.js)
    python examples/use_chat.py [openai/gpt-4o-mini]     # then open http://127.0.0.1:8000
"""

import os
from pathlib import Path
from typing import Any

import dspy
import uvicorn
from bank import AGENT, script
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from played import language_model
from starlette.staticfiles import StaticFiles

import sigadapt
from sigadapt import SigadaptError, ui

CHATS = ui.Chats(AGENT, os.environ.get("CHATS", "chats.db"))
USER = "ada"  # who is logged in: take it from your session, never from the body
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


app.mount(
    "/", StaticFiles(directory=os.environ.get("PAGE", Path(__file__).with_name("use_chat_page")), html=True)
)

if __name__ == "__main__":
    with language_model(script) as lm:
        dspy.configure(lm=lm, adapter=sigadapt.ChatAdapter(confirm="raise"))
        uvicorn.run(app, port=int(os.environ.get("PORT", "8000")), log_level="warning")
