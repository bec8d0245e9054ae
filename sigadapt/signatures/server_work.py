"""What the tools that a provider runs left in an answer: their calls, the sources and the files.

Each provider's file reads its own blocks into these types. The blocks themselves stay in the turn's state and
go back unchanged, so that none of this is saved with the calls. A value of another type than the provider
documents is read as none.
"""

from base64 import b64decode
from collections.abc import Iterator
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import pydantic

from sigadapt.errors import printable
from sigadapt.json_values import is_object
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.signatures.saved_model import SaveableModel

_T = TypeVar("_T")


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


_Text = Annotated[str | None, pydantic.BeforeValidator(_text_or_none)]
_KINDS = {
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
        beginning = next((beginning for beginning in _KINDS if kind.startswith(beginning)), None)
        if beginning is not None:
            kind = _KINDS[beginning] or beginning
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
