"""RequestRecord: one Request, and what the passes over it leave for its answer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from sigadapt.adapters.calling.calling import NATIVE, Calling
from sigadapt.adapters.passes.adapter_search import AdapterSearch
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.providers.route import Route
from sigadapt.schemas.json_values import Json, compact, short_hash
from sigadapt.signatures.tool_decls import ToolDecls

_NO_DECLS = ToolDecls()
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


@dataclass(kw_only=True)
class RequestRecord:
    """One Request on its way to a route: as it was made, and as each pass leaves it."""

    canonical: Request  # as the hooks changed it
    route: Route
    decls: ToolDecls = _NO_DECLS  # what calls are judged by
    calling: Calling = NATIVE
    repairs: tuple[Change, ...] = ()  # what was changed before the Request was made
    is_recorded: bool = False  # whether it repeats a recorded request, whose tools are sent as they are
    breaks_tokens: bool = False  # whether control tokens of chat templates go out broken
    bridges_results: bool = False  # whether the model speaks between results and words of the user
    candidate: int = 0  # which of several answers to the same request

    # What the passes leave
    made_ids: MadeIds = field(init=False)  # of the answer's calls that come without one
    request: Request = field(init=False)  # what is sent
    changes: tuple[Change, ...] = ()  # the differences between the canonical Request and what is sent
    names: dict[str, str] = field(default_factory=dict[str, str])  # the aliases of tools, by declared name
    tokens: dict[str, str] = field(default_factory=dict[str, str])  # of MCP servers; only the body has them
    search: AdapterSearch | None = None  # of deferred tools that the adapter finds itself
    offered_tools: Sequence[Json] = ()  # those that a prompt describes

    def begin(self) -> None:
        """Begin to write what is sent, from the canonical Request."""
        self.made_ids = MadeIds(self.canonical, self.candidate)
        self.request = self.canonical
        self.changes = self.repairs
        self.names = {}
        self.tokens = {}
        self.search = None
        self.offered_tools = ()

    def note(self, where: str, what: Literal["renamed", "lowered", "dropped", "healed"], why: str) -> None:
        """Put a change on record."""
        self.extend((Change(where, what, why),))

    def extend(self, changes: Iterable[Change]) -> None:
        """Put several changes on record."""
        self.changes = (*self.changes, *changes)

    @property
    def is_native(self) -> bool:
        """Whether the provider is sent the tools; a prompt describes them otherwise."""
        return self.calling.mode == "native"
