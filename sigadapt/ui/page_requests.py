"""Read what a page sends: a message of its user, or replies to what the chat waits for.

A body comes from a browser, so it may hold anything. Rules:

 a. Of the history that the page sends, nothing counts: the chat's own is in the store.
 b. A body is a message, if the last message is the user's, else replies. Never both.
 c. What is read is bounded, and costs no more than the last message is long.
 d. A reply names a request by its id. What it says about the call, such as its arguments, is not read.
 e. A file is read if it is in the body itself: its bytes as base64, of a type that no browser runs.

    AI SDK:  {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBO...", ...}
    AG-UI:   {"type": "image", "source": {"type": "data", "value": "iVBO...", "mimeType": "image/png"}}
             {"type": "binary", "mimeType": "image/png", "data": "iVBO...", "filename": "a.png"}
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sigadapt.errors import InvalidOption
from sigadapt.json_values import Json, cut, is_array, is_object, type_of, without_halves
from sigadapt.ui.page_values import UNKNOWN_TYPE, safe_media_type

_LONGEST_ID = 500
_LONGEST_TEXT = 1_000_000
"""The most characters of a message."""
_MOST_REPLIES = 100_000
_UNREAD_MEMBERS = {"context": "context", "state": "state", "forwardedProps": "forwarded properties"}
"""Of a `RunAgentInput`."""
MOST_BYTES = 10_000_000
"""Of the files of one message, as base64."""
_ADDRESS = re.compile(r"data:([\w.+/-]+);base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True)
class PageFile:
    """A file of a message: its type, its bytes as base64, and its name if the page gave one."""

    media_type: str
    data: str
    name: str | None = None

    @property
    def address(self) -> str:
        """The file as a `data:` address."""
        return f"data:{self.media_type};base64,{self.data}"


def is_file_part(part: Json) -> bool:
    """Return whether a part of a user's message is a file."""
    return part.get("type") != "text" and any(name in part for name in ("url", "source", "data", "mediaType"))


def file_of(part: Json) -> PageFile | str:
    """Return the file in a part; a text says why it is not taken."""
    name = part.get("filename")
    source = part.get("source")
    members = source if is_object(source) else part
    kind: object = members.get("mediaType") or members.get("mimeType")
    data: object = members.get("value") or members.get("data")
    address = part.get("url") or members.get("url")
    if isinstance(address, str):
        match = _ADDRESS.match(address)
        if match is None:
            return "a file is sent as a data: address in base64, never as a link"
        kind, data = match[1], address[match.end() :]
    if not isinstance(kind, str) or safe_media_type(kind) == UNKNOWN_TYPE:
        return f"files of the type {cut(repr(kind))} are not taken"
    if not isinstance(data, str) or len(data) > MOST_BYTES:
        return f"a file is longer than {MOST_BYTES:,} bytes of base64, or none"
    if not _BASE64.fullmatch(data):
        return "the bytes of a file are no base64"
    return PageFile(kind, data, name if isinstance(name, str) else None)


@dataclass(frozen=True)
class Message:
    """What the user wrote."""

    id: str
    text: str
    files: tuple[PageFile, ...] = ()


@dataclass(frozen=True)
class Approval:
    """A yes, or a no with its reason."""

    approved: bool
    reason: str | None = None


@dataclass(frozen=True)
class PageOutput:
    """An answer to a question, or a result of a call."""

    value: Any


@dataclass(frozen=True)
class Payload:
    """What AG-UI answers to an interrupt: its request says what it must be."""

    value: Any


@dataclass(frozen=True)
class Refusal:
    """The user will not answer."""

    reason: str | None = None


PageReply = Approval | PageOutput | Payload | Refusal


@dataclass(frozen=True)
class PageRequest:
    """A body of a page, read.

    Attributes:
        chat_id: the chat.
        message: what the user wrote; None if the body holds replies.
        replies: by the id of the request, or of the call on the page whose result it is.
        named: the ids of requests that the page says it answers.
        again: whether the page asks for another answer to the message.
        message_id: of the assistant's message that continues; None for a new one.
        shown_calls: the ids of the calls in that message, as the page says; to write no text twice.
        shown_texts: its texts.
        run_id: AG-UI's id of the run.
        unread: what the page has sent that nothing takes, for the log.
    """

    chat_id: str
    message: Message | None = None
    replies: dict[str, PageReply] = field(default_factory=dict[str, PageReply])
    named: frozenset[str] = frozenset()
    again: bool = False
    message_id: str | None = None
    shown_calls: frozenset[str] = frozenset()
    shown_texts: frozenset[str] = frozenset()
    run_id: str = ""
    result_ids: dict[str, str] = field(default_factory=dict[str, str])
    """By the ids of calls: the messages of the page that hold their results."""
    unread: tuple[str, ...] = ()


def read_ai_sdk(body: object, *, takes_files: bool = False) -> PageRequest:
    """Read a body of `useChat`: https://ai-sdk.dev/docs/ai-sdk-ui/transport.

    Args:
        body: the body.
        takes_files: whether the program takes the files of a message.

    Raises:
        InvalidOption: `invalid_body`.
    """
    members = _object(body, "the body")
    chat_id = _id(members.get("id"), "id")
    messages = _messages(members)
    last = _object(_answered_message(members, messages), "the last message")
    again = members.get("trigger") == "regenerate-message"
    if last.get("role") == "user":
        unread = _system_messages(messages)
        message = _message(last, "parts", unread, takes_files=takes_files)
        return PageRequest(chat_id, message, again=again, unread=tuple(unread))
    if last.get("role") != "assistant" or again:
        raise _invalid("the last message is neither the user's nor one of the assistant with replies")
    parts = [part for part in _array(last.get("parts"), "parts") if is_object(part)]
    replies: dict[str, PageReply] = {}
    for part in parts[:_MOST_REPLIES]:
        _take_part(part, replies)
    approvals = [key for key, reply in replies.items() if isinstance(reply, Approval)]
    if not replies:
        raise _invalid("the last message is the assistant's and holds no reply")
    return PageRequest(
        chat_id,
        replies=replies,
        named=frozenset(approvals),
        message_id=_id(last.get("id"), "the last message's id"),
        shown_calls=frozenset(_texts_of(parts, "toolCallId")),
        shown_texts=frozenset(_texts_of([part for part in parts if part.get("type") == "text"], "text")),
    )


def _answered_message(members: Json, messages: list[Any]) -> Any:
    """Return the assistant's message that the body names, else the last message."""
    named = members.get("messageId")
    if isinstance(named, str) and members.get("trigger") != "regenerate-message":
        for message in reversed(messages):
            if is_object(message) and message.get("id") == named and message.get("role") == "assistant":
                return message
    return messages[-1]


def _take_part(part: Json, replies: dict[str, PageReply]) -> None:
    """Read the reply in a part of a message, if there is one."""
    state = part.get("state")
    if state == "approval-responded":
        approval = _object(part.get("approval"), "an approval")
        approved = approval.get("approved")
        if not isinstance(approved, bool):  # "yes", 1 and None are no decision
            raise _invalid(f"approved is true or false, not {cut(repr(approved))} ({type_of(approved)})")
        replies[_any_id(approval.get("id"))] = Approval(approved, _reason(approval.get("reason")))
    elif state == "output-available":
        replies[_any_id(part.get("toolCallId"))] = PageOutput(without_halves_of(part.get("output")))
    elif state == "output-error":
        replies[_any_id(part.get("toolCallId"))] = Refusal(_reason(part.get("errorText")))


def read_ag_ui(body: object, *, takes_files: bool = False) -> PageRequest:
    """Read a `RunAgentInput` of AG-UI: https://docs.ag-ui.com/sdk/js/core/types.

    Args:
        body: the body.
        takes_files: whether the program takes the files of a message.

    Raises:
        InvalidOption: `invalid_body`.
    """
    members = _object(body, "the body")
    chat_id = _id(members.get("threadId"), "threadId")
    run_id = _id(members.get("runId"), "runId")
    replies: dict[str, PageReply] = {}
    for entry in _array(members.get("resume") or [], "resume")[:_MOST_REPLIES]:
        _take_entry(_object(entry, "an entry of resume"), replies)
    if replies:
        return PageRequest(chat_id, replies=replies, named=frozenset(replies), run_id=run_id)
    messages = _messages(members)
    last = _object(messages[-1], "the last message")
    if last.get("role") == "tool":
        result_ids: dict[str, str] = {}
        return PageRequest(
            chat_id, replies=_tool_replies(messages, result_ids), run_id=run_id, result_ids=result_ids
        )
    if last.get("role") != "user":
        raise _invalid("the last message is not the user's, and there is nothing in resume")
    unread = [*_members_unread(members), *_system_messages(messages)]
    message = _message(last, "content", unread, takes_files=takes_files)
    return PageRequest(chat_id, message, run_id=run_id, unread=tuple(unread))


def _members_unread(members: Json) -> Iterator[str]:
    """Yield the members of a `RunAgentInput` that a program of its own tools and state does not take."""
    tools = members.get("tools")
    if is_array(tools) and tools:
        names = [str(tool.get("name")) for tool in tools if is_object(tool)]
        yield f"tools of the page ({cut(', '.join(names))})"
    for member, name in _UNREAD_MEMBERS.items():
        if members.get(member):
            yield name


def _tool_replies(messages: list[Any], result_ids: dict[str, str]) -> dict[str, PageReply]:
    """Read the results since the user's last message: each stands behind its call."""
    replies: dict[str, PageReply] = {}
    for message in reversed(messages[-_MOST_REPLIES:]):
        if not is_object(message) or message.get("role") == "user":
            break
        if message.get("role") == "tool":
            result = PageOutput(without_halves_of(message.get("content")))
            call_id = _any_id(message.get("toolCallId"))
            replies.setdefault(call_id, result)
            result_ids.setdefault(call_id, _any_id(message.get("id")))
    return replies


def _take_entry(entry: Json, replies: dict[str, PageReply]) -> None:
    """Read an entry of `resume`. Its payload is judged by its request, which the store has."""
    interrupt_id = _any_id(entry.get("interruptId"))
    status = entry.get("status")
    if status == "resolved":
        replies[interrupt_id] = Payload(without_halves_of(entry.get("payload")))
    elif status == "cancelled":
        replies[interrupt_id] = Refusal()
    else:
        raise _invalid(f"status is resolved or cancelled, not {cut(repr(status))}")


def without_halves_of(value: Any) -> Any:
    """Return a value of a body, with U+FFFD for half a character, as everywhere; too deep a one as text."""
    try:
        return without_halves(value)
    except RecursionError:
        raise _invalid("a value is nested too deeply") from None


def _messages(members: Json) -> list[Any]:
    messages = _array(members.get("messages"), "messages")
    if not messages:
        raise _invalid("messages is empty")
    return messages


def _system_messages(messages: list[Any]) -> list[str]:
    """Return the roles of messages that only a program may write."""
    roles = {str(message.get("role")) for message in messages if is_object(message)}
    return [f"a {role} message" for role in sorted(roles & {"system", "developer"})]


def _message(last: Json, member: str, unread: list[str], *, takes_files: bool) -> Message:
    """Read the user's message: its words, and its files if the program takes them."""
    message_id = _id(last.get("id"), "the last message's id")
    content = last.get(member)
    parts = [] if isinstance(content, str) else _array(content, "the message")
    file_parts = [part for part in parts if is_object(part) and is_file_part(part)]
    files: list[PageFile] = []
    for part in file_parts:
        file = file_of(part)
        if isinstance(file, PageFile) and takes_files:
            files.append(file)
        elif takes_files:
            raise _invalid(f"a file of the last message is not taken: {file}")
    if file_parts and not takes_files:
        unread.append("files of the user (Chats(..., files=...) names the input that takes them)")
    text = _text_of(content, has_files=bool(file_parts))
    if sum(len(file.data) for file in files) > MOST_BYTES:
        raise _invalid(f"the files of the last message are longer than {MOST_BYTES:,} bytes of base64")
    return Message(message_id, text, tuple(files))


def _text_of(content: Any, *, has_files: bool) -> str:
    """Return the words of a message."""
    texts = [content]
    if not isinstance(content, str):
        parts = [part for part in _array(content, "the message") if is_object(part)]
        texts = _texts_of([part for part in parts if part.get("type") == "text"], "text")
    text = without_halves("".join(texts))
    if not text.strip():
        raise _invalid("the last message holds no text" + (", but files alone" if has_files else ""))
    if len(text) > _LONGEST_TEXT:
        raise _invalid(f"the last message is longer than {_LONGEST_TEXT:,} characters")
    return text


def _texts_of(parts: list[Json], member: str) -> list[str]:
    return [part[member] for part in parts if isinstance(part.get(member), str)]


def _reason(value: object) -> str | None:
    return without_halves(value[:_LONGEST_TEXT]) if isinstance(value, str) and value.strip() else None


def _object(value: object, name: str) -> Json:
    if not is_object(value):
        raise _invalid(f"{name} is an object, not {type_of(value)}")
    return value


def _array(value: object, name: str) -> list[Any]:
    if not is_array(value):
        raise _invalid(f"{name} is an array, not {type_of(value)}")
    return value


def _id(value: object, name: str) -> str:
    """Return an id that is kept: a text of a length that fits."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_ID or without_halves(value) != value:
        shown = cut(repr(value)) if isinstance(value, str) else type_of(value)  # it may be deep
        raise _invalid(f"{name} is a text of 1 to {_LONGEST_ID} characters, not {shown}")
    return value


def _any_id(value: object) -> str:
    """Return an id that a request may have; one that is too long, or none, is the id of no request."""
    return value if isinstance(value, str) and len(value) <= _LONGEST_ID else ""


def _invalid(reason: str) -> InvalidOption:
    fix = "Send what the client of the protocol sends."  # a server that shows the message shows this, too
    return InvalidOption(reason, code="invalid_body", field="body", fix=fix)
