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

from sigadapt.text.contract import MOST_CALLS, Calls, TextCall, TextFormat, Tools, as_written, closed, writer
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
# A model that quotes what a page told it to run, or says that it does not run it, makes no call.
_REFUSES = re.compile(
    r"\b(?:not|never|cannot|without|nor)\b|n['\u2019]t\b"
    r"|\b(?:refus|declin|ignor|reject|avoid|forbid|forbad|prohibit|dangerous|malicious|inject|attack|suspicious)"
    r"|\b(?:told|tells?|asked|asks|says|said|wrote|states|stated|claims?|instruct\w*|demand\w*|wants|contains?)\b"
    r"|\b(?:calls?|commands?|code|lines?|instructions?) (?:was|were|is|are|reads?)\b",
    re.IGNORECASE,
)
_NEW_SENTENCE = re.compile(r"[.!?][\"')*]{0,3}\s{1,9}(?=[^a-z\s])")
BARE_OPENER = r"(?<![^\n])[\[{]|\{\s*\"(?:name|tool_name|function|type|tool)\"\s*:"
"""Where calls without markup may begin: at a line's beginning, and before an object that names something."""

_BEFORE = 160  # characters of prose that are searched for such words
_FENCE = re.compile(r"[ \t]*```([\w-]*)[ \t\r]*\n?")
_KEYS = "|".join(("tool_calls", "type", "index", *NAMES, *ARGUMENTS, *IDS))
HEAD = rf"\[?\s*\{{\s*\"(?:{_KEYS})\"\s*:"
"""How an object that is a call and nothing else begins."""
_WRAPPER = re.compile(r'\{\s*"tool_calls"\s*:\s*(?=\[)')
_INLINE = re.compile(r"(?:[:.!?][)\"']?[ \t]+|[:;][ \t]*)\Z")


def announces_example(text: str, at: int | None = None) -> bool:
    """Return whether the words before a place, or before the end, announce an example and no call."""
    at = len(text) if at is None else at
    before = text[max(0, at - _BEFORE) : at].rstrip()
    return bool(_EXAMPLES.search(before.rpartition("\n\n")[2]))


def shows_call(text: str, at: int) -> bool:
    """Return whether the sentence before a fence of calls shows one, and makes none."""
    before = text[max(0, at - _BEFORE) : at].rstrip().rpartition("\n\n")[2]
    sentence = _NEW_SENTENCE.split(before)[-1]
    return bool(_SHOWS.search(sentence) or _REFUSES.search(sentence))


def read_plain(scan: Scan, at: int, tools: Tools) -> Calls | None:
    """Read calls that stand in the text as they are."""
    whole = at <= scan.content_start
    before = scan.text[max(0, at - 4) : at]
    may_begin = before.endswith("\n") or _INLINE.search(before)
    if not whole and (not may_begin or announces_example(scan.text, at)):
        return None
    calls = _read_wrapped(scan, at, tools, whole=whole)
    if calls is None or whole:
        return calls
    # Text that goes on with a quote or a backtick talks about a call.
    rest = scan.text[calls.end : calls.end + 1]
    return None if rest in ("`", '"', "'") and rest else calls


def read_fence(scan: Scan, at: int, tools: Tools) -> Calls | None:
    """Read calls in a code fence."""
    fence = _FENCE.match(scan.text, at)
    if fence is None or fence[1] not in ("", "json", "tool", *CALL_LANGUAGES):
        return None
    calls = _read_wrapped(scan, fence.end(), tools, whole=True)
    return closed(scan, calls, "```") if calls else None


def _read_wrapped(scan: Scan, at: int, tools: Tools, *, whole: bool) -> Calls | None:
    """Read what `_sequence` does, or `{"tool_calls": [...]}` around it."""
    wrapper = _WRAPPER.match(scan.text, scan.space(at))
    calls = _sequence(scan, wrapper.end() if wrapper else at, tools, whole=whole)
    return closed(scan, calls, "}") if wrapper and calls else calls


def _sequence(scan: Scan, at: int, tools: Tools, *, whole: bool) -> Calls | None:
    """Read one object, several or a list, of which each must be a call."""
    place = scan.space(at)
    is_list = scan.text.startswith("[", place)
    place = scan.space(place + 1) if is_list else place
    calls = list[TextCall]()
    end = place
    while scan.text.startswith("{", place) and len(calls) <= MOST_CALLS:
        members = scan.members_at(place)
        call = call_of(scan, members, tools, whole=True)
        if call is None or members.end is None:
            cut = _read_cut_off(scan, members, tools) if whole else None
            if cut is not None:
                return Calls([*calls, cut], len(scan.text))
            # A list that holds anything but calls is data.
            if is_list or not calls:
                return None
            break
        calls.append(call)
        end = members.end
        place = scan.space(members.end)
        # Small models write `;` between calls, and a comma behind the last.
        if scan.text.startswith((",", ";"), place):
            place = scan.space(place + 1)
    if not calls or not is_list:
        return Calls(calls, end) if calls else None
    if scan.text.startswith("]", place):
        return Calls(calls, place + 1)
    return Calls(calls, end) if place == len(scan.text) and whole else None


def _read_cut_off(scan: Scan, members: Members, tools: Tools) -> TextCall | None:
    """Return the call that the text ends in."""
    name = tools.name_of(next((members.fields[key][0] for key in NAMES if key in members.fields), None))
    key, begin = members.broken or ("", 0)
    begins = key in ARGUMENTS and scan.text.startswith(("{", '"{'), begin)
    if name is None or name not in tools.schemas or not begins or not is_open(scan.text, begin):
        return None
    return as_written(scan, name, begin, len(scan.text))


_CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'

FORMATS: tuple[TextFormat, ...] = (
    TextFormat(
        "plain-json",
        BARE_OPENER,
        read_plain,
        _CALL,
        "Objects on their own, with `;` or a line between, or a list. Other JSON is an answer.",
        after=("</tool_call>", "<|eot_id|>", "<|eom_id|>"),
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
        write=writer("{json}", begin="```json\n", end="\n```"),
        bare=True,
    ),
)
