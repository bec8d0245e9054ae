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

from hashlib import sha256

from pydantic_core import from_json

from sigadapt.json_values import Json
from sigadapt.ui.log.chat import CallPart, Chat, ChatTurn, RunUnderWay, Status, TextPart, WaitingRun
from sigadapt.ui.page_requests import PageFile

_IDLE: frozenset[Status] = frozenset({"idle"})
_WAITS: frozenset[Status] = frozenset({"waits"})
_CARRIES_OUT: frozenset[Status] = frozenset({"carries_out"})
_RUNS: frozenset[Status] = frozenset({"runs", "carries_out"})
_CHAT_EVENTS: dict[str, frozenset[Status]] = {
    "message": _IDLE,
    "cut": _IDLE,
    "replies": _WAITS,
    "base": _RUNS,
    "state": _RUNS,
    "resolved": _CARRIES_OUT,
    "waits": _RUNS,
    "refused": _CARRIES_OUT,
    "stop": _RUNS,
    "ended": _RUNS,
}
"""By the type of an event of the whole chat: the states in which it counts."""
_TURN_EVENTS: dict[str, frozenset[Status]] = {
    **dict.fromkeys(("text", "unsaid", "call", "begun", "result", "round"), _RUNS),
    "asked": frozenset({"runs"}),
}
"""By the type of an event of the last turn: the same."""


def apply(chat: Chat, number: int, text: str) -> bool:
    """Make of a chat what the event of this number makes of it; return False if it cannot be read."""
    chat.number = number
    try:
        event = from_json(with_files(chat, text))
        kind = event["type"]
        if kind in _TURN_EVENTS:
            if chat.status in _TURN_EVENTS[kind]:
                _change_turn(chat.last, event)
        elif chat.status in _CHAT_EVENTS[kind]:
            _change_chat(chat, event)
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


def _change_chat(chat: Chat, event: Json) -> None:
    match event["type"]:
        case "message":
            _begin_turn(chat, event)
        case "cut":
            _cut(chat, event["turn"])
        case "replies":
            chat.run = RunUnderWay(chat.number, event["decided"])
            chat.last.decided |= {*event["decided"]}
        case "base":
            chat.base = event["events"]
        case "state":
            chat.state = event["state"]
        case "resolved":
            chat.waiting = None
        case "waits":
            chat.waiting = WaitingRun(event["run"], event["agent"], event["page_ids"])
            chat.run = None
            _forget_asked(chat.last)
        case "refused":
            if chat.run is not None and chat.run.decided is not None:
                chat.last.decided -= {*chat.run.decided}
            chat.run = None
        case "stop":
            if chat.run is not None:
                chat.run.is_stopped = True
        case _:  # ended
            chat.run = chat.waiting = None
            chat.last.asked = None


def _begin_turn(chat: Chat, event: Json) -> None:
    turn = ChatTurn(chat.number, event["id"], event["text"])
    if chat.base is not None and chat.turns:
        chat.base = [*chat.base, *chat.last.events]
    turn.files = [PageFile(**file) for file in event.get("files") or ()]
    chat.files |= {short_name(file): file.address for file in turn.files}
    chat.turns.append(turn)
    chat.run = RunUnderWay(chat.number)


def _cut(chat: Chat, number: int) -> None:
    kept = [turn for turn in chat.turns if turn.number < number]
    if len(kept) < len(chat.turns):  # the base was that of the last turn alone
        chat.base = None
    chat.turns = kept


def _forget_asked(turn: ChatTurn) -> None:
    """Forget the event whose calls have no results: it is in the run that waits, with what it has brought."""
    if turn.asked is not None:
        del turn.events[turn.asked :]
    turn.asked = None
    turn.begun = {}
    turn.results = {}


def _change_turn(turn: ChatTurn, event: Json) -> None:
    match event["type"]:
        case "text":
            turn.parts.append(TextPart(event["id"], event["text"]))
        case "unsaid":
            gone = {*event["ids"]}
            turn.parts = [part for part in turn.parts if isinstance(part, CallPart) or part.id not in gone]
        case "call":
            part = turn.calls.get(event["page_id"])
            if part is None:
                part = CallPart(event["page_id"], event["call_id"], event["name"], event["input"])
                turn.calls[part.page_id] = part
                turn.parts.append(part)
            part.input = event["input"]
            part.bad = event.get("bad")
        case "begun":
            turn.begun[event["call_id"]] = {"name": event["name"], "input": event["input"]}
        case "result":
            part = turn.calls[event["page_id"]]
            part.result = event["result"]
            part.denial = event.get("denial")
            part.message_id = event.get("id")
            turn.results[event["result"]["call_id"]] = event["result"]
        case _:  # asked, round
            at = event["at"]
            if at > len(turn.events):
                raise IndexError
            turn.events[at:] = [event["event"]]
            if event["type"] == "asked":
                turn.asked = at
                turn.begun = {}
                turn.results = {}
            elif turn.asked == at:
                turn.asked = None
