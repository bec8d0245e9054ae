"""Tools that providers run: in a provider's own words (native tools), or under one name (server tools).

Native tools are sent exactly as written. New ones appear often, so they are recognised by their keys, not by
a list: a `type` that is neither a function's nor one of JSON Schema's types, without a key of a function
(OpenAI's Responses, Anthropic); or only keys of Gemini's or Bedrock's own tools (`sources/dicts.py`). Some of
them the program runs all the same (`client_names`): a shell, a text editor, a screen. No schema checks their
calls, because the provider documents their arguments.

Server tools are sent in the words of the provider that is asked. A canonical Request has `{"type":
"server_tool", "tool": "WebSearch", ...}` with the options that were given, and each provider's file has a
table of what it takes instead (`Route.server_tools`).

What these tools left in an answer are their calls, the sources and the files (`ServerWork`). Each provider's
file reads its own blocks into these types. The blocks themselves stay in the turn's state and go back
unchanged, so that none of this is saved with the calls. A value of another type than the provider documents
is read as none.
"""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeGuard, TypeVar
from urllib.parse import urlsplit

import pydantic

from sigadapt.errors import InvalidToolDecl, printable
from sigadapt.json_values import Json, closest, cut, is_object, type_of
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.checking import check_json
from sigadapt.signatures.saved_model import SaveableModel
from sigadapt.signatures.sources.dicts import MARKS, PROVIDER_TOOL_KEYS
from sigadapt.signatures.tool_decl import ToolDecl

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


@dataclass(frozen=True, eq=False, repr=False)
class ServerTool(NativeTool):
    """A tool that providers run. Each of them takes these arguments too.

    Args:
        options: what one provider alone has, by the part of the model's name before the slash, merged into
            its entry: `{"anthropic": {"type": "web_search_20260209", "user_location": {...}}}`.
        local: a function, or any source of one tool, to declare where a provider has no such tool. Your
            program runs its calls.

    Raises:
        InvalidToolDecl: as ToolDecl.of, for a text in the place of a list, or a count that is no int.
    """

    spec: Json = field(init=False)
    stand_in: ToolDecl | None = field(init=False)
    _: KW_ONLY
    options: Mapping[str, Mapping[str, Any]] | None = None
    local: object = None

    def __post_init__(self) -> None:
        names = [declared.name for declared in fields(self)[2:] if declared.name != "token"]
        options = {name: getattr(self, name) for name in names}
        for name in _LISTS & options.keys():
            if isinstance(options[name], str):
                fix = f"Write {name}=[{options[name]!r}]."
                reason = f"{name!r} is a list, not a text"
                kind = type(self).__name__
                raise InvalidToolDecl(reason, code="invalid_field", tool=kind, fix=fix)
        for name in _COUNTS & options.keys():
            if options[name] is not None and type(options[name]) is not int:
                reason = f"{name!r} is an int, not {type_of(options[name])}"
                raise InvalidToolDecl(reason, code="invalid_field", tool=type(self).__name__)
        stand_in = None if self.local is None else ToolDecl.of(self.local)
        options["local"] = stand_in and stand_in.to_openai()
        spec: Json = {"type": SERVER_TOOL, "tool": type(self).__name__}
        for name, value in options.items():
            if value not in (None, {}):
                spec[_WORDS.get(name, name)] = value
        object.__setattr__(self, "spec", spec)
        object.__setattr__(self, "stand_in", stand_in)
        super().__post_init__()

    @property
    def kind(self) -> str:
        """The tool's name here."""
        return type(self).__name__

    def __str__(self) -> str:
        about = self.spec.get("server_label"), urlsplit(str(self.spec.get("server_url", ""))).hostname
        return printable(f"<{' '.join([self.kind, *filter(None, about)])}>")

    __repr__ = __str__


_LISTS = frozenset(("allowed_domains", "blocked_domains", "stores", "allowed_tools"))
_COUNTS = frozenset(("max_uses",))
_WORDS = {"name": "server_label", "url": "server_url"}


@dataclass(frozen=True, eq=False, repr=False)
class WebSearch(ServerTool):
    """A search of the web: in these domains only, or not in those, at most so often in one answer.

    Example:
        >>> WebSearch(allowed_domains=["dspy.ai"], max_uses=3)
        <WebSearch>
    """

    _: KW_ONLY
    allowed_domains: Sequence[str] | None = None
    blocked_domains: Sequence[str] | None = None
    max_uses: int | None = None


class WebFetch(WebSearch):
    """A reader of pages whose address is in the conversation, with the options of `WebSearch`."""


class CodeExecution(ServerTool):
    """A sandbox in which the model runs code that it writes."""


class ImageGeneration(ServerTool):
    """A model that draws. The images come as `Files`."""


@dataclass(frozen=True, eq=False, repr=False)
class FileSearch(ServerTool):
    """A search of files that the provider keeps, in stores that it made: `FileSearch(["vs_1"])`."""

    stores: Sequence[str]


@dataclass(frozen=True, eq=False, repr=False)
class McpServer(ServerTool):
    """An MCP server that the provider asks itself: `McpServer("docs", "https://docs.test/mcp")`.

    `allowed_tools` are the only ones that the model may call. `token` is what the provider shows the server.
    It appears only in the request: in no print, fingerprint, history, recording or saved declaration.

    Raises:
        InvalidToolDecl: as ServerTool, and for an address that is none (the name comes first).
    """

    name: str
    url: str
    _: KW_ONLY
    token: str | None = None
    allowed_tools: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not is_web_address(self.url):
            raise InvalidToolDecl(
                f"{cut(repr(self.url))} is no address of a server",
                code="invalid_field",
                tool="McpServer",
                fix='Give the name first, then the address: McpServer("docs", "https://docs.test/mcp").',
            )
        super().__post_init__()

    @property
    def client_names(self) -> tuple[str, ...]:
        """The name under which OpenAI asks whether it may call the server; none if it is told not to ask."""
        options = (self.options or {}).get("openai", {})
        return () if options.get("require_approval") == "never" else (MCP_APPROVAL,)


_KINDS = (WebSearch, WebFetch, CodeExecution, ImageGeneration, FileSearch, McpServer)


def native_tool(spec: Json) -> NativeTool:
    """Return the tool that a dict describes for which `is_native` holds, such as one that was saved."""
    tools = {kind.__name__: kind for kind in _KINDS}
    kind = tools.get(str(spec.get("tool")))
    if spec.get("type") != SERVER_TOOL or kind is None:
        return NativeTool(spec)
    names = {word: name for name, word in _WORDS.items()}
    return kind(**{names.get(key, key): value for key, value in spec.items() if key not in ("type", "tool")})


def is_web_address(address: str) -> bool:
    """Return whether an address is one: `javascript:` and its kin run in the page itself."""
    if not address.isprintable() or " " in address:  # browsers leave out tabs and line ends
        return False
    try:
        parts = urlsplit(address)
    except ValueError:  # half of the brackets around an IPv6 address
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


_T = TypeVar("_T")


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


_Text = Annotated[str | None, pydantic.BeforeValidator(_text_or_none)]
_BEGINNINGS = {
    **dict.fromkeys(("tool_search", "mcp", "shell"), ""),
    **dict.fromkeys(("x_", "view_x"), "x_search"),
    **dict.fromkeys(("file", "retriev"), "file_search"),
    "image": "image_generation",
    **dict.fromkeys(("web_fetch", "url", "visit", "open", "fetch"), "web_fetch"),
    **dict.fromkeys(("web", "google", "browser", "search", "nova_grounding"), "web_search"),
    **dict.fromkeys(("code", "bash", "text_editor", "python", "nova_code"), "code_execution"),
}
"""The kind of a tool that a provider runs, by how its name begins there; empty for the beginning itself."""
_Status = Literal["completed", "failed", "pending"]
_STATUSES: dict[str, _Status] = {
    **dict.fromkeys(("completed", "done", "success", "outcome_ok"), "completed"),
    **dict.fromkeys(("failed", "error", "incomplete", "cancelled", "outcome_failed"), "failed"),
    "outcome_deadline_exceeded": "failed",
}


class ServerToolCall(SaveableModel):
    """A call of a tool that the provider ran itself, so that there is nothing to run or to answer.

    `kind` is `web_search`, `web_fetch`, `code_execution`, `file_search`, `image_generation`, `mcp`,
    `tool_search`, `x_search` or `shell`, else the provider's name for the tool. `name` and `id` are the
    provider's. `input` is what the model asked for. A call is `pending` if the answer holds no result of it.
    """

    kind: str
    name: str
    id: _Text = None
    status: _Status = "completed"
    input: dict[str, Any] = pydantic.Field(default_factory=dict)


class Source(SaveableModel):
    """A page or a document that a provider's tool found, or that the answer cites.

    `id` is the provider's, for a document without a `url`. `cited` is false for what the model has only seen.
    `quotes` are the passages that the provider shows, `quote` is the first one.
    """

    url: _Text = None
    title: _Text = None
    cited: bool = False
    quotes: tuple[str, ...] = ()
    id: _Text = None

    @property
    def quote(self) -> str | None:
        """The first passage; None if the provider shows none."""
        return next(iter(self.quotes), None)

    def __str__(self) -> str:
        return printable(", ".join(filter(None, (self.title, self.url or self.id))) or "unnamed source")


class File(SaveableModel):
    """A file that a provider's tool made: its `data` in Base64, or a `url`, or the provider's `id` for it.

    Example:
        >>> File(media_type="text/plain", data="SGku").content()
        b'Hi.'
    """

    id: _Text = None
    media_type: _Text = None
    data: _Text = pydantic.Field(default=None, repr=False)
    url: _Text = None
    name: _Text = None

    def content(self) -> bytes | None:
        """Return the bytes of the file; None if the answer does not hold them."""
        return None if self.data is None else b64decode(self.data)


class _Several(pydantic.RootModel[tuple[_T, ...]], Generic[_T]):
    model_config = pydantic.ConfigDict(frozen=True)
    root: tuple[_T, ...] = ()

    def __len__(self) -> int:
        return len(self.root)

    def __iter__(self) -> Iterator[_T]:  # pyright: ignore[reportIncompatibleMethodOverride]  (its items)
        return iter(self.root)

    def __getitem__(self, index: int) -> _T:
        return self.root[index]


class Sources(_Several[Source]):
    """The sources of an answer, also as the type of an output field, which the model does not write.

    Example:
        >>> print(Sources((Source(url="https://a.test/", title="Weather", cited=True),)))
        [1] Weather, https://a.test/
    """

    def __str__(self) -> str:
        return "\n".join(f"[{number}] {source}" for number, source in enumerate(self.root, 1))


class Files(_Several[File]):
    """The files of an answer, also as the type of an output field, which the model does not write.

    Example:
        >>> [file.id for file in Files((File(id="file_1"),))]
        ['file_1']
    """


class ServerWork(NamedTuple):
    """All that server tools left in one answer."""

    calls: tuple[ServerToolCall, ...] = ()
    sources: Sources = Sources()
    files: Files = Files()


NO_WORK = ServerWork()


class Findings:
    """What a provider's file finds in an answer, one by one, from values of a body of whatever types."""

    def __init__(self) -> None:
        self.calls: list[ServerToolCall] = []
        self.sources: dict[Any, Source] = {}
        self.files: dict[File, None] = {}

    def call(self, name: Any, call_id: Any, status: Any, args: Any, kind: Any = None) -> None:
        """Add a call; `kind` is what says it, if the name does not."""
        kind = str(kind or name).lower()
        beginning = next((beginning for beginning in _BEGINNINGS if kind.startswith(beginning)), None)
        if beginning is not None:
            kind = _BEGINNINGS[beginning] or beginning
        value = parse_arguments(args) if isinstance(args, str) else args
        if not is_object(value):
            value = {"input": args} if args else {}
        call = ServerToolCall(
            kind=kind,
            name=str(name),
            id=call_id,
            # Any other word means that the provider is not done, such as `in_progress`.
            status=_STATUSES.get(str(status).lower(), "pending"),
            input=value,
        )
        self.calls.append(call)

    def source(
        self, url: Any, title: Any, quote: Any = None, file_id: Any = None, *, cited: bool = False
    ) -> None:
        """Add a source, once: it is found first, and then cited several times."""
        quotes = (quote,) if isinstance(quote, str) and quote else ()
        new = Source(url=url, title=title, cited=cited, quotes=quotes, id=file_id)
        key = new.url or (new.id or new.title or new.quote,)
        source = self.sources.get(key, new)
        update = {
            "title": source.title or new.title,
            "cited": source.cited or cited,
            "quotes": tuple(dict.fromkeys((*source.quotes, *quotes))),
        }
        self.sources[key] = source.model_copy(update=update)

    def file(self, place: Any, media_type: Any, file_id: Any = None, name: Any = None) -> None:
        """Add a file, whose place is a data URL, an address or Base64."""
        text = place if isinstance(place, str) else ""
        if text.startswith("data:"):
            head, _, text = text.partition(",")
            media_type = head[len("data:") :].partition(";")[0] or media_type
        key = "url" if "://" in text[:10] else "data"
        self.files[File(id=file_id, media_type=media_type, name=name, **{key: text})] = None

    def work(self) -> ServerWork:
        """Return all of it."""
        if not (self.calls or self.sources or self.files):
            return NO_WORK
        return ServerWork(tuple(self.calls), Sources(tuple(self.sources.values())), Files(tuple(self.files)))
