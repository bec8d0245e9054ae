"""A job takes a day, and a colleague fills in a form: results that come from elsewhere.

The agent starts a job that trains a model, and asks a colleague for a review. Neither result is there, so
the run waits in a file. A webhook of the job brings one result, a form on a page the other, in any order and
in any process. When both are there, the agent resumes.

    python examples/long_job.py [openai/gpt-4o-mini]           # scripts the job and the colleague
    python examples/long_job.py serve [openai/gpt-4o-mini]     # http://127.0.0.1:8000
"""

import asyncio
import html
import json
import sys
from typing import Any

import aiohttp
import dspy
from aiohttp import web
from played import language_model

import sigadapt
from sigadapt import InputNeeded, Pending, ToolDecl, ToolDecls
from sigadapt.testing import Answer, Call

RUNS = sigadapt.WaitingRuns("long_job.db")
LOCK = asyncio.Lock()


def train(model: str) -> Pending:
    """Train a model. The result comes when the job has ended."""
    return Pending({"job": f"train-{model}"})  # start the job here, and give it the address of the webhook


REVIEW = {"name": "review", "description": "Ask a colleague for a review.", "parameters": {"type": "object"}}
TOOLS = ToolDecls([train, ToolDecl.of(REVIEW, external=True)])
AGENT = sigadapt.ReAct("question -> answer", tools=TOOLS)
FORM = (
    '<form method="post" action="/results/{run}/{request}">'
    '{hint} <input name="value"><button>Send</button></form>'
)
SCRIPT = [
    Answer(calls=[Call("train", {"model": "m"}), Call("review")]),
    Answer(calls=[Call("submit", {"answer": "The model is trained and reviewed."})]),
]


async def forms(_: web.Request) -> web.Response:
    """A page with a form for each result that a person gives."""
    rows = [
        FORM.format(run=run.id, request=request.id, hint=html.escape(request.hint))
        for run in RUNS.for_owner(None)
        for request in run.requests
        if request.pending is None
    ]
    return web.Response(text="".join(rows) or "Nothing waits.", content_type="text/html")


async def deliver(request: web.Request) -> web.Response:
    """Take a result, of the webhook as JSON or of the form. Check in yours who may give it."""
    is_form = request.content_type != "application/json"
    value: Any = (await request.post())["value"] if is_form else await request.json()
    async with LOCK:  # two results at once would each find the other one missing
        run = RUNS.take(request.match_info["run"])
        if run is None:
            return web.Response(status=410, text="This run has ended.")
        try:
            history = await run.aresume(TOOLS, {request.match_info["request"]: value}, partial=True)
        except InputNeeded as error:  # the other result is not there yet
            RUNS.put(error)
            return web.Response(text="Thank you. The run is still waiting.")
        except sigadapt.SigadaptError as error:  # nothing ran: the run goes on to wait
            RUNS.put(run)
            return web.Response(status=400, text=str(error))
    return web.Response(text=(await AGENT.acall(history=history)).answer)


def app() -> web.Application:
    """The page and the webhook."""
    server = web.Application()
    server.add_routes([web.get("/", forms), web.post("/results/{run}/{request}", deliver)])
    return server


async def play(port: int) -> None:
    """Play the job and the colleague, who both have the addresses of their requests."""
    [run] = RUNS.for_owner(None)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
        for request in run.requests:
            address = f"/results/{run.id}/{request.id}"
            body: Any = {"data": {"value": "Looks good."}}
            if request.pending is not None:
                body = {"json": {"loss": 0.2}}
            async with client.post(address, **body) as response:
                print(request.call.name, json.dumps(request.pending), "->", await response.text())


async def main() -> None:
    """Ask the agent, and serve the page."""
    runner = web.AppRunner(app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 8000 if "serve" in sys.argv else 0)
    await site.start()
    try:
        await AGENT.acall(question="Train the model and have it reviewed.")
    except InputNeeded as error:
        print(error)
        RUNS.put(error)
    await (asyncio.Event().wait() if "serve" in sys.argv else play(runner.addresses[0][1]))
    await runner.cleanup()


if __name__ == "__main__":
    with language_model(SCRIPT) as lm, dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
        asyncio.run(main())
