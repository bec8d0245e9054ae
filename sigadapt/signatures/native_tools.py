"""Native tools: tools that a provider runs itself, such as web search. They are sent exactly as written.

New ones appear often, so they are recognised by their keys, not by a list: a `type` that is neither a
function's nor one of JSON Schema's types, without a key of a function (OpenAI's Responses, Anthropic); or
only keys of Gemini's or Bedrock's own tools (`sources/dicts.py`).

Some of them the program runs all the same (`client_names`): a shell, a text editor, a screen. No schema
checks their calls, because the provider documents their arguments.
"""

import re
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeGuard

from sigadapt.errors import printable
from sigadapt.schemas.checking import check_json
from sigadapt.schemas.json_values import Json, closest, is_object
from sigadapt.signatures.sources.dicts import MARKS, PROVIDER_TOOL_KEYS

_NOT_NATIVE = {"function", "custom", "namespace"} | {
    *("object", "array", "string", "number", "integer", "boolean", "null")
}

# https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview#client-tools
_OF_CLAUDE = re.compile(r"(bash|text_editor|memory|computer)_\d{8}")
# https://developers.openai.com/api/docs/guides/tools
_OF_OPENAI = {"shell", "local_shell", "apply_patch", "computer", "computer_use_preview", "tool_search"}
SERVER_TOOL = "server_tool"
"""The type of an entry that each provider is sent in its own words (`server_tools.py`)."""
MCP_APPROVAL = "mcp_approval_request"
"""The name under which OpenAI asks whether it may call a hosted MCP server."""


@dataclass(frozen=True)
class NativeTool:
    """A tool in a provider's own words, which the provider runs unless `client_names` says otherwise."""

    spec: Json

    def __post_init__(self) -> None:
        check_json(self.spec, tool=self.kind)
        object.__setattr__(self, "spec", deepcopy(self.spec))

    @property
    def kind(self) -> str:
        """The entry's `type`, or its first key if it has no type."""
        return str(self.spec.get("type") or next(iter(self.spec), ""))

    @property
    def client_names(self) -> tuple[str, ...]:
        """The names under which calls come that the program has to run; empty if there are none."""
        if _OF_CLAUDE.fullmatch(self.kind):
            return (str(self.spec.get("name")),)
        if self.kind == "tool_search" and self.spec.get("execution") != "client":
            return ()
        environment = self.spec.get("environment")
        if is_object(environment) and environment.get("type") not in (None, "local"):
            return ()  # a shell in a container, which OpenAI runs
        if self.kind == "mcp":  # unless it says otherwise, OpenAI asks before each call
            return () if self.spec.get("require_approval") == "never" else (MCP_APPROVAL,)
        return (self.kind,) if self.kind in _OF_OPENAI else ()

    def to_openai(self) -> Json:
        """Return a copy of the entry."""
        return deepcopy(self.spec)

    def __hash__(self) -> int:
        return hash(self.kind)

    def __str__(self) -> str:
        return printable(f"<{self.kind}>")


def is_native(source: object) -> TypeGuard[Json]:
    """Return whether a value is a dict that describes a native tool."""
    if not is_object(source) or not source:
        return False
    kind = source.get("type")
    if kind is None:
        return source.keys() <= PROVIDER_TOOL_KEYS
    if isinstance(kind, str) and (kind in _OF_OPENAI or ":" in kind or kind == SERVER_TOOL):
        return True  # a gateway's own has a prefix, such as `openrouter:web_search`, and may have parameters
    if not isinstance(kind, str) or kind in _NOT_NATIVE or not MARKS.isdisjoint(source):
        return False
    return closest(kind.lower(), _NOT_NATIVE) is None
