"""An agent behind AG-UI's own client, with Starlette: a page shows each call, a payment waits for a click.

POST /agent is what `HttpAgent` calls, and GET /agent returns what a page shows after a reload. In the middle
of a run, that page reads on from /agent/stream, and its Stop button posts to /agent/stop.

    pip install starlette uvicorn
    npm install --prefix examples @ag-ui/client@1 @ag-ui/core@1 esbuild
    (cd examples/ag_ui_page && npx esbuild chat.js --bundle --outfile=page.js)
    python examples/ag_ui.py [openai/gpt-4o-mini]     # then open http://127.0.0.1:8000
"""

import os
from pathlib import Path

from bank import AGENT, serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

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


async def read_on(request: Request) -> Response:
    """What is left of the run under way."""
    texts = await CHATS.resume(request.query_params["chat"], USER, form="ag_ui")
    if texts is None:
        return Response(status_code=204)
    return StreamingResponse(texts, media_type="text/event-stream")


async def stop(request: Request) -> Response:
    """End the run under way, after the tools that have begun."""
    return JSONResponse(await CHATS.stop(request.query_params["chat"], USER))


ROUTES = [
    Route("/agent", answer, methods=["POST"]),
    Route("/agent", show),
    Route("/agent/stream", read_on),
    Route("/agent/stop", stop, methods=["POST"]),
    Mount("/", StaticFiles(directory=PAGE, html=True)),
]

if __name__ == "__main__":
    serve(Starlette(routes=ROUTES))
