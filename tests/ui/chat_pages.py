"""A bank behind Chats, and a page of it, in either protocol."""

import asyncio
import itertools
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy

import sigadapt
from sigadapt import Confirmation, Declined, Pending, ToolContext, ToolDecl, ui
from sigadapt.testing import Answer, Call, LoopbackProvider, Received
from sigadapt.ui.log.leases import beat_of

NUMBERS = itertools.count(1)
SAID = "Sent 75 EUR to Ada."


def balance() -> str:
    """The balance."""
    return "620 EUR"


def ask_and_send(to: str, context: ToolContext) -> str:
    """Send after a question."""
    try:
        eur = context.ask("How much?", int)
    except Declined as declined:
        return f"Nothing was sent: {declined.reason}"
    return f"Sent {eur} EUR to {to}."


def order(title: str) -> Any:
    """Order a book."""
    return Pending(f"order-{title}")


def whoami(context: ToolContext) -> str:
    """Who asks, and how often."""
    context.state["count"] = context.state.get("count", 0) + 1
    return f"{context.deps} {context.state['count']}"


class Bank:
    """The agent, its provider and its chats; `paid` counts what was sent."""

    def __init__(self, path: Path, provider: LoopbackProvider, options: dict[str, Any]) -> None:
        self.paid: list[str] = []
        self.path = path
        self.provider = provider
        self.script: Any = script
        self.chats = self.new_chats(**options)

    def new_chats(self, store: Any = None, **options: Any) -> ui.Chats:
        """Chats of another process over the same file, or over a store."""

        def send(to: str, eur: int = 75) -> str:
            """Send money."""
            self.paid.append(f"{to} {eur}")
            return f"Sent {eur} EUR to {to}."

        asked = ToolDecl.of(send, requires_confirmation=lambda args: Confirmation(f"Send to {args['to']}?"))
        agent = sigadapt.ReAct("question -> answer", tools=[balance, asked, ask_and_send, order, whoami])
        return ui.Chats(agent, store or self.path, **options)

    def write(self, *rows: dict[str, Any] | str, chat: str = "c1") -> None:
        """Write events behind a chat's last one, as another process does."""
        store = self.chats.store
        number, _ = store.beat(chat, "ada")
        texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        assert store.append(chat, "ada", number, texts)

    def die(self, *rows: dict[str, Any], chat: str = "c1") -> None:
        """Write events of a run, the first of which names it, as a process that dies then."""
        store = self.chats.store
        number, _ = store.beat(chat, "ada")
        self.write(*rows, chat=chat)
        store.beat(chat, "ada", beat_of(number + 1, -1))

    @property
    def asked(self) -> int:
        """How many requests the provider got."""
        return len(self.provider.received)

    def post(
        self, form: str, body: Any, owner: str = "ada", reads: int | None = None
    ) -> list[dict[str, Any]]:
        """What a page reads; it leaves after so many texts."""

        async def read() -> list[str]:
            texts: list[str] = []
            stream: Any = getattr(self.chats, form)(body, owner)
            async for text in stream:
                texts.append(text)
                if len(texts) == reads:
                    await stream.aclose()
                    break
            return texts

        texts = asyncio.run(read())
        return [json.loads(text[6:]) for text in texts if "[DONE]" not in text]

    def say(self, form: str, text: str, chat: str = "c1", **more: Any) -> list[dict[str, Any]]:
        """Post a message."""
        return self.post(form, message(form, text, chat), **more)

    def reply(
        self, form: str, replies: dict[str, Any], chat: str = "c1", **more: Any
    ) -> list[dict[str, Any]]:
        """Post replies: to requests by their ids, or, with the AI SDK, to calls."""
        return self.post(form, replies_body(form, replies, chat), **more)

    def requests(self, chat: str = "c1") -> list[Any]:
        """What a chat waits for, by AG-UI's words."""
        messages = self.chats.messages(chat, "ada", form="ag_ui")
        waits = [row["content"]["interrupts"] for row in messages if row["role"] == "activity"]
        return waits[0] if waits else []

    def texts(self, chat: str = "c1") -> list[str]:
        """The texts of a chat."""
        parts = [part for row in self.chats.messages(chat, "ada") for part in row["parts"]]
        return [part["text"] for part in parts if part["type"] == "text"]

    def calls(self, chat: str = "c1") -> list[tuple[str, str, Any]]:
        """The calls of a chat: name, state, and what came of them."""
        parts = [part for row in self.chats.messages(chat, "ada") for part in row["parts"]]
        return [
            (part["toolName"], part["state"], part.get("output", part.get("errorText")))
            for part in parts
            if "toolCallId" in part
        ]


def message(form: str, text: str, chat: str = "c1") -> dict[str, Any]:
    """A body with a message."""
    number = next(NUMBERS)
    if form == "ai_sdk":
        parts = [{"type": "text", "text": text}]
        return {"id": chat, "messages": [{"id": f"m{number}", "role": "user", "parts": parts}]}
    row = {"id": f"m{number}", "role": "user", "content": text}
    return {"threadId": chat, "runId": f"r{number}", "messages": [row]}


def replies_body(form: str, replies: dict[str, Any], chat: str = "c1") -> dict[str, Any]:
    """A body with replies."""
    if form == "ag_ui":
        entries = [
            {
                "interruptId": key,
                "status": "resolved",
                "payload": {"approved": reply} if isinstance(reply, bool) else reply,
            }
            for key, reply in replies.items()
        ]
        return {"threadId": chat, "runId": f"r{next(NUMBERS)}", "messages": [], "resume": entries}
    parts: list[dict[str, Any]] = []
    for key, reply in replies.items():
        part: dict[str, Any] = {"type": "dynamic-tool", "toolCallId": key, "toolName": "any", "input": {}}
        if isinstance(reply, bool):
            part |= {"state": "approval-responded", "approval": {"id": key, "approved": reply}}
        else:
            part |= {"state": "output-available", "output": reply}
        parts.append(part)
    return {"id": chat, "messages": [{"id": "page", "role": "assistant", "parts": parts}]}


def script(received: Received) -> Answer:
    """The model that is played: it calls the tool that the question names, and says what came of it."""
    rows = received.body["messages"]
    last = max(number for number, row in enumerate(rows) if row["role"] == "user")
    text = str(rows[last]["content"])
    results = [str(row["content"]) for row in rows[last:] if row["role"] == "tool"]
    calls = {
        "both": [Call("send", {"to": "Ada"}), Call("send", {"to": "Bob", "eur": 5})],
        "send": [Call("send", {"to": "Ada"})],
        "how much": [Call("ask_and_send", {"to": "Ada"}), Call("balance")],
        "order": [Call("order", {"title": "Emma"})],
        "whoami": [Call("whoami")],
    }
    if not results:
        for word, wanted in calls.items():
            if word in text:
                return Answer(text="I try.", calls=wanted)
    return Answer(calls=[Call("submit", {"answer": "; ".join(results) or "Hello."})])


@contextmanager
def bank(path: Path, answers: Any = script, wire: str = "openai", **options: Any) -> Generator[Bank]:
    """Open the bank."""
    desks: list[Bank] = []

    def answer(received: Received) -> Any:
        replies = desks[0].script
        return replies(received) if callable(replies) else replies.pop(0)

    with LoopbackProvider(answer) as provider:
        lm = dspy.LM(**provider.lm_options(wire))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(confirm="raise")):
            desks.append(Bank(path / "chats.db", provider, options))
            desks[0].script = answers
            yield desks[0]
