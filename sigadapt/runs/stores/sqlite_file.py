"""SqliteFile: a SQLite file that threads and processes share, readable by its owner alone."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sigadapt.errors import InvalidOption

_PATIENCE = 30.0
"""How many seconds a process waits for another one to finish writing."""


class SqliteFile:
    """A file with one table, opened for each transaction.

    Args:
        path: the file. It is made if it is not there.
        table: the statement that makes the table if it is not there.
        holds: what the file keeps, for errors, such as `runs`.
        made_by: the class that makes such a file, for errors.
    """

    def __init__(self, path: str | os.PathLike[str], table: str, *, holds: str, made_by: str) -> None:
        self._path = Path(path)
        self._table = table
        self._holds = holds
        self._made_by = made_by

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Open the file for one transaction, which no other process can read or write between."""
        try:
            self._make_file()
            with closing(sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(self._table)
                yield connection
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise InvalidOption(
                f"{self._path} cannot be used as a store of {self._holds}: {error}",
                code="unusable_store",
                field="path",
                fix=f"Give the path of a file that {self._made_by} made, or of one that is not there.",
            ) from error

    def _make_file(self) -> None:
        """Make the file if it is not there: one that SQLite makes can be read by others."""
        # Never opened if it is there: to close it would drop the locks of this process on it.
        # https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
