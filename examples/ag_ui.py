"""An agent behind AG-UI's own client, with Starlette: a page shows each call, a payment waits for a click.

POST /agent is what `HttpAgent` calls, and GET /agent returns what a page shows after a reload.

    pip install starlette uvicorn
    npm install --prefix examples @ag-ui/client@1 @ag-ui/core@1 esbuild
    (cd examples/ag_ui_page && npx esbuild chat.js --bundle --outfile=page.js)
    python examples/ag_ui.py [openai/gpt-4o-mini]     # then open http://127.0.0.1:8000
"""

import os
from pathlib import Path

import dspy
import uvicorn
from bank import AGENT, script
from played import language_model
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import sigadapt
from sigadapt import SigadaptError, ui

CHATS = ui.Chats(AGENT, os.environ.get("CHATS", "chats.db"))
USER = "ada"  # who is logged in: take it from your session, never from the body
PAGE = os.environ.get("PAGE", Path(__file__).with_name("ag_ui_page"))


async def answer(request: Request) -> Response:
    """Run the agent, from a message or from replies to interrupts."""
    try:
        texts = CHATS.ag_ui(await request.json(), USER)
    except (SigadaptError, ValueError) as error:  # no body of AG-UI, or no JSON
        return PlainTextResponse(str(error), 400)
    return StreamingResponse(texts, media_type="text/event-stream")


async def show(request: Request) -> Response:
    """What a page shows after a reload, and what the chat waits for."""
    return JSONResponse(CHATS.messages(request.query_params["chat"], USER, form="ag_ui"))


ROUTES = [
    Route("/agent", answer, methods=["POST"]),
    Route("/agent", show),
    Mount("/", StaticFiles(directory=PAGE, html=True)),
]

if __name__ == "__main__":
    with language_model(script) as lm:
        dspy.configure(lm=lm, adapter=sigadapt.ChatAdapter(confirm="raise"))
        port = int(os.environ.get("PORT", "8000"))
        uvicorn.run(Starlette(routes=ROUTES), port=port, log_level="warning")
