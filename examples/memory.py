"""An agent remembers earlier conversations: SQLite's full-text search, as a tool and as a preload.

`load_memory` is a tool that searches what was said before. The hook searches with the question itself, before
the model is asked, and adds what it found to the request.

    python examples/memory.py [openai/gpt-4o-mini]
"""

import json
import re
import sqlite3
from typing import Any

import dspy
from played import language_model

import sigadapt
from sigadapt import ToolContext
from sigadapt.testing import Answer, Call, Received


class Memory:
    """What users said, found by words.

    Args:
        path: the file of the database, or `:memory:`.
    """

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path, check_same_thread=False)  # tools run in threads
        self._database.execute("CREATE VIRTUAL TABLE IF NOT EXISTS memory USING fts5(user UNINDEXED, said)")

    def add(self, user: str, said: str) -> None:
        """Remember what a user said."""
        with self._database:
            self._database.execute("INSERT INTO memory VALUES (?, ?)", (user, said))

    def search(self, user: str, text: str, most: int = 3) -> list[str]:
        """Return what this user said with any word of a text, the best first."""
        # Quoted, because a model or a user writes the text, and FTS5 has a query language.
        query = " OR ".join(f'"{word}"' for word in re.findall(r"\w{3,}", text))
        if not query:
            return []
        rows = self._database.execute(
            "SELECT said FROM memory WHERE user = ? AND memory MATCH ? ORDER BY rank LIMIT ?",
            (user, query, most),
        )
        return [said for (said,) in rows]


def load_memory(query: str, context: ToolContext[dict[str, Any]]) -> list[str]:
    """Search what the user said in earlier conversations."""
    return context.deps["memory"].search(context.deps["user"], query)


class PreloadMemory:
    """A hook of the adapter: adds what the question reminds of to the request."""

    def __init__(self, memory: Memory, user: str) -> None:
        self._memory = memory
        self._user = user

    def before_request(self, request: dict[str, Any], context: Any) -> dict[str, Any]:
        """Add the notes after the system message."""
        questions = [row["content"] for row in request["messages"] if row["role"] == "user"]
        notes = self._memory.search(self._user, str(questions[-1]))
        if notes:
            text = "From earlier conversations with this user:\n" + "\n".join(f"- {note}" for note in notes)
            request["messages"].insert(1, {"role": "user", "content": text})
        return request


def script(received: Received) -> Answer:
    """The scripted model: it reads of the allergy in the preload, and looks the city up."""
    shown = json.dumps(received.body["messages"])
    if "Oslo" not in shown:
        return Answer(calls=[Call("load_memory", {"query": "lives city"})])
    nuts = "without nuts" if "allergic to nuts" in shown else "of any kind"
    return Answer(calls=[Call("submit", {"answer": f"A restaurant in Oslo, {nuts}."})])


def main() -> None:
    """Remember three conversations, then ask a question that needs them."""
    memory = Memory(":memory:")
    memory.add("ada", "I am allergic to nuts, so no restaurant with peanuts.")
    memory.add("ada", "My family lives in the city of Oslo.")
    memory.add("bob", "A restaurant in Rome was the best in the city.")
    adapter = sigadapt.ChatAdapter(hooks=[PreloadMemory(memory, "ada")])
    agent = sigadapt.ReAct("question -> answer", tools=[load_memory])
    deps = {"memory": memory, "user": "ada"}
    with language_model(script) as lm, dspy.context(lm=lm, adapter=adapter), sigadapt.Run(deps=deps) as run:
        print(agent(question="Which restaurant should I book?").answer)
    for call, result in run.rounds[0].pairs:
        print(call, "->", result.value)


if __name__ == "__main__":
    main()
