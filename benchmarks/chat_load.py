"""Serve many chats from two processes over one database, with double clicks and kills; count payments.

    python -m benchmarks.chat_load [--chats 100] [--kills 10] [--database URL]

The database is a new file of SQLite, or the one of a URL, such as `postgresql+psycopg://user@host/name`.

Each chat asks for a payment that waits for a yes. The yes is clicked four times at once, twice at each
server, and again until the chat waits for nothing, while one server or the other is killed and started
again. At the end, no payment may have been made twice, and none may be missing from its chat. A payment that
was under way in a killed process counts as `not known`, which its chat says.
"""

import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import dspy
import httpx

import sigadapt
from sigadapt import ToolDecl, ui
from sigadapt.testing import Answer, Call, LoopbackProvider, Received
from sigadapt.ui.page_values import words_of_value

LEASE = 3.0
PATIENCE = 120.0
AT_ONCE = 12


def script(received: Received) -> Answer:
    """The model that is played: it sends money to whom the question names, and says what came of it."""
    rows = received.body["messages"]
    last = max(number for number, row in enumerate(rows) if row["role"] == "user")
    results = [row["content"] for row in rows[last:] if row["role"] == "tool"]
    if results:
        return Answer(calls=[Call("submit", {"answer": f"Done: {words_of_value(results[-1])}"})])
    [to] = re.findall(r"send (u\d+)", str(rows[last]["content"]))
    return Answer(calls=[Call("send", {"to": to})])


def serve(port: int, database: str, ledger: str, lm_options: dict[str, Any]) -> None:
    """Serve chats; every payment is a line of the ledger."""
    import uvicorn  # noqa: PLC0415  (of the servers alone)
    from fastapi import FastAPI  # noqa: PLC0415
    from fastapi.responses import StreamingResponse  # noqa: PLC0415

    def send(to: str) -> str:
        """Send money."""
        time.sleep(random.uniform(0, 0.05))  # noqa: S311
        with Path(ledger).open("a", encoding="utf-8") as file:
            file.write(f"{to}\n")
        time.sleep(random.uniform(0, 0.05))  # noqa: S311
        return f"Sent to {to}."

    agent = sigadapt.ReAct("question -> answer", tools=[ToolDecl.of(send, requires_confirmation=True)])
    chats = ui.Chats(agent, database, lease=LEASE)
    app = FastAPI()

    @app.post("/chat")
    async def answer(body: dict[str, Any]) -> StreamingResponse:  # pyright: ignore[reportUnusedFunction]
        return StreamingResponse(chats.ai_sdk(body, "ada"), headers=ui.AI_SDK_HEADERS)

    @app.get("/chat")
    async def show(chat: str) -> list[dict[str, Any]]:  # pyright: ignore[reportUnusedFunction]
        return chats.messages(chat, "ada")

    dspy.configure(lm=dspy.LM(**lm_options), adapter=sigadapt.ChatAdapter(confirm="raise"))
    uvicorn.run(app, port=port, log_level="critical")


class Server:
    """A server that can be killed and started again."""

    def __init__(self, database: str, ledger: Path, lm_options: dict[str, Any]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        options = [str(self.port), database, str(ledger), json.dumps(lm_options)]
        self._command = [sys.executable, __file__, "--serve", *options]
        self.start()

    def start(self) -> None:
        """Start the server, and wait until it listens."""
        self.process = subprocess.Popen(self._command)
        while socket.socket().connect_ex(("127.0.0.1", self.port)):
            if self.process.poll() is not None:
                raise RuntimeError("the server does not start")
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill the server as a machine that fails does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def post(self, body: dict[str, Any]) -> bool:
        """Send a body and read the answer; return False if the server died meanwhile."""
        try:
            url = f"http://127.0.0.1:{self.port}/chat"
            return httpx.post(url, json=body, timeout=PATIENCE).is_success
        except httpx.HTTPError:
            return False

    def parts(self, chat: str) -> list[dict[str, Any]] | None:
        """Return the calls that a chat shows; None if the server is dead."""
        try:
            url = f"http://127.0.0.1:{self.port}/chat"
            messages = httpx.get(url, params={"chat": chat}, timeout=PATIENCE).json()
        except httpx.HTTPError:
            return None
        return [part for message in messages for part in message["parts"] if "toolCallId" in part]


def lead(chat: str, servers: list[Server]) -> str:
    """Lead one chat to its end, and return how the payment ended."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        server = random.choice(servers)  # noqa: S311
        parts = server.parts(chat)
        if parts is None:
            time.sleep(0.1)
            continue
        waiting = [part for part in parts if part["state"] == "approval-requested"]
        if waiting:
            _click(chat, waiting[-1], servers)
        elif not parts:
            text = {"type": "text", "text": f"send {chat}"}
            server.post({"id": chat, "messages": [{"id": uuid4().hex, "role": "user", "parts": [text]}]})
        elif parts[-1]["state"] == "output-available":
            return "paid"
        elif parts[-1]["state"] == "output-error":
            return "not known"
        else:
            time.sleep(0.1)
    return "no end"


def _click(chat: str, part: dict[str, Any], servers: list[Server]) -> None:
    """Click the button in four tabs at once."""
    approval = {"id": part["approval"]["id"], "approved": True}
    decided = {**part, "state": "approval-responded", "approval": approval}
    body = {"id": chat, "messages": [{"id": "answer", "role": "assistant", "parts": [decided]}]}
    clicks = [threading.Thread(target=server.post, args=(body,)) for server in [*servers, *servers]]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()


def main() -> None:
    """Lead all chats, and print what came of the payments."""
    parser = argparse.ArgumentParser(description="Serve chats with double clicks and kills.")
    parser.add_argument("--chats", type=int, default=100)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--database", metavar="URL", help="a new file of SQLite without it")
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        port, database, ledger, lm_options = options.serve
        serve(int(port), database, ledger, json.loads(lm_options))
        return
    with tempfile.TemporaryDirectory() as folder, LoopbackProvider(script) as provider:
        database = options.database or str(Path(folder, "chats.db"))
        ledger = Path(folder, "ledger")
        ledger.touch()
        servers = [Server(database, ledger, provider.lm_options("openai")) for _ in range(2)]
        begun = time.monotonic()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            first = time.time_ns() // 1_000_000  # a database may have the chats of an earlier load
            names = [f"u{first + number}" for number in range(int(options.chats))]
            ends = pool.map(partial(lead, servers=servers), names)
            for _ in range(options.kills):
                time.sleep(random.uniform(0.5, 1.5))  # noqa: S311
                server = random.choice(servers)  # noqa: S311
                server.kill()
                server.start()
            by_chat = dict(zip(names, ends, strict=True))
        seconds = time.monotonic() - begun
        for server in servers:
            server.kill()
        payments = Counter(ledger.read_text().split())
    twice = [chat for chat, count in payments.items() if count > 1]
    lost = [chat for chat, end in by_chat.items() if (end == "paid") > payments[chat]]
    counts = Counter(by_chat.values())
    print(f"{options.chats} chats, 2 servers, {options.kills} kills, {seconds:.0f} s: {dict(counts)}")
    print(f"{len(payments)} payments, {len(twice)} made twice, {len(lost)} told and not made")
    if twice or lost or counts["no end"]:
        sys.exit(1)


if __name__ == "__main__":
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    main()
