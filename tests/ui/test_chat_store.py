"""Stores of chats: both databases keep the promises of `ChatStore`, and the kit finds those that do not."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from chat_pages import SAID, bank
from databases import lacks, postgres
from tables import table

from sigadapt import ToolCalls, ToolContext, WaitingRuns
from sigadapt.errors import InputNeeded, InvalidOption
from sigadapt.testing import check_chat_store
from sigadapt.ui.log.chat_store import ChatStore, DatabaseChats

DATABASES = ("sqlite", pytest.param("postgres", marks=pytest.mark.skipif(bool(lacks()), reason=str(lacks()))))
each_form = pytest.mark.parametrize("form", ["ai_sdk", "ag_ui"])


@pytest.fixture(scope="module", params=DATABASES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A path, or the URL of a server."""
    if request.param == "sqlite":
        yield str(tmp_path_factory.mktemp("store") / "chats.db")
        return
    with postgres() as url:
        yield url


def test_a_database_keeps_the_promises(place: str) -> None:
    """chats: A store keeps its promises"""
    store = DatabaseChats(place)
    check_chat_store(store)
    store.close()
    check_chat_store(store)


@each_form
def test_a_payment_waits_in_one_process_and_is_made_in_another(form: str, place: str, tmp_path: Path) -> None:
    """chats: Two databases

    chats: A decision counts once
    """
    with bank(tmp_path) as desk:
        desk.chats = desk.new_chats(place)
        desk.say(form, "send", chat=form)
        [request] = desk.requests(form)
        desk.chats = desk.new_chats(place)
        desk.reply(form, {request["id"]: True}, chat=form)
        desk.chats = desk.new_chats(place)
        assert SAID in str(desk.reply(form, {request["id"]: False}, chat=form))
        assert desk.paid == ["Ada 75"]
        assert desk.calls(form) == [("send", "output-available", SAID)]
        assert form in desk.chats.store.for_owner("ada")
        desk.chats.store.delete(form, "ada")
        assert desk.chats.messages(form, "ada") == []


def test_runs_wait_beside_chats(place: str) -> None:
    """chats: Two databases"""

    def send(context: ToolContext) -> str:
        """Send."""
        return f"Sent to {context.ask('To whom?')}."

    with pytest.raises(InputNeeded) as caught:
        ToolCalls([{"name": "send", "args": {}}]).run([send])
    runs = WaitingRuns(place)
    run_id = runs.put(caught.value, owner="ada")
    assert runs.put(caught.value, owner="ada") == run_id
    assert [run.id for run in runs.for_owner("ada")] == [run_id]
    assert (runs.get(run_id), runs.take(run_id, owner="bob")) == (None, None)
    assert runs.take(run_id, owner="ada") is not None
    assert runs.take(run_id, owner="ada") is None


class Store:
    """A store that is one in memory, for one process."""

    def __init__(self) -> None:
        self.chats: dict[tuple[str, str], tuple[list[str], str | None]] = {}

    def append(self, chat_id: str, owner: str, number: int, events: Sequence[str]) -> bool:
        kept, beat = self.chats.get((chat_id, owner), ([], None))
        if len(kept) != number:
            return False
        self.chats[chat_id, owner] = ([*kept, *events], beat)
        return True

    def read(self, chat_id: str, owner: str, after: int = 0) -> list[tuple[int, str]]:
        kept, _ = self.chats.get((chat_id, owner), ([], None))
        return [*enumerate(kept, 1)][after:]

    def beat(self, chat_id: str, owner: str, text: str | None = None) -> tuple[int, str | None]:
        if (chat_id, owner) not in self.chats:
            return (0, None)
        kept, beat = self.chats[chat_id, owner]
        beat = beat if text is None else text
        self.chats[chat_id, owner] = (kept, beat)
        return (len(kept), beat)

    def delete(self, chat_id: str, owner: str) -> None:
        self.chats.pop((chat_id, owner), None)

    def for_owner(self, owner: str) -> list[str]:
        return [chat for chat, of in reversed(self.chats) if of == owner]


class Overwrites(Store):
    def append(self, chat_id: str, owner: str, number: int, events: Sequence[str]) -> bool:
        kept, beat = self.chats.get((chat_id, owner), ([], None))
        self.chats[chat_id, owner] = ([*kept[:number], *events], beat)
        return True


class Shares(Store):
    def read(self, chat_id: str, owner: str, after: int = 0) -> list[tuple[int, str]]:
        owners = [of for chat, of in self.chats if chat == chat_id]
        return super().read(chat_id, owners[0] if owners else owner, after)


class Trims(Store):
    def read(self, chat_id: str, owner: str, after: int = 0) -> list[tuple[int, str]]:
        return [(number, text[:1000]) for number, text in super().read(chat_id, owner, after)]


class ForgetsBeats(Store):
    def append(self, chat_id: str, owner: str, number: int, events: Sequence[str]) -> bool:
        taken = super().append(chat_id, owner, number, events)
        if taken:
            kept, _ = self.chats[chat_id, owner]
            self.chats[chat_id, owner] = (kept, None)
        return taken


class Keeps(Store):
    def delete(self, chat_id: str, owner: str) -> None:
        kept, beat = self.chats.get((chat_id, owner), ([], None))
        if kept:
            self.chats[chat_id, owner] = ([], beat)


class OldestFirst(Store):
    def for_owner(self, owner: str) -> list[str]:
        return [*reversed(super().for_owner(owner))]


BROKEN: dict[type[Store], str] = {
    Overwrites: "`append` behind a number that is not there is False",
    Shares: "a chat of another owner is none",
    Trims: "`read` returns what was appended",
    ForgetsBeats: "`beat` returns the text that was given last",
    Keeps: "`delete` forgets the number and the beat",
    OldestFirst: "the newest chat first",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_store_that_breaks_a_promise_is_told_which(kind: type[Store]) -> None:
    """chats: A store keeps its promises"""
    with pytest.raises(InvalidOption) as caught:
        check_chat_store(kind())
    assert BROKEN[kind] in str(caught.value)


def test_chats_are_kept_in_a_store_of_ones_own(tmp_path: Path) -> None:
    """chats: A store keeps its promises"""
    store: ChatStore = Store()
    check_chat_store(store)
    with bank(tmp_path) as desk:
        desk.chats = desk.new_chats(store)
        desk.say("ai_sdk", "send")
        [request] = desk.requests()
        desk.chats = desk.new_chats(store)
        desk.reply("ai_sdk", {request["id"]: True})
        assert desk.paid == ["Ada 75"]


EARLIER = {
    DatabaseChats: "CREATE TABLE chats (owner TEXT, id TEXT, version INTEGER, chat TEXT)",
    WaitingRuns: "CREATE TABLE waiting_runs (id TEXT PRIMARY KEY, owner TEXT, run TEXT NOT NULL)",
}


@pytest.mark.parametrize("kind", EARLIER, ids=lambda kind: kind.__name__)
def test_a_file_of_an_earlier_tree_is_refused(kind: Any, tmp_path: Path) -> None:
    """chats: Two databases"""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(EARLIER[kind])
    before = path.read_bytes()
    store = kind(path)
    for _ in range(2):
        with pytest.raises(InvalidOption, match=r"of a sigadapt before 0\.1\.0") as caught:
            store.for_owner("ada")
        assert caught.value.code == "unusable_store"
        assert "a new file" in str(caught.value.fix)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", EARLIER, ids=lambda kind: kind.__name__)
def test_a_file_with_another_table_of_that_name_is_a_store(kind: Any, tmp_path: Path) -> None:
    """chats: Two databases"""
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE chats (name TEXT)")
        connection.execute("CREATE TABLE waiting_runs (name TEXT)")
    assert kind(path).for_owner("ada") == []


URLS: dict[str, Any] = table(__file__, "URLS")


@pytest.mark.parametrize("kind", [DatabaseChats, WaitingRuns])
@pytest.mark.parametrize("url", URLS)
def test_a_url_that_is_no_store_is_refused_without_its_password(url: str, kind: Any) -> None:
    """chats: Two databases"""
    with pytest.raises(InvalidOption) as caught:
        kind(url)
    assert caught.value.code == "unusable_store"
    assert URLS[url] in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value.__cause__)
