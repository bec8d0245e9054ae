"""JSON calls without any marker: `{"name": "get_weather", "arguments": {...}}` as the answer, or in a fence.

No markup says that this is a call, so JSON answers, examples and echoed declarations are the danger. Rules:

 a. The object must be a call of a declared tool and nothing else: a name, arguments that are an object, and
    at most a type and an id. The schema of a declaration is no arguments.
 b. It counts as the whole answer, at the beginning of a line, or after a colon or the end of a sentence; in
    front of the whole answer no words may announce an example.
 c. A fence counts if it is the answer, or if the caller or the prompt asked for `fenced-json` by name
    (`reader.py`).
"""

import re

from sigadapt.text.contract import (
    MOST_CALLS,
    CallSpan,
    TextCall,
    TextFormat,
    ToolTable,
    as_written,
    with_closer,
    writer,
)
from sigadapt.text.formats.json_calls import ARGUMENTS, IDS, NAMES, call_of
from sigadapt.text.openers import CALL_LANGUAGES, FENCE_OPENER
from sigadapt.text.quotations import is_open
from sigadapt.text.scan import Members, Scan

_EXAMPLES = re.compile(
    r"\b(?:examples?|e\.g\.|for instance|such as|like (?:this|so)|forms?|formats?|formatted|syntax"
    r"|schemas?|writes?|shows?|says|templates?|how to|to call|you (?:can|may)|use the following"
    r"|would|could|might|illustrat\w+|placeholder|definitions?|signature|documentation|docs)\b",
    re.IGNORECASE,
)
# Polite questions hold `would` and `could`: before a fence of calls, only words about the call itself count.
_SHOWS = re.compile(
    r"\b(?:examples?|e\.g\.|for instance|like (?:this|so)|looks? like|syntax|templates?|illustrat\w+"
    r"|placeholder|documentation|docs|schemas?|writes?|written|formatted|how (?:to|you|one)|definitions?"
    r"|signature|(?:would|could|might|may|can) (?:be(?=\W{0,9}\Z)|call|look|say|use|write)"
    r"|(?:call|function|tool)'?s? (?:form|format))\b",
    re.IGNORECASE,
)
# A model that quotes what a page told it to run, or says that it does not run it, makes no call. Support
# agents say `not` and `reject` of other things ("the card was rejected, so I look again"): such a word
# counts where its object is the call, or where the sentence ends soon after it.
_NEGATION = r"(?:\b(?:not|never|cannot|without|nor)|n['\u2019]t)\b"
_RUNNING = (
    r"(?:run|runs|running|do|doing|done|make|making|made|use|used|using|obey|send|sent"
    r"|(?:call|execut|invok|perform|follow|comply|trigger)\w*)"
)
_REFUSES = re.compile(
    rf"{_NEGATION}\W{{1,3}}(?:\w+[^\S\n]+){{0,4}}{_RUNNING}\b"
    rf"|{_NEGATION}(?:\W{{1,3}}\w+){{0,2}}\W{{0,9}}\Z"
    r"|\b(?:refus|declin|ignor|reject|avoid)\w*"
    rf"(?:\W{{0,9}}\Z|\W+(?:it|this|that|these|those|such|to|(?:(?:the|its?|your) )?"
    rf"(?:calls?|commands?|code|lines?|instructions?|following|{_RUNNING}))\b)"
    r"|\b(?:forbid|forbad|prohibit|dangerous|malicious|inject|attack|suspicious)"
    r"|\b(?:told|tells?|asked|asks|says|said|wrote|states|stated|claims?|instruct\w*|demand\w*|wants|contains?)\b"
    r"|\b(?:calls?|commands?|code|lines?|instructions?) (?:was|were|is|are|reads?)\b",
    re.IGNORECASE,
)
_NEW_SENTENCE = re.compile(r"[.!?][\"')*]{0,3}\s{1,9}(?=[^a-z\s])")
BARE_OPENER = r"(?<![^\n])[\[{]|\{\s*\"(?:name|tool_name|function|type|tool)\"\s*:"
"""Where calls without markup may begin: at a line's beginning, and before an object that names something."""

_PROSE_LENGTH = 160  # characters of prose that are searched for such words
_FENCE = re.compile(r"[ \t]*```([\w-]*)[ \t\r]*\n?")
_KEYS = "|".join(("tool_calls", "type", "index", *NAMES, *ARGUMENTS, *IDS))
HEAD = rf"\[?\s*\{{\s*\"(?:{_KEYS})\"\s*:"
"""How an object that is a call and nothing else begins."""
_WRAPPER = re.compile(r'\{\s*"tool_calls"\s*:\s*(?=\[)')
_INLINE = re.compile(r"(?:[:.!?][)\"']?[ \t]+|[:;][ \t]*)\Z")


def announces_example(text: str, end: int | None = None) -> bool:
    """Return whether the words before a position, or before the end, announce an example and no call."""
    if end is None:
        end = len(text)
    prose = text[max(0, end - _PROSE_LENGTH) : end].rstrip()
    return bool(_EXAMPLES.search(prose.rpartition("\n\n")[2]))


def shows_call(text: str, end: int) -> bool:
    """Return whether the sentence before a fence of calls shows one, and makes none."""
    prose = text[max(0, end - _PROSE_LENGTH) : end].rstrip().rpartition("\n\n")[2]
    sentence = _NEW_SENTENCE.split(prose)[-1]
    return bool(_SHOWS.search(sentence) or _REFUSES.search(sentence))


def read_plain(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read calls that stand in the text as they are."""
    if start <= scan.content_start:
        return _read_wrapped(scan, start, tools, is_whole_answer=True)
    lead = scan.text[max(0, start - 4) : start]
    may_begin = lead.endswith("\n") or _INLINE.search(lead)
    if not may_begin or announces_example(scan.text, start):
        return None
    span = _read_wrapped(scan, start, tools, is_whole_answer=False)
    # Text that goes on with a quote or a backtick talks about a call.
    if span is None or scan.text.startswith(("`", '"', "'"), span.end):
        return None
    return span


def read_fence(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read calls in a code fence."""
    fence = _FENCE.match(scan.text, start)
    if fence is None or fence[1] not in ("", "json", "tool", *CALL_LANGUAGES):
        return None
    span = _read_wrapped(scan, fence.end(), tools, is_whole_answer=True)
    return with_closer(scan, span, "```") if span else None


def _read_wrapped(scan: Scan, start: int, tools: ToolTable, *, is_whole_answer: bool) -> CallSpan | None:
    """Read what `_sequence` does, or `{"tool_calls": [...]}` around it."""
    wrapper = _WRAPPER.match(scan.text, scan.space(start))
    if wrapper is None:
        return _sequence(scan, start, tools, is_whole_answer=is_whole_answer)
    span = _sequence(scan, wrapper.end(), tools, is_whole_answer=is_whole_answer)
    return with_closer(scan, span, "}") if span else span


def _sequence(scan: Scan, start: int, tools: ToolTable, *, is_whole_answer: bool) -> CallSpan | None:
    """Read one object, several or a list, of which each must be a call."""
    cursor = scan.space(start)
    is_list = scan.text.startswith("[", cursor)
    if is_list:
        cursor = scan.space(cursor + 1)
    calls = list[TextCall]()
    end = cursor
    while scan.text.startswith("{", cursor) and len(calls) <= MOST_CALLS:
        members = scan.members_at(cursor)
        call = call_of(scan, members, tools, must_be_exact=True)
        if call is None or members.end is None:
            cut_call = _read_cut_off(scan, members, tools) if is_whole_answer else None
            if cut_call is not None:
                return CallSpan([*calls, cut_call], len(scan.text))
            # A list that holds anything but calls is data.
            if is_list:
                return None
            break
        calls.append(call)
        end = members.end
        cursor = scan.space(end)
        # Small models write `;` between calls, and a comma after the last.
        if scan.text.startswith((",", ";"), cursor):
            cursor = scan.space(cursor + 1)
    if not calls:
        return None
    if not is_list:
        return CallSpan(calls, end)
    if scan.text.startswith("]", cursor):
        return CallSpan(calls, cursor + 1)
    is_cut_list = cursor == len(scan.text) and is_whole_answer
    return CallSpan(calls, end) if is_cut_list else None


def _read_cut_off(scan: Scan, members: Members, tools: ToolTable) -> TextCall | None:
    """Return the call that the text ends in."""
    name = tools.name_of(next((members.fields[key][0] for key in NAMES if key in members.fields), None))
    if name is None or name not in tools.schemas or members.broken_member is None:
        return None
    key, args_start = members.broken_member
    is_args_start = key in ARGUMENTS and scan.text.startswith(("{", '"{'), args_start)
    if not is_args_start or not is_open(scan.text, args_start):
        return None
    return as_written(scan, name, args_start, len(scan.text))


_CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'

FORMATS: tuple[TextFormat, ...] = (
    TextFormat(
        "plain-json",
        BARE_OPENER,
        read_plain,
        _CALL,
        "Objects on their own, with `;` or a line between, or a list. Other JSON is an answer.",
        closing_tags=("</tool_call>", "<|eot_id|>", "<|eom_id|>"),
        write=writer("{json}"),
        bare=True,
        head=HEAD,
    ),
    TextFormat(
        "fenced-json",
        FENCE_OPENER,
        read_fence,
        f"```json\n{_CALL}\n```",
        "A fence that is the whole answer; if named, any.",
        write=writer("{json}", prefix="```json\n", suffix="\n```"),
        bare=True,
    ),
)
