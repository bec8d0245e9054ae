"""Database: rows of text in SQLite or PostgreSQL, which threads and processes share.

A place is a path, which is a file of SQLite, or a URL of SQLAlchemy. SQLAlchemy comes with the extra `chats`
and is imported when the first store is made.
"""

import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from sigadapt.errors import InvalidOption
from sigadapt.json_values import cut

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine, TextClause

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+_]*://")
_PATIENCE = 30
"""How many seconds a process waits for another one to finish writing."""
_SERIALS = {
    "sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "postgresql": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
}
"""By the database: the type of a number that each row gets, and no other row has ever had."""
_ASYNC_DRIVERS = frozenset({"aiosqlite", "asyncpg", "psycopg_async"})

Rows = list[tuple[Any, ...]]


class Statements:
    """Runs statements over one connection, with their values by name."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    def run(self, statement: str, **values: Any) -> Rows:
        """Run a statement, and return the rows that it gives."""
        result = self._connection.execute(_clause_of(statement), values)
        return [tuple(row) for row in result] if result.returns_rows else []

    def run_each(self, statement: str, values: Sequence[dict[str, Any]]) -> None:
        """Run a statement once for each of several values."""
        if values:
            self._connection.execute(_clause_of(statement), values)


@cache
def _clause_of(statement: str) -> "TextClause":
    """Return a statement as SQLAlchemy reads it, once: a store has a handful of them."""
    from sqlalchemy import text

    return text(statement)


class Database:
    """The tables of one store, which are made if they are not there.

    Args:
        place: a path, or a URL.
        tables: statements that make the tables, `{serial}` in the place of the type of a row's number.
        holds: what is kept, for errors, such as `runs`.
        earlier: a statement that reads what a sigadapt before its first release kept in a file. Where it
            can be read, the file is refused: its chats or runs would seem to be gone.

    Raises:
        InvalidOption: `missing_extra`, or `unusable_store` for a URL of another kind; by any method,
            `unusable_store` for a database that cannot be opened or has other tables.
    """

    def __init__(
        self, place: str | os.PathLike[str], tables: Sequence[str], *, holds: str, earlier: str
    ) -> None:
        self._url = _url_of(place, holds)
        self._tables = tables
        self._holds = holds
        self._earlier = earlier
        self._engine: Engine | None = None
        self._pid = 0

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process opens connections of its own."""
        return {**self.__dict__, "_engine": None}

    @contextmanager
    def transaction(self) -> Generator[Statements]:
        """Open a transaction that writes: nobody else writes what it has read or written."""
        with self._errors_told(), self._open().begin() as connection:
            yield Statements(connection)

    def read(self, statement: str, **values: Any) -> Rows:
        """Return the rows of one statement, which waits for no writer."""
        with self._errors_told():
            connecting = self._open().connect().execution_options(reads=True)
            with connecting as connection:
                return Statements(connection).run(statement, **values)

    def close(self) -> None:
        """Give back the connections that are open."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def _open(self) -> "Engine":
        """Return the engine of this process; a process that was forked shares no connection."""
        if self._engine is None or self._pid != os.getpid():
            self._engine = self._new_engine()
            self._pid = os.getpid()
        return self._engine

    def _new_engine(self) -> "Engine":
        import sqlalchemy
        from sqlalchemy.exc import SQLAlchemyError

        if self._url.get_backend_name() == "sqlite":
            engine = _sqlite_engine(self._url)
            self._refuse_earlier_file(engine)
        else:
            engine = sqlalchemy.create_engine(self._url, pool_pre_ping=True, max_overflow=-1)
        try:
            self._make_tables(engine)
        except SQLAlchemyError:  # another process may have made one between the look and the statement
            self._make_tables(engine)
        if self._url.get_backend_name() == "sqlite":
            _let_readers_in(engine)
        return engine

    def _refuse_earlier_file(self, engine: "Engine") -> None:
        from sqlalchemy.exc import DatabaseError

        connecting = engine.connect().execution_options(reads=True)
        with connecting as connection:
            try:
                connection.exec_driver_sql(self._earlier)
            except DatabaseError:  # no such table, or no database: then nothing can be made in it
                return
        engine.dispose()
        path = _place_of(self._url)
        raise InvalidOption(
            f"{path} has {self._holds} of a sigadapt before 0.1.0, which this one cannot read",
            code="unusable_store",
            field="store",
            fix="Give the path of a new file. The version that made this one can still read it.",
        )

    def _make_tables(self, engine: "Engine") -> None:
        serial = _SERIALS[self._url.get_backend_name()]
        with engine.begin() as connection:
            for statement in self._tables:
                connection.exec_driver_sql(statement.format(serial=serial))

    @contextmanager
    def _errors_told(self) -> Generator[None]:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (SQLAlchemyError, OSError, ImportError) as error:
            reason = str(getattr(error, "orig", None) or error).strip()
            if self._url.password:
                reason = reason.replace(str(self._url.password), "***")
            raise _unusable(_place_of(self._url), self._holds, reason) from error


def _url_of(place: str | os.PathLike[str], holds: str) -> "URL":
    """Return a place as a URL.

    Raises:
        InvalidOption: `missing_extra`; `unusable_store`, for a URL of another kind.
    """
    try:
        import sqlalchemy
        from sqlalchemy.exc import ArgumentError
    except ImportError as error:
        raise InvalidOption(
            f"a store of {holds} needs SQLAlchemy, which is not installed",
            code="missing_extra",
            field="store",
            fix="Install the extra `sigadapt[chats]`, or give a store of your own.",
        ) from error
    try:
        path = os.fsdecode(place)
    except TypeError as error:
        raise _unusable(cut(repr(place)), holds, "it is neither a path nor a URL") from error
    url = sqlalchemy.URL.create("sqlite", database=path)
    if isinstance(place, str) and _URL.match(place):
        try:
            url = sqlalchemy.make_url(place)
        except (ArgumentError, ValueError) as error:  # which names the whole URL, with its password
            raise _unusable("the URL", holds, "it cannot be read") from error.with_traceback(None)
    flaw = _flaw_of(url)
    if flaw is not None:
        raise _unusable(_place_of(url), holds, flaw)
    return url


def _flaw_of(url: "URL") -> str | None:
    """Return why a store cannot be kept at a URL."""
    backend = url.get_backend_name()
    if backend not in _SERIALS:
        return f"{backend} is none of {', '.join(_SERIALS)}"
    if url.drivername.rpartition("+")[2] in _ASYNC_DRIVERS:
        return f"{url.drivername} is an async driver, and stores are called in threads"
    if backend == "sqlite" and url.database in (None, "", ":memory:"):
        return "a database in memory ends with its thread"
    if "\0" in (url.database or ""):
        return "no file has a zero byte in its name"
    return None


def _place_of(url: "URL") -> str:
    """Return a place as errors show it: a path as it is, a URL without its password."""
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    return url.render_as_string(hide_password=True)


def _unusable(place: str, holds: str, reason: str) -> InvalidOption:
    return InvalidOption(
        f"{place} cannot be used as a store of {holds}: {reason}",
        code="unusable_store",
        field="store",
        fix="Give the path of a file that sigadapt made, or of one that is not there, or a URL such as "
        "postgresql+psycopg://user@host/name.",
    )


def _sqlite_engine(url: "URL") -> "Engine":
    """Return the engine of a file that its owner alone can read."""
    from sqlalchemy import create_engine, event

    # Never opened if it is there: to close it would drop the locks of this process on it.
    # https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
    with suppress(FileExistsError):
        os.close(os.open(url.database or "", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    engine = create_engine(url, max_overflow=-1, connect_args={"timeout": _PATIENCE})
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # sqlite3 would begin a transaction at the first write alone
    connection.execute("PRAGMA synchronous=FULL")


def _begin(connection: Any) -> None:
    if not connection.get_execution_options().get("reads"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _let_readers_in(engine: "Engine") -> None:
    """Let others read while one writes. The file keeps this, so a file that is no store never gets it."""
    from sqlalchemy.exc import OperationalError

    connecting = engine.connect().execution_options(reads=True)
    with connecting as connection, suppress(OperationalError):  # another process is at it
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
