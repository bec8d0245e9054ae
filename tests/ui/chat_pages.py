"""A page of a program behind Chats, in either protocol, and the bank that most tests open."""

import asyncio
import itertools
import json
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import dspy

import sigadapt
from sigadapt import Confirmation, Declined, Pending, ToolContext, ToolDecl, ui
from sigadapt.testing import Answer, Call, LoopbackProvider, Received
from sigadapt.ui.log.chat_log import beat_of

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


class Page:
    """A page of a program, in either protocol, with its chats and its provider."""

    def __init__(
        self, make: Callable[[], dspy.Module], path: Path, net: LoopbackProvider, options: dict[str, Any]
    ) -> None:
        self.make, self.path, self.provider = make, path, net
        self.script: Any = []
        self.chats = self.new_chats(**options)

    def new_chats(self, store: Any = None, **options: Any) -> ui.Chats:
        """Chats of another process over the same file, or over a store."""
        return ui.Chats(self.make(), store or self.path, **options)

    def write(self, *rows: dict[str, Any] | str, chat: str = "c1") -> None:
        """Write events behind a chat's last one, as another process does."""
        store = self.chats.store
        number, _ = store.beat(chat, "ada")
        texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        assert store.append(chat, "ada", number, texts)

    def die(self, *rows: dict[str, Any] | str, chat: str = "c1") -> None:
        """Write events of a run, the first of which names it, as a process that dies then."""
        number, _ = self.chats.store.beat(chat, "ada")
        self.write(*rows, chat=chat)
        self.chats.store.beat(chat, "ada", beat_of(number + 1, -1))

    @property
    def asked(self) -> int:
        """How many requests the provider got."""
        return len(self.provider.received)

    @property
    def sent(self) -> str:
        """All that the provider got."""
        return str([received.body for received in self.provider.received])

    async def read(self, form: str, body: Any) -> list[dict[str, Any]]:
        """What a page reads."""
        return rows_of([text async for text in getattr(self.chats, form)(body, "ada")])

    def post(self, form: str, body: Any) -> list[dict[str, Any]]:
        """Post a body, and return what the page reads."""
        return asyncio.run(self.read(form, body))

    def say(self, form: str, text: str, chat: str = "c1") -> list[dict[str, Any]]:
        """Post a message."""
        return self.post(form, message(form, text, chat))

    def reply(self, form: str, replies: dict[str, Any], chat: str = "c1") -> list[dict[str, Any]]:
        """Post replies: to requests by their ids, or, with the AI SDK, to calls."""
        return self.post(form, replies_body(form, replies, chat))

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


def rows_of(texts: list[str]) -> list[dict[str, Any]]:
    """The rows of server-sent events, as a browser reads them: NaN is no JSON."""

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    return [json.loads(text[6:], parse_constant=refuse) for text in texts if "[DONE]" not in text]


class Bank(Page):
    """A page of an agent that sends money; `paid` counts what was sent."""

    def __init__(self, path: Path, net: LoopbackProvider, options: dict[str, Any]) -> None:
        self.paid: list[str] = []

        def send(to: str, eur: int = 75) -> str:
            """Send money."""
            self.paid.append(f"{to} {eur}")
            return f"Sent {eur} EUR to {to}."

        asked = ToolDecl.of(send, requires_confirmation=lambda args: Confirmation(f"Send to {args['to']}?"))
        super().__init__(agent_of(balance, asked, ask_and_send, order, whoami), path, net, options)


def agent_of(*tools: Any, kind: Any = sigadapt.ReAct) -> Callable[[], dspy.Module]:
    """What makes an agent with these tools."""
    return lambda: kind("question -> answer", tools=[*tools])


def submit(text: str) -> Answer:
    """The agent's answer."""
    return Answer(calls=[Call("submit", {"answer": text})])


def text_of(text: str) -> Answer:
    """The answer of a predictor."""
    return Answer(text=f"[[ ## answer ## ]]\n{text}\n\n[[ ## completed ## ]]")


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
def _open(
    make: Callable[[LoopbackProvider], Any], answers: Any, wire: str = "openai", adapter: Any = None
) -> Generator[Any]:
    """Open a page whose provider gives answers, or what a function of the request returns."""
    pages: list[Page] = []

    def answer(received: Received) -> Any:
        replies = pages[0].script
        return replies(received) if callable(replies) else replies.pop(0)

    adapter = adapter or sigadapt.ChatAdapter(confirm="raise")
    with LoopbackProvider(answer) as net, dspy.context(lm=dspy.LM(**net.lm_options(wire)), adapter=adapter):
        pages.append(make(net))
        pages[0].script = answers if callable(answers) else [*answers]
        yield pages[0]


def page_of(
    make: Callable[[], dspy.Module], answers: Any, folder: Path, adapter: Any = None, **options: Any
) -> AbstractContextManager[Page]:
    """Open the page of a program."""
    return _open(lambda net: Page(make, folder / "chats.db", net, options), answers, adapter=adapter)


def bank(
    folder: Path, answers: Any = script, wire: str = "openai", **options: Any
) -> AbstractContextManager[Bank]:
    """Open the bank."""
    return _open(lambda net: Bank(folder / "chats.db", net, options), answers, wire)
