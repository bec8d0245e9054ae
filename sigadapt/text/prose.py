"""Words around a call that show it or refuse it, so that it is none."""

import re

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
_PROSE_LENGTH = 160  # characters of prose that are searched for such words


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
