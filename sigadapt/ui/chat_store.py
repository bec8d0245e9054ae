"""Keep chats: SQLite, or a store of your own with the same five methods.

A chat is a text with a version. `save` replaces the version that was loaded and nothing else, so two
processes that load the same chat cannot both change it.
"""

import os
from typing import Protocol

from sigadapt.runs.stores.sqlite_file import SqliteFile

_TABLE = (
    "CREATE TABLE IF NOT EXISTS chats (owner TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, "
    "chat TEXT NOT NULL, PRIMARY KEY (owner, id))"
)


class ChatStore(Protocol):
    """Where chats are kept. `SqliteChats` is one; yours may keep them in any database.

    Methods may be called from any thread.
    """

    def load(self, chat_id: str, owner: str) -> tuple[int, str] | None:
        """Return the version and the text of a chat; None if this owner has none of this id."""
        ...

    def save(self, chat_id: str, owner: str, version: int, text: str) -> bool:
        """Replace the text of this version, 0 for a chat that is none yet, by that of the next version.

        Return False, and change nothing, if the chat has another version.
        """
        ...

    def delete(self, chat_id: str, owner: str) -> None:
        """Forget a chat."""
        ...

    def for_owner(self, owner: str) -> list[str]:
        """Return the ids of an owner's chats, the newest chat first."""
        ...

    def close(self) -> None:
        """Give back what the store holds open."""
        ...


class SqliteChats:
    """Chats in a SQLite file, which threads and processes share. It is readable by its owner alone.

    Args:
        path: the file. It is made if it is not there.

    Raises:
        InvalidOption: `unusable_store`, by any method, for a file that is no such store.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> store = SqliteChats(os.path.join(folder.name, "chats.db"))
        >>> store.save("c1", "ada", 0, "{}"), store.save("c1", "ada", 0, "{}"), store.load("c1", "ada")
        (True, False, (1, '{}'))
        >>> store.for_owner("ada"), store.load("c1", "bob")
        (['c1'], None)
        >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = SqliteFile(path, _TABLE, holds="chats", made_by="SqliteChats")

    def load(self, chat_id: str, owner: str) -> tuple[int, str] | None:
        """Return the version and the text of a chat; None if this owner has none of this id."""
        query = "SELECT version, chat FROM chats WHERE owner = ? AND id = ?"
        with self._file.transaction() as connection:
            return connection.execute(query, (owner, chat_id)).fetchone()

    def save(self, chat_id: str, owner: str, version: int, text: str) -> bool:
        """Replace this version of a chat, 0 for none yet; return False if the chat has another version."""
        with self._file.transaction() as connection:
            if version == 0:
                query = "INSERT OR IGNORE INTO chats VALUES (?, ?, 1, ?)"
                return connection.execute(query, (owner, chat_id, text)).rowcount == 1
            query = "UPDATE chats SET version = ?, chat = ? WHERE owner = ? AND id = ? AND version = ?"
            return connection.execute(query, (version + 1, text, owner, chat_id, version)).rowcount == 1

    def delete(self, chat_id: str, owner: str) -> None:
        """Forget a chat."""
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM chats WHERE owner = ? AND id = ?", (owner, chat_id))

    def for_owner(self, owner: str) -> list[str]:
        """Return the ids of an owner's chats, the newest chat first."""
        query = "SELECT id FROM chats WHERE owner = ? ORDER BY rowid DESC"
        with self._file.transaction() as connection:
            return [chat_id for (chat_id,) in connection.execute(query, (owner,))]

    def close(self) -> None:
        """Do nothing: the file is open during a transaction alone."""
