"""The table of a chat: which event counts in which state, and what it makes of the state.

`apply` knows no clock, no store and no chance. An event that does not fit the state, or cannot be read,
changes nothing: a log with such a row costs that row.

| event | members | counts while the chat | leaves it | what it says |
|---|---|---|---|---|
| `message` | id, text, files | is idle | running | the user wrote; the run is named by this number |
| `cut` | turn | is idle | idle | the turns from this number on are gone, for the page and the model |
| `replies` | decided | waits | carrying out | these requests are decided |
| `text` | id, text | runs | | words that the page shows |
| `unsaid` | ids | runs | | these texts are not what the program has put out, and go |
| `call` | page_id, call_id, name, input, bad | runs | | a call that the page shows, or what is new about it |
| `asked` | at, event | runs | | an event of the model's history whose calls have no results yet |
| `begun` | call_id, name, input | runs | | the call may have had an effect from here on |
| `result` | page_id, result, denial, id | runs | | a call has ended |
| `round` | at, event | runs | | an event of the model's history, as the agent has it |
| `base` | events | runs | | the program has shortened its history: this stands before the turn |
| `state` | state | runs | | `context.state` |
| `resolved` | | carries out | running | the turn that waited is over; its `round` came before |
| `waits` | run, agent, page_ids | runs | waiting | a saved run without its history |
| `refused` | | carries out | waiting | nothing ran: the requests are open again |
| `stop` | | runs | | the run ends before its next tool or request |
| `ended` | how | runs | idle | `answer`, `error`, `stopped`, or `lost`: its process has died |

A chat that carries decisions out runs, too.
"""

from collections.abc import Callable
from hashlib import sha256

from pydantic_core import from_json

from sigadapt.schemas.json_values import Json
from sigadapt.ui.log.chat import CallPart, Chat, ChatTurn, RunUnderWay, Status, TextPart, WaitingRun
from sigadapt.ui.page.page_files import PageFile, kept_file


def apply(chat: Chat, number: int, text: str) -> bool:
    """Make of a chat what the event of this number makes of it; return False if it cannot be read."""
    chat.number = number
    try:
        text = with_files(chat, text)
        event = from_json(text)
        statuses, change = _TABLE[event["type"]]
        if chat.status in statuses:
            change(chat, event)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return False
    return True


def short_name(file: PageFile) -> str:
    """Return what stands for the bytes of a file in all events but that of its message."""
    return f"sigadapt-file:{sha256(file.address.encode()).hexdigest()}"


def with_files(chat: Chat, text: str) -> str:
    """Return the text of an event with the bytes of files."""
    for name, address in chat.files.items():
        text = text.replace(name, address)
    return text


def without_files(chat: Chat, text: str) -> str:
    """Return the text of an event with short names in the place of files, whose bytes are kept once."""
    for name, address in chat.files.items():
        text = text.replace(address, name)
    return text


def _cut(chat: Chat, event: Json) -> None:
    kept = [turn for turn in chat.turns if turn.number < event["turn"]]
    if len(kept) < len(chat.turns):  # the base was that of the last turn alone
        chat.base = None
    chat.turns = kept


def _message(chat: Chat, event: Json) -> None:
    turn = ChatTurn(chat.number, event["id"], event["text"])
    if chat.base is not None and chat.turns:
        chat.base = [*chat.base, *chat.last.events]
    turn.files = [*map(kept_file, event.get("files") or ())]
    chat.files |= {short_name(file): file.address for file in turn.files}
    chat.turns.append(turn)
    chat.run = RunUnderWay(chat.number)


def _replies(chat: Chat, event: Json) -> None:
    chat.run = RunUnderWay(chat.number, event["decided"])
    chat.last.decided |= {*event["decided"]}


def _text(chat: Chat, event: Json) -> None:
    chat.last.parts.append(TextPart(event["id"], event["text"]))


def _apply_unsaid(chat: Chat, event: Json) -> None:
    gone = {*event["ids"]}
    chat.last.parts = [part for part in chat.last.parts if isinstance(part, CallPart) or part.id not in gone]


def _call(chat: Chat, event: Json) -> None:
    turn = chat.last
    part = turn.calls.get(event["page_id"])
    if part is None:
        part = CallPart(event["page_id"], event["call_id"], event["name"], event["input"])
        turn.calls[part.page_id] = part
        turn.parts.append(part)
    part.input = event["input"]
    part.bad = event.get("bad")


def _apply_begun(chat: Chat, event: Json) -> None:
    chat.last.begun[event["call_id"]] = {"name": event["name"], "input": event["input"]}


def _result(chat: Chat, event: Json) -> None:
    result = event["result"]
    part = chat.last.calls[event["page_id"]]
    chat.last.results[result["call_id"]] = result
    part.result = result
    part.denial = event.get("denial")
    part.message_id = event.get("id")


def _apply_asked(chat: Chat, event: Json) -> None:
    turn = chat.last
    _put_event(turn, event)
    turn.asked = event["at"]
    turn.begun = {}
    turn.results = {}


def _round(chat: Chat, event: Json) -> None:
    _put_event(chat.last, event)
    if chat.last.asked == event["at"]:
        chat.last.asked = None


def _put_event(turn: ChatTurn, event: Json) -> None:
    at = event["at"]
    if at > len(turn.events):
        raise IndexError
    turn.events[at:] = [event["event"]]


def _base(chat: Chat, event: Json) -> None:
    chat.base = event["events"]


def _state(chat: Chat, event: Json) -> None:
    chat.state = event["state"]


def _apply_resolved(chat: Chat, event: Json) -> None:
    chat.waiting = None


def _waits(chat: Chat, event: Json) -> None:
    chat.waiting = WaitingRun(event["run"], event["agent"], event["page_ids"])
    chat.run = None
    turn = chat.last
    if turn.asked is not None:  # the turn that waits is in the run, with what it has brought
        del turn.events[turn.asked :]
    turn.asked = None
    turn.begun = {}
    turn.results = {}


def _apply_refused(chat: Chat, event: Json) -> None:
    if chat.run is not None and chat.run.decided is not None:
        chat.last.decided -= {*chat.run.decided}
    chat.run = None


def _stop(chat: Chat, event: Json) -> None:
    if chat.run is not None:
        chat.run.is_stopped = True


def _apply_ended(chat: Chat, event: Json) -> None:
    chat.run = chat.waiting = None
    chat.last.asked = None


_IDLE: tuple[Status, ...] = ("idle",)
_RUNS: tuple[Status, ...] = ("runs", "carries_out")
_TABLE: dict[str, tuple[tuple[Status, ...], Callable[[Chat, Json], None]]] = {
    "message": (_IDLE, _message),
    "cut": (_IDLE, _cut),
    "replies": (("waits",), _replies),
    "text": (_RUNS, _text),
    "unsaid": (_RUNS, _apply_unsaid),
    "call": (_RUNS, _call),
    "asked": (("runs",), _apply_asked),
    "begun": (_RUNS, _apply_begun),
    "result": (_RUNS, _result),
    "round": (_RUNS, _round),
    "base": (_RUNS, _base),
    "state": (_RUNS, _state),
    "resolved": (("carries_out",), _apply_resolved),
    "waits": (_RUNS, _waits),
    "refused": (("carries_out",), _apply_refused),
    "stop": (_RUNS, _stop),
    "ended": (_RUNS, _apply_ended),
}
"""By the type of the event: the states in which it counts, and what it does."""
