"""A web endpoint streams text and tool calls as they come, one JSON object a line.

Text comes in pieces, and a call when it is complete and checked. The last line is the whole prediction. A
client is included: without `serve`, this program asks its own server and prints the lines.

    python examples/streaming_endpoint.py [serve] [openai/gpt-4o-mini]
    curl --no-buffer --data '{"question": "Weather in Paris?"}' localhost:8080/ask
"""

import asyncio
import json
import sys
from typing import Any

import dspy
from aiohttp import ClientSession, web
from dspy.streaming import StreamListener
from played import language_model

import sigadapt
from sigadapt import SigadaptError, ToolCalls, ToolDecls
from sigadapt.listeners import CallListener
from sigadapt.testing import Answer, Call

SCRIPT = [Answer(text="Let me look it up.", calls=[Call("get_weather", {"city": "Paris"})])]


def get_weather(city: str) -> str:
    """Weather for a city."""
    return f"Sunny in {city}."


class Assist(dspy.Signature):
    """Answer the question, with tools where they help."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


LM = web.AppKey("lm", dspy.LM)


def line(**said: Any) -> bytes:
    """One line of the answer."""
    return json.dumps(said).encode() + b"\n"


async def ask(request: web.Request) -> web.StreamResponse:
    """Answer a question. An error, such as a bad call, is a line too: the status was sent long before."""
    question = (await request.json())["question"]
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await response.prepare(request)
    with dspy.context(lm=request.app[LM], adapter=sigadapt.ChatAdapter()):
        # Listeners hold the state of one stream: make them for each request.
        listeners = [StreamListener("answer"), CallListener("calls")]
        stream = dspy.streamify(dspy.Predict(Assist), stream_listeners=listeners)
        try:
            async for item in stream(question=question, tools=[get_weather]):
                if isinstance(item, dspy.Prediction):
                    calls = item.calls.model_dump() if item.calls else None
                    await response.write(line(answer=item.answer, calls=calls))
                elif isinstance(item.chunk, str):
                    await response.write(line(text=item.chunk))
                else:
                    await response.write(line(call=str(item.chunk)))
        except SigadaptError as error:
            await response.write(line(error=error.code, reason=str(error)))
    await response.write_eof()
    return response


async def main() -> None:
    """Serve; and, unless `serve` was asked for, be the client too."""
    with language_model(SCRIPT) as lm:
        app = web.Application()
        app[LM] = lm
        app.router.add_post("/ask", ask)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 8080 if "serve" in sys.argv else 0)
        await site.start()
        if "serve" in sys.argv:
            await asyncio.Event().wait()
        host, port = runner.addresses[0][:2]
        body = {"question": "Weather in Paris?"}
        async with ClientSession() as client, client.post(f"http://{host}:{port}/ask", json=body) as answer:
            async for said in answer.content:
                print(said.decode(), end="")
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
