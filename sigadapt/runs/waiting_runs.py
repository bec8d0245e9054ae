"""WaitingRuns: runs that wait, kept until they are taken, once, whatever process asks first.

A run is the text of `InputNeeded.model_dump_json()`, under its `id`. It holds whole conversations, so a file
can be read by its owner alone. Ids and owners are kept as JSON, which holds any text in ASCII.
"""

import json
import logging
import os
from typing import Protocol

from sigadapt.errors import InputNeeded, InvalidHistory, InvalidOption
from sigadapt.json_values import cut, is_unicode
from sigadapt.runs.database import Database

_LOG = logging.getLogger("sigadapt")

_TABLES = (
    """
CREATE TABLE IF NOT EXISTS sigadapt_waiting_runs (
    serial {serial}, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, run TEXT NOT NULL)
""",
    "CREATE INDEX IF NOT EXISTS sigadapt_waiting_owners ON sigadapt_waiting_runs (owner)",
)
_EARLIER = "SELECT id, owner, run FROM waiting_runs LIMIT 1"
_PUT = """
INSERT INTO sigadapt_waiting_runs (id, owner, run) VALUES (:id, :owner, :run)
ON CONFLICT (id) DO UPDATE SET run = excluded.run WHERE sigadapt_waiting_runs.owner = excluded.owner
RETURNING id
"""
_GET = "SELECT run FROM sigadapt_waiting_runs WHERE id = :id AND owner = :owner"
_TAKE = "DELETE FROM sigadapt_waiting_runs WHERE id = :id AND owner = :owner RETURNING run"
_ALL = "SELECT id, run FROM sigadapt_waiting_runs WHERE owner = :owner ORDER BY serial"


class WaitingStore(Protocol):
    """Where runs wait. `WaitingRuns` is one; yours may keep them in any database."""

    def put(self, error: InputNeeded, owner: str | None = None) -> str:
        """Keep a run under its `error.id`, in place of one of that id, and return the id."""
        ...

    def get(self, run_id: str, owner: str | None = None) -> InputNeeded | None:
        """Return a run of this owner; None if there is none."""
        ...

    def take(self, run_id: str, owner: str | None = None) -> InputNeeded | None:
        """Return a run of this owner and remove it, in one transaction; None if there is none."""
        ...

    def for_owner(self, owner: str | None) -> list[InputNeeded]:
        """Return the runs of an owner, the one that was put first at the beginning."""
        ...


class WaitingRuns:
    """Runs that wait, in a database that threads and processes share: a file of SQLite, or PostgreSQL.

    Take a run before you resume it: two clicks, tabs or workers then get it once. If the process dies before
    the run is finished, the run is gone, so nothing happens twice.

    Args:
        store: the path of a file, which is made if it is not there, readable by its owner alone; or a URL of
            a database, as SQLAlchemy has it.

    Raises:
        InvalidOption: `unusable_store`, by any method, for what is no such store.

    Example:
        >>> import os, tempfile
        >>> from sigadapt import InputNeeded, ToolCalls, ToolContext
        >>> def send(text: str, context: ToolContext) -> str:
        ...     to = context.ask("To whom?")
        ...     return f"Sent to {to}."
        >>> folder = tempfile.TemporaryDirectory()
        >>> waiting = WaitingRuns(os.path.join(folder.name, "runs.db"))
        >>> try:
        ...     ToolCalls([{"name": "send", "args": {"text": "Hello"}}]).run([send])
        ... except InputNeeded as error:
        ...     run_id = waiting.put(error, owner="user 7")
        >>> [run] = waiting.for_owner("user 7")
        >>> [request] = run.requests
        >>> run.id == run_id, request.hint, waiting.get(run_id, owner="user 8")
        (True, 'To whom?', None)
        >>> taken = waiting.take(run_id, owner="user 7")
        >>> [result] = taken.results_of([send], {request.id: "Ada"})
        >>> result.value, waiting.take(run_id, owner="user 7")
        ('Sent to Ada.', None)
        >>> folder.cleanup()
    """

    def __init__(self, store: str | os.PathLike[str]) -> None:
        self._database = Database(store, _TABLES, holds="runs", earlier=_EARLIER)

    def put(self, error: InputNeeded, owner: str | None = None) -> str:
        """Keep a run under its `error.id`, in place of an earlier one of that id.

        Args:
            error: the run.
            owner: whose it is, such as the id of a user. Without one, it is found without one alone.

        Returns:
            `error.id`.

        Raises:
            InvalidHistory: `unreadable_history`, for a run that JSON cannot hold.
            InvalidOption: `unusable_store`; `other_owner`, if a run of this id is of another owner; for an
                owner that isn't text, or for anything but an InputNeeded.
        """
        _check_owner(owner)
        _check_run(error)
        text = error.model_dump_json()
        with self._database.transaction() as database:
            if not database.run(_PUT, id=json.dumps(error.id), owner=json.dumps(owner), run=text):
                reason = f"the run {error.id!r} is kept for another owner"
                raise InvalidOption(reason, code="other_owner", field="owner")
        return error.id

    def get(self, run_id: str, owner: str | None = None) -> InputNeeded | None:
        """Return a run and leave it; None if this owner has none of this id."""
        _check_owner(owner)
        if not _is_id(run_id):
            return None
        rows = self._database.read(_GET, id=json.dumps(run_id), owner=json.dumps(owner))
        return InputNeeded.model_validate_json(rows[0][0]) if rows else None

    def take(self, run_id: str, owner: str | None = None) -> InputNeeded | None:
        """Return a run and remove it; None if this owner has none of this id, or if it was taken."""
        _check_owner(owner)
        if not _is_id(run_id):
            return None
        with self._database.transaction() as database:  # which is undone if the run cannot be read
            rows = database.run(_TAKE, id=json.dumps(run_id), owner=json.dumps(owner))
            return InputNeeded.model_validate_json(rows[0][0]) if rows else None

    def for_owner(self, owner: str | None) -> list[InputNeeded]:
        """Return the runs of an owner, the one that was put first at the beginning.

        A run that cannot be read is left out, with a warning in the log: it hides no other.
        """
        _check_owner(owner)
        rows = self._database.read(_ALL, owner=json.dumps(owner))
        runs = [_readable_run(run_id, text) for run_id, text in rows]
        return [run for run in runs if run is not None]


def _readable_run(run_id: str, text: str) -> InputNeeded | None:
    try:
        return InputNeeded.model_validate_json(text)
    except InvalidHistory as error:
        _LOG.warning("the run %s is left out: %s", run_id, error)
        return None


def _check_owner(owner: object) -> None:
    if owner is not None and not _is_id(owner):
        fix = "Give a text, such as str(user_id)."
        raise InvalidOption(f"an owner is a text or None, not {cut(repr(owner))}", field="owner", fix=fix)


def _check_run(error: object) -> None:
    if not isinstance(error, InputNeeded):
        fix = "Give the InputNeeded that the program raised."
        raise InvalidOption(f"expected a run that waits, got {cut(repr(error))}", field="error", fix=fix)


def _is_id(value: object) -> bool:
    """Return whether a database can look this up as a text; a client may send anything as the id of a run."""
    return isinstance(value, str) and is_unicode(value)
