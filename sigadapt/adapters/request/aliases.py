"""Aliases for names and ids that a provider would refuse (names travel), and ids of calls that came without.

An alias depends only on the name and on the provider's limits, so it is the same in every turn, demo and
process. It ends in digits of the name's hash, so that two names do not share one.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sigadapt.adapters.request.canonical import Request
from sigadapt.providers.route import SIGNED_ID
from sigadapt.schemas.json_values import compact, is_unicode, short_hash

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")
_DIGITS = (8, 16, 32, 64)


def aliases(names: Sequence[str], pattern: str, longest: int) -> dict[str, str]:
    """Return the aliases of the names that need one, by name."""
    if not names:
        return {}
    fullmatch = re.compile(pattern).fullmatch
    misfits = [name for name in names if len(name) > longest or not fullmatch(name) or not is_unicode(name)]
    if not misfits:
        return {}
    # An alias must not be the name of another tool either.
    reserved = set(names).difference(misfits)
    return {name: alias_of(name, longest, reserved) for name in dict.fromkeys(misfits)}


def alias_of(name: str, longest: int, reserved: set[str], use: int = 1) -> str:
    """Return the alias of a name, of those that are not reserved; `use` counts the calls with this id."""
    # The digest is of the name alone, so every request has the same alias, and the prompt cache stays.
    seed = name if use == 1 else f"{name}\n{use}"
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
    if longest <= _DIGITS[0] + 1:  # there is no room for a word, and no place for an underscore
        short = digest[:longest]
        return alias_of(name, longest, reserved, use + 1) if short in reserved else short
    safe = _UNSAFE.sub("_", name.partition(SIGNED_ID)[0]).strip("_-") or "tool"
    # Gemini wants a letter or an underscore first.
    if not safe[0].isalpha():
        safe = f"t_{safe}"
    candidates = (
        f"{safe[: longest - digits - 1]}_{digest[:digits]}" for digits in _DIGITS if digits < longest - 1
    )
    free = next((alias for alias in candidates if alias not in reserved), "")
    return free or alias_of(name, longest, reserved, use + 1)


_SAID = ("role", "content", "tool_calls", "tool_call_id", "name")


@dataclass
class MadeIds:
    """The ids of calls that came without one, by their index: those of this request and candidate alone.

    They are known before an answer comes, so that every piece of a stream has the id of the whole call. They
    are the same for a cached answer, and other ones in the next turn and in another conversation.
    """

    request: Request
    candidate: int = 0

    def __call__(self, index: int) -> str:
        """Return the id of the call at an index of the answer."""
        return f"call_{short_hash(f'{self.request_hash} {index}')}"

    @cached_property
    def request_hash(self) -> str:
        """A hash of the request and the candidate."""
        # Settings and the tools of providers may hold credentials, and tell no two conversations apart.
        rows = [{key: row.get(key) for key in _SAID} for row in self.request["messages"]]
        tools = [tool for tool in self.request.get("tools", ()) if "function" in tool or "custom" in tool]
        identity = [self.request["model"], rows, tools, self.request.get("tool_choice"), self.candidate]
        return short_hash(compact(identity))
