"""WaitingRuns: runs that wait in SQLite, for their owner alone, and taken once."""

import os
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from sigadapt import InputNeeded, ToolCalls, ToolContext, WaitingRuns
from sigadapt.errors import InvalidOption
from sigadapt.runs import WaitingStore

LETTER = ToolCalls([{"id": "c1", "name": "send", "args": {"text": "Hello"}}])


def send(text: str, context: ToolContext) -> str:
    """Send."""
    to = context.ask("To whom?")
    return f"Sent to {to}."


def waiting() -> InputNeeded:
    with pytest.raises(InputNeeded) as caught:
        LETTER.run([send])
    return caught.value


TAKER = """
import sys
from sigadapt import WaitingRuns
path, *keys = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
print(*(key for key in keys if WaitingRuns(path).take(key) is not None), flush=True)
"""


def test_taken_once_by_processes_and_threads(tmp_path: Path) -> None:
    """tool-context: A run is taken once."""
    path = tmp_path / "runs.db"
    keys = [WaitingRuns(path).put(waiting()) for _ in range(10)]
    script = [sys.executable, "-c", TAKER, str(path), *keys]
    children = [
        subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(3)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    with ThreadPoolExecutor(8) as pool:
        taken_here = [run.id for run in pool.map(WaitingRuns(path).take, keys) if run is not None]
    taken = [key for child in children for key in child.communicate()[0].split()]
    assert sorted(taken_here + taken) == sorted(keys)
    assert WaitingRuns(path).for_owner(None) == []


KILLED = """
import os, signal, sys
from sigadapt import InputNeeded, ToolCalls, ToolContext, WaitingRuns
def send(text: str, context: ToolContext) -> str:
    "Send."
    context.ask("To whom?")
try:
    ToolCalls([{"name": "send", "args": {"text": "Hello"}}]).run([send])
except InputNeeded as error:
    print(WaitingRuns(sys.argv[1]).put(error, owner="ada"), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_the_run(tmp_path: Path) -> None:
    """tool-context: A run is taken once."""
    path = tmp_path / "runs.db"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True)  # noqa: PLW1510, S603
    run = WaitingRuns(path).take(done.stdout.strip(), owner="ada")
    assert run is not None
    [result] = run.results_of([send], {run.requests[0].id: "Bob"})
    assert result.value == "Sent to Bob."


def test_a_run_is_its_owners(tmp_path: Path) -> None:
    """tool-context: A run is its owner's."""
    store: WaitingStore = WaitingRuns(tmp_path / "runs.db")
    mine, others, nobodys = waiting(), waiting(), waiting()
    store.put(mine, owner="ada")
    store.put(others, owner="bob' OR 1=1 --")
    store.put(nobodys)
    assert [run.id for run in store.for_owner("ada")] == [mine.id]
    assert [run.id for run in store.for_owner(None)] == [nobodys.id]
    for owner in ("bob", None, "", "' OR 1=1 --"):
        assert store.get(mine.id, owner=owner) is None
        assert store.take(mine.id, owner=owner) is None
        with pytest.raises(InvalidOption) as caught:
            store.put(mine, owner=owner)
        assert (caught.value.code, caught.value.field) == ("other_owner", "owner")
    for run, owner in ((mine, "ada"), (others, "bob' OR 1=1 --"), (nobodys, None)):
        found = store.get(run.id, owner=owner)
        assert found is not None
        assert found.model_dump_json() == run.model_dump_json()
    assert store.get(nobodys.id, owner="ada") is None
    assert store.take(nobodys.id, owner="ada") is None
    assert store.take("no such id") is None
    assert store.put(mine, owner="ada") == mine.id  # again
    taken = store.take(mine.id, owner="ada")
    assert taken is not None
    assert taken.model_dump_json() == mine.model_dump_json()
    assert store.for_owner("ada") == []


@pytest.mark.parametrize("sent", ["\ud800", {"$ne": None}, 5, 10**30, b"run", ["run"], None])
def test_a_client_may_send_anything_as_an_id(tmp_path: Path, sent: Any) -> None:
    """tool-context: A run is its owner's."""
    store = WaitingRuns(tmp_path / "runs.db")
    store.put(waiting())
    assert store.get(sent) is None
    assert store.take(sent) is None
    assert len(store.for_owner(None)) == 1
    if sent is not None:
        for use in (
            lambda: store.put(waiting(), sent),
            lambda: store.get("x", sent),
            lambda: store.take("x", sent),
            lambda: store.for_owner(sent),
        ):
            with pytest.raises(InvalidOption) as caught:
                use()
            assert caught.value.field == "owner"
            assert f"not {sent!r}" in str(caught.value)
            assert "str(user_id)" in str(caught.value.fix)


def test_what_is_no_store(tmp_path: Path) -> None:
    """tool-context: A file that is no store is left alone."""
    text = tmp_path / "notes.txt"
    text.write_bytes(b"these are notes " * 99)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE sigadapt_waiting_runs (name TEXT)")
    connection.close()
    for path in (text, other, tmp_path, tmp_path / "missing" / "runs.db"):
        before = path.read_bytes() if path.is_file() else None
        store = WaitingRuns(path)
        for method in (lambda: store.get("x"), lambda: store.put(waiting()), lambda: store.for_owner("ada")):  # noqa: B023
            with pytest.raises(InvalidOption) as caught:
                method()
            assert caught.value.code == "unusable_store"
            assert f"{path} cannot be used as a store of runs" in str(caught.value)
            assert "a file that sigadapt made" in str(caught.value.fix)
        assert before is None or path.read_bytes() == before


@pytest.mark.parametrize("place", [None, 7, "", ":memory:", "a\0b", "sqlite://", "mysql://host/name"])
def test_what_is_no_place(place: Any) -> None:
    """waiting-runs: A file that is no store is left alone"""
    with pytest.raises(InvalidOption) as caught:
        WaitingRuns(place)
    assert caught.value.code == "unusable_store"


def test_a_copy_opens_connections_of_its_own(tmp_path: Path) -> None:
    """waiting-runs: A run is taken once"""
    store = WaitingRuns(tmp_path / "runs.db")
    run_id = store.put(waiting())
    assert deepcopy(store).take(run_id) is not None
    assert store.take(run_id) is None


@pytest.mark.skipif(os.name == "nt", reason="no such modes")
def test_the_file_is_private(tmp_path: Path) -> None:
    """tool-context: The file is private."""
    path = tmp_path / "runs.db"
    mask = os.umask(0)
    try:
        WaitingRuns(path).put(waiting())
    finally:
        os.umask(mask)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    assert modes.pop("runs.db") == 0o600
    assert {*modes} <= {"runs.db-shm", "runs.db-wal"}
    assert {*modes.values()} <= {0o600}


def test_a_run_that_cannot_be_read_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = WaitingRuns(path)
    run_id = store.put(waiting())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE sigadapt_waiting_runs SET run = '{}'")
    connection.close()
    for method in (store.get, store.take):
        with pytest.raises(Exception, match="no saved InputNeeded"):
            method(run_id)
    with sqlite3.connect(path) as connection:
        rows: Any = connection.execute("SELECT count(*) FROM sigadapt_waiting_runs").fetchone()
    connection.close()
    assert rows == (1,)
