"""An agent behind AG-UI's own client: a page shows each call, and a payment waits for a click.

FastAPI serves the page and two endpoints: POST /agent is what `HttpAgent` calls, and GET /agent returns what
a page shows after a reload.

    pip install fastapi uvicorn
    npm install --prefix examples @ag-ui/client@1 @ag-ui/core@1 esbuild
    (cd examples/ag_ui_page && npx esbuild chat.js --bundle --outfile=page.js)
    python examples/ag_ui.py [openai/gpt-4o-mini]     # then open http://127.0.0.1:8000
"""

import os
from pathlib import Path
from typing import Any

import dspy
import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from played import bank, language_model
from starlette.staticfiles import StaticFiles

import sigadapt
from sigadapt import SigadaptError, ToolDecl, ui


def get_balance() -> str:
    """The balance of the account."""
    return "620 EUR"


def pay(to: str, eur: int) -> str:
    """Pay somebody."""
    return f"Paid {eur} EUR to {to}."


HERE = Path(__file__).parent
AGENT = sigadapt.ReAct(
    "question -> answer", tools=[get_balance, ToolDecl.of(pay, requires_confirmation=True)]
)
CHATS = ui.Chats(AGENT, os.environ.get("CHATS", "chats.db"))
USER = "ada"  # who is logged in: take it from your session, never from the body
app = FastAPI()


@app.post("/agent")
async def answer(body: dict[str, Any]) -> StreamingResponse:
    """Run the agent, from a message or from replies to interrupts."""
    try:
        texts = CHATS.ag_ui(body, USER)
    except SigadaptError as error:
        raise HTTPException(400, str(error)) from error
    return StreamingResponse(texts, media_type="text/event-stream")


@app.get("/agent")
async def show(chat: str) -> list[dict[str, Any]]:
    """What a page shows after a reload, and what the chat waits for."""
    return CHATS.messages(chat, USER, form="ag_ui")


app.mount("/", StaticFiles(directory=os.environ.get("PAGE", HERE / "ag_ui_page"), html=True))

if __name__ == "__main__":
    with language_model(bank) as lm:
        dspy.configure(lm=lm, adapter=sigadapt.ChatAdapter(confirm="raise"))
        uvicorn.run(app, port=int(os.environ.get("PORT", "8000")), log_level="warning")
