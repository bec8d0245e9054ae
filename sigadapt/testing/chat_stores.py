"""Check a store of your own for `sigadapt.ui.Chats`: that it keeps the promises of `ui.ChatStore`."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from sigadapt.errors import InvalidOption
from sigadapt.ui.log.chat_store import ChatStore

_EVENTS = ['{"type":"message"}', '{"text":"\u00e4 \U0001f600 \\u0000 \' -- \\"}', "x" * 100_000]
_ODD_ID = "c1'; -- \u00e4 \U0001f600 \x00" + "x" * 400
_WRITERS = 8
_RACES = 10


def check_chat_store(store: ChatStore) -> None:
    """Check that chats can be kept in a store of your own.

    It appends, reads, deletes and races in chats of its own, which it deletes at the end.

    Args:
        store: your store, connected to a database of your tests.

    Raises:
        InvalidOption: `unusable_store`, with the promise that the store does not keep.

    Example:
        >>> import dspy, os, tempfile
        >>> from sigadapt.testing import check_chat_store
        >>> from sigadapt.ui import Chats
        >>> with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        ...     check_chat_store(
        ...         Chats(dspy.Predict("question -> answer"), os.path.join(folder, "c.db")).store
        ...     )
    """
    owner, other = f"ada-{uuid4().hex}", f"bob-{uuid4().hex}"
    chats = ("c1", "c2", _ODD_ID)
    try:
        _check_log(store, owner)
        _check_owners(store, owner, other)
        _check_beats(store, owner)
        _check_deleting(store, owner)
        for number in range(_RACES):
            _check_race(store, owner, number)
    finally:
        for chat_id in chats:
            store.delete(chat_id, owner)
            store.delete(chat_id, other)


def _check_log(store: ChatStore, owner: str) -> None:
    _promise(store.read("c1", owner) == [], "`read` returns [] for a chat that is none")
    _promise(
        not store.append("c1", owner, 3, _EVENTS[:1]), "`append` behind a number that is not there is False"
    )
    _promise(store.append("c1", owner, 0, _EVENTS[:2]), "`append` behind 0 begins a chat, and is True")
    _promise(not store.append("c1", owner, 0, _EVENTS), "`append` behind 0 is False for a chat that is there")
    _promise(store.append("c1", owner, 2, _EVENTS[2:]), "`append` behind the last number is True")
    _promise(not store.append("c1", owner, 2, _EVENTS), "`append` behind an earlier number is False")
    numbered = [*enumerate(_EVENTS, 1)]
    _promise(
        store.read("c1", owner) == numbered, "`read` returns what was appended, numbered from 1, as it was"
    )
    _promise(store.read("c1", owner, 2) == numbered[2:], "`read` returns the events behind a number")
    _promise(store.read("c1", owner, 3) == [], "`read` returns [] where nothing is new")


def _check_owners(store: ChatStore, owner: str, other: str) -> None:
    _promise(store.read("c1", other) == [], "a chat of another owner is none")
    _promise(store.append("c1", other, 0, _EVENTS[:1]), "two owners may have a chat of one id")
    _promise(store.append(_ODD_ID, owner, 0, _EVENTS), "an id may hold any text")
    _promise(len(store.read("c1", owner)) == len(_EVENTS), "an append changes no chat of another owner")
    _promise(store.for_owner(owner) == [_ODD_ID, "c1"], "`for_owner` returns the ids, the newest chat first")
    _promise(store.for_owner(other) == ["c1"], "`for_owner` returns the chats of this owner alone")


def _check_beats(store: ChatStore, owner: str) -> None:
    last = len(_EVENTS)
    _promise(store.beat("none", owner) == (0, None), "`beat` returns (0, None) for a chat that is none")
    _promise(
        store.beat("c1", owner) == (last, None), "`beat` returns the last number, and None before any text"
    )
    _promise(store.beat("c1", owner, "one") == (last, "one"), "`beat` keeps the text, and no number changes")
    _promise(store.append("c1", owner, last, _EVENTS[:1]), "an append behind a beat is True")
    _promise(store.beat("c1", owner) == (last + 1, "one"), "`beat` returns the text that was given last")


def _check_deleting(store: ChatStore, owner: str) -> None:
    store.delete("c1", owner)
    store.delete("none", owner)
    _promise(store.read("c1", owner) == [], "`delete` forgets the events")
    _promise(store.beat("c1", owner) == (0, None), "`delete` forgets the number and the beat")
    _promise("c1" not in store.for_owner(owner), "`delete` forgets the chat")
    _promise(store.append("c1", owner, 0, _EVENTS[:1]), "a chat may begin again")
    _promise(store.read("c1", owner) == [(1, _EVENTS[0])], "a chat that begins again has no earlier events")


def _check_race(store: ChatStore, owner: str, number: int) -> None:
    """Let threads append behind one number at once."""
    texts = [f"{number} of {writer}" for writer in range(_WRITERS)]
    with ThreadPoolExecutor(_WRITERS) as pool:
        tries = [pool.submit(store.append, "c2", owner, number, [text]) for text in texts]
        taken = [each.result() for each in tries]
    _promise(sum(taken) == 1, "of several appends behind one number, exactly one is True")
    kept = [(number + 1, texts[taken.index(True)])]
    _promise(store.read("c2", owner, number) == kept, "the append that was True is the one that is kept")


def _promise(is_kept: object, promise: str) -> None:
    if not is_kept:
        raise InvalidOption(f"the store breaks a promise: {promise}", code="unusable_store", field="store")
