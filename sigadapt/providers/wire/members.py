"""What a provider documents of a request: the names of its members, which hold no secret.

A recording keeps these members, and masks all others (`trust/masking.py`).
"""

from typing import NamedTuple


def member_names(text: str) -> frozenset[str]:
    """Return the names in a text, which spaces separate."""
    return frozenset(text.split())


class DocumentedMembers(NamedTuple):
    """The documented members of a request on one wire."""

    body: frozenset[str] = frozenset()  # settings, and what holds the conversation
    conversation: str = "messages"  # the member with messages, which may hold tools that a search found
    tool_lists: frozenset[str] = frozenset()  # members of the body that hold tools
    tool_groups: frozenset[str] = frozenset()  # members of a tool that hold a tool or several
    tool: frozenset[str] = frozenset()  # members of a tool, each with all that is in it
