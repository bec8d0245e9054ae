"""The contract of a route: one way to a provider, in records of what is asked together.

A provider's file lists its routes. What stands there was measured on dspy 3.4.1 and litellm 1.106.
"""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from sigadapt.json_values import Json
from sigadapt.providers.wire.content_blocks import as_part, as_written
from sigadapt.schemas.strict import StrictRules


class DocumentedMembers(NamedTuple):
    """The documented members of a request on one wire."""

    body: frozenset[str] = frozenset()  # settings, and what holds the conversation
    conversation: str = "messages"  # the member with messages, which may hold tools that a search found
    tool_lists: frozenset[str] = frozenset()  # members of the body that hold tools
    tool_groups: frozenset[str] = frozenset()  # members of a tool that hold a tool or several
    tool: frozenset[str] = frozenset()  # members of a tool, each with all that is in it


ALL_CHOICES = frozenset({"auto", "required", "none", "named", "subset"})
NO_SUBSET = ALL_CHOICES - {"subset"}

PLAIN = r"[a-zA-Z0-9_-]+"
ANY = r"(?s).+"
SIGNED_ID = "__thought__"
"""What stands between an id and the signature of Gemini that LiteLLM appends to it."""
UNSIGNED = rf"(?s)(?!.*{SIGNED_ID}).+"


def _no_block(part: Json, model: str) -> Json | None:
    return None


class RouteModels(NamedTuple):
    """Which models take a route."""

    adapter: str = ""  # lm15's class for this wire format
    server: str = ""  # lm15's name of a server that needs a route of its own
    prefixes: frozenset[str] = frozenset()  # of model names, over LiteLLM
    model_type: str = "chat"  # of `dspy.LM`, over LiteLLM


class TurnRules(NamedTuple):
    """How turns go back."""

    takes: frozenset[str] = frozenset()  # the wires whose state can be sent back
    # The field in which an OpenAI-like server wants its reasoning back; empty for the one that it came in,
    # None if the program keeps it.
    reasoning_field: str | None = ""
    reasoning_of_others: bool = False  # whether that field also takes the reasoning of other such servers
    # What a server with an OpenAI-like wire wants: an empty `reasoning_content` where there is no reasoning,
    # and its word for the role of instructions inside of a conversation.
    empty_reasoning: bool = False
    developer_role: str = "system"
    takes_instructions: bool = True  # whether instructions inside of a conversation have a role of their own
    writes_arguments: bool = False  # whether the client writes arguments as text that came as an object
    # Returns whether a model, by its name, gives its reasoning encrypted if it is asked to, so that it can go
    # back although the provider stored nothing; None on a wire on which nothing is ever stored.
    encrypts: Callable[[str], bool] | None = None
    # Returns the fields that the provider asks for in place of the state that a turn's first call lacks,
    # given the turn's state and the model's name.
    stand_in: Callable[[Json | None, str], Json | None] | None = None


_PICTURE = {"type": "image", "mime_type": "image/png", "data": ""}
"""What every route whose results hold blocks has a block for."""


class ResultRules(NamedTuple):
    """How results go back."""

    marks_failed: bool = False  # by a flag; otherwise their text begins with `ERROR: `
    text_failures: bool = False  # whether a failed result with the flag can only hold text
    as_objects: bool = False  # whether a result is a JSON object, as Gemini has it
    # These return the block for a part of one (`tool_results/content.py`), given the part and the model's
    # name; None if there is no such block.
    inside: Callable[[Json, str], Json | None] = _no_block
    behind: Callable[[Json, str], Json | None] = _no_block  # behind the turn's results, or in a question
    # The patterns for the MIME types of images and files whose data the provider takes; of all that has a
    # block, unless the provider documents which.
    images: str = ".*"
    files: str = ".*"
    # What a part may hold: data, or an address that goes out as one, so that nobody here downloads anything.
    sources: frozenset[str] = frozenset({"data", "url", "file_id"})
    own_blocks: bool = True  # whether results that hold pictures hold a program's own blocks, too

    def takes(self, part: Json) -> bool:
        """Return whether the provider takes a part, by the type of its data or by its address."""
        if part["type"] in ("text", "json"):
            return True
        if "data" not in part:
            return not self.sources.isdisjoint(part)
        pattern = {"image": self.images, "file": self.files}.get(part["type"], ".*")
        mime: str = part["mime_type"].partition(";")[0].strip().lower()
        return re.fullmatch(pattern, mime) is not None

    def block_inside(self, part: Json, model: str) -> Json | None:
        """Return the block of a part inside a result; None if none can hold it."""
        if part["type"] == "block":
            return part["value"] if self.own_blocks and self.inside(_PICTURE, model) else None
        return self.inside(part, model) if self.takes(part) else None

    def block_behind(self, part: Json, model: str) -> Json | None:
        """Return the block of a part behind the results or in a question; None if none can hold it."""
        if part["type"] == "block":
            return None
        return self.behind(part, model) if self.takes(part) else None


class ChoiceRules(NamedTuple):
    """Which tool choices a route takes, and what it takes beside tools."""

    # The forms that reach the provider: the modes, one function (`named`), one `custom` tool, several
    # (`subset`), one that the provider runs (`own`), and calls that the provider checks (`validated`).
    forms: frozenset[str] = ALL_CHOICES
    parallel: bool = True  # whether `parallel_tool_calls` reaches the provider
    forces_with_thinking: bool = True  # whether it accepts a forced tool choice while thinking is on
    formats_beside_tools: bool = True  # whether it accepts a response format together with tools


class ToolRules(NamedTuple):
    """Which tools a route takes, and what of them arrives."""

    native: bool = False  # always sent as native JSON; else only if lm15's types lack a field
    fields: frozenset[str] = frozenset()  # of a tool, beside its function, that arrive
    result_schema: str = ""  # the field among them for the JSON Schema of a tool's result
    strict: bool = False  # whether a strict flag on a tool reaches the provider
    strict_rules: StrictRules = StrictRules()
    custom: bool = False  # whether it takes custom tools, whose calls are free text
    lost_server_tools: frozenset[str] = frozenset()  # which the client refuses
    root_pattern: str = ANY  # for keywords that arrive at the root of a tool's schema


class SearchRules(NamedTuple):
    """A provider's own search for deferred tools."""

    types: str  # the pattern for its types
    tool: tuple[tuple[str, str], ...]  # that search, in the place of another provider's
    supports: Callable[[str], bool]  # whether a model has it, by its name
    namespaces: bool = False  # whether the provider's file groups the tools that it is for


class IdentifierRules(NamedTuple):
    """What a name or an id has to look like."""

    pattern: str  # that a whole one must match
    longest: int  # in characters
    own: bool = True  # whether a server takes back each that it made, whatever it looks like


class Route(NamedTuple):
    """One way to a provider, and what its client gets wrong or cannot know."""

    wire: str  # the wire format's name
    client: Literal["lm15", "litellm", "engine"]  # who writes the request; `engine`: the user's own
    as_chat: bool = False  # whether it is written as chat messages, which LiteLLM translates
    models: RouteModels = RouteModels()  # which models take it
    endpoint: str = ""  # which server it leads to, if that is one of many with an OpenAI-like wire
    turns: TurnRules = TurnRules()  # how earlier turns go back
    results: ResultRules = ResultRules()  # how results go back
    choices: ChoiceRules = ChoiceRules()  # which tool choices arrive
    tools: ToolRules = ToolRules()  # which tools arrive
    search: SearchRules | None = None  # the provider's search for deferred tools
    names: IdentifierRules = IdentifierRules(PLAIN, 64)  # what a tool's name has to look like
    ids: IdentifierRules = IdentifierRules(UNSIGNED, 1_000)  # what a call's id has to look like
    templated: bool = False  # whether its server may read texts through a chat template
    # Returns the block of a question for a content block that DSPy wrote (`wire/content_blocks.py`), given it
    # and the model's name; None if there is no such block or the client loses it.
    question_block: Callable[[Json, str], Json | None] = as_written
    # Returns a sentence on what the client may lose of a canonical Request in silence, and the way around it.
    caveat: Callable[[Json], str] | None = None

    def replays(self, state: Json) -> bool:
        """Return whether a turn's state goes back: that of an OpenAI-like server to the same server alone."""
        endpoint = state.get("endpoint")
        return state["dialect"] in self.turns.takes if endpoint is None else endpoint == self.endpoint


def _same_part(part: Json, model: str) -> Json | None:
    return part


OWN_ENGINE = Route(
    "lm15",
    "engine",
    results=ResultRules(marks_failed=True, inside=_same_part, own_blocks=False),
    names=IdentifierRules(ANY, 1_000_000),
    ids=IdentifierRules(UNSIGNED, 1_000_000),
    question_block=as_part,
)
"""The route through an engine that the user made, which takes lm15's types unchanged."""
