"""Keep chats: each is a log of events, which is appended to and never changed.

A store knows nothing of what an event says. Two appends behind one number cannot both succeed, and this alone
keeps two processes from changing one chat.
"""

import hashlib
import json
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pydantic
from pydantic_core import from_json, to_json

from sigadapt.json_values import is_large_integer, is_mapping, without_halves
from sigadapt.runs.database import Database

_TABLES = (
    """
CREATE TABLE IF NOT EXISTS sigadapt_chats (
    serial {serial}, key TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, chat_id TEXT NOT NULL,
    number INTEGER NOT NULL, beat TEXT)
""",
    "CREATE INDEX IF NOT EXISTS sigadapt_chat_owners ON sigadapt_chats (owner)",
    """
CREATE TABLE IF NOT EXISTS sigadapt_chat_events (
    chat BIGINT NOT NULL, number INTEGER NOT NULL, event TEXT NOT NULL, PRIMARY KEY (chat, number))
""",
)
_EARLIER = "SELECT owner, id, version, chat FROM chats LIMIT 1"
_BEGIN = """
INSERT INTO sigadapt_chats (key, owner, chat_id, number) VALUES (:key, :owner, :chat_id, :last)
ON CONFLICT (key) DO NOTHING RETURNING serial
"""
_ADVANCE = """
UPDATE sigadapt_chats SET number = :last WHERE key = :key AND number = :number RETURNING serial
"""
_APPEND = "INSERT INTO sigadapt_chat_events (chat, number, event) VALUES (:chat, :number, :event)"
_READ = """
SELECT number, event FROM sigadapt_chat_events
WHERE chat = (SELECT serial FROM sigadapt_chats WHERE key = :key) AND number > :after ORDER BY number
"""
_LOOK = "SELECT number, beat FROM sigadapt_chats WHERE key = :key"
_BEAT = "UPDATE sigadapt_chats SET beat = :beat WHERE key = :key RETURNING number, beat"
_DELETE = "DELETE FROM sigadapt_chats WHERE key = :key RETURNING serial"
_DELETE_EVENTS = "DELETE FROM sigadapt_chat_events WHERE chat = :chat"
_OF_OWNER = "SELECT chat_id FROM sigadapt_chats WHERE owner = :owner ORDER BY serial DESC"
_DEEPEST = 100
_COLLECTIONS = (Mapping, list, tuple, set, frozenset)


class ChatStore(Protocol):
    """Where chats are kept. Yours may keep them in any database. Methods may be called from any thread.

    `sigadapt.testing.check_chat_store` tests one.
    """

    def append(self, chat_id: str, owner: str, number: int, events: Sequence[str]) -> bool:
        """Append events behind the event of this number, 0 for a chat that is none yet: all or none.

        Return False, and change nothing, if that is not the last event of the chat.
        """
        ...

    def read(self, chat_id: str, owner: str, after: int = 0) -> list[tuple[int, str]]:
        """Return the events behind a number, each with its own, in order; `[]` for a chat that is none."""
        ...

    def beat(self, chat_id: str, owner: str, text: str | None = None) -> tuple[int, str | None]:
        """Return the number of the last event, 0 for none, and the text that was given last.

        With a text, keep that first: the run that is under way says so that it lives.
        """
        ...

    def delete(self, chat_id: str, owner: str) -> None:
        """Forget a chat."""
        ...

    def for_owner(self, owner: str) -> list[str]:
        """Return the ids of an owner's chats, the newest chat first."""
        ...


class DatabaseChats:
    """Chats in a database: a file of SQLite by its path, PostgreSQL by a URL."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self._database = Database(place, _TABLES, holds="chats", earlier=_EARLIER)

    def append(self, chat_id: str, owner: str, number: int, events: Sequence[str]) -> bool:
        """Append events behind this number; return False if it is not the last one."""
        key = _key(owner, chat_id)
        last = number + len(events)
        with self._database.transaction() as database:
            if number == 0:
                chat = database.run(
                    _BEGIN, key=key, owner=_key(owner), chat_id=json.dumps(chat_id), last=last
                )
            else:
                chat = database.run(_ADVANCE, key=key, number=number, last=last)
            if not chat:
                return False
            rows = [{"chat": chat[0][0], "number": at} for at in range(number + 1, last + 1)]
            database.run_each(
                _APPEND, [{**row, "event": event} for row, event in zip(rows, events, strict=True)]
            )
        return True

    def read(self, chat_id: str, owner: str, after: int = 0) -> list[tuple[int, str]]:
        """Return the events behind a number."""
        rows = self._database.read(_READ, key=_key(owner, chat_id), after=after)
        return [(number, event) for number, event in rows]

    def beat(self, chat_id: str, owner: str, text: str | None = None) -> tuple[int, str | None]:
        """Return the number of the last event, and the beat; with a text, keep that first."""
        key = _key(owner, chat_id)
        if text is None:
            rows = self._database.read(_LOOK, key=key)
        else:
            with self._database.transaction() as database:
                rows = database.run(_BEAT, key=key, beat=text)
        return (rows[0][0], rows[0][1]) if rows else (0, None)

    def delete(self, chat_id: str, owner: str) -> None:
        """Forget a chat."""
        with self._database.transaction() as database:
            for (chat,) in database.run(_DELETE, key=_key(owner, chat_id)):
                database.run(_DELETE_EVENTS, chat=chat)

    def for_owner(self, owner: str) -> list[str]:
        """Return the ids of an owner's chats, the newest chat first."""
        rows = self._database.read(_OF_OWNER, owner=_key(owner))
        return [json.loads(chat_id) for (chat_id,) in rows]

    def close(self) -> None:
        """Give back the connections that are open."""
        self._database.close()


def _key(*texts: str) -> str:
    """Return a key of one length: an id may be long, and hold what a database takes in no text."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def text_of(row: Any) -> str:
    """Return an event as JSON. What JSON cannot hold or give back becomes a text in its place."""
    try:
        return _json_text(row)
    except ValueError:  # such as bytes, or what is nested deeper than JSON is read
        return _json_text(storable(row))


def _json_text(row: Any) -> str:
    data = to_json(row, fallback=str, inf_nan_mode="null")
    from_json(data)
    return data.decode()


def storable(value: Any, depth: int = 0) -> Any:
    """Return a value that JSON can hold and give back; models stay, with members that are."""
    if isinstance(value, pydantic.BaseModel):
        members = {name: storable(getattr(value, name), depth + 1) for name in type(value).model_fields}
        return value.model_copy(update=members)
    if isinstance(value, _COLLECTIONS):
        return _storable_members(value, depth)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if is_large_integer(value):
        return f"a number of {value.bit_length()} bits"
    return without_halves(value) if isinstance(value, str) else value


def _storable_members(collection: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return f"a {type(collection).__name__} that is nested too deep"
    if is_mapping(collection):
        return {storable(str(key)): storable(member, depth + 1) for key, member in collection.items()}
    members = [storable(member, depth + 1) for member in collection]
    return tuple(members) if isinstance(collection, tuple) else members
