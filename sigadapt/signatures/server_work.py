"""What the tools that a provider runs left in an answer: their calls, the sources and the files.

Each provider's file reads its own blocks into these types. The blocks themselves stay in the turn's state and
go back unchanged, so none of this is saved with the calls.
"""

from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import pydantic
from typing_extensions import Self

from sigadapt.errors import printable
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json, is_object
from sigadapt.signatures.saved_model import Saved

_T = TypeVar("_T")
_KINDS = (
    ("tool_search", ("tool_search",)),
    ("x_search", ("x_", "view_x")),
    ("file_search", ("file", "knowledge", "document", "retriev")),
    ("mcp", ("mcp",)),
    ("image_generation", ("image",)),
    ("web_fetch", ("web_fetch", "url", "visit", "open", "fetch")),
    ("web_search", ("web", "google", "browser", "search", "nova_grounding")),
    ("code_execution", ("code", "bash", "text_editor", "python", "nova_code")),
    ("shell", ("shell",)),
)
"""The kind of a tool that a provider runs, by how its name begins there."""
_DONE = frozenset(("completed", "done", "success", "succeeded", "outcome_ok"))
_FAILED = frozenset(("failed", "error", "incomplete", "cancelled", "outcome_failed"))


class ServerToolCall(Saved):
    """A call of a tool that the provider ran itself. There is nothing to run or to answer.

    Args:
        kind: `web_search`, `web_fetch`, `code_execution`, `file_search`, `image_generation`, `mcp`,
            `tool_search`, `x_search`, `shell` or `advisor`; the provider's name for any other tool.
        name: the tool's name at the provider.
        id: the provider's id of the call; None if it has none.
        status: `completed`, `failed`, or `pending` if the answer holds no result of it.
        input: what the model asked for, such as `{"query": "weather"}`.
    """

    kind: str
    name: str
    id: str | None = None
    status: Literal["completed", "failed", "pending"] = "completed"
    input: dict[str, Any] = {}

    @classmethod
    def of(cls, name: Any, call_id: Any, status: Any, sent: Any, kind: Any = None) -> Self:
        """Return the call that values of a body describe, whatever their types are."""
        word = str(status).lower()
        given = parse_arguments(sent) if isinstance(sent, str) else sent
        given = given if is_object(given) else {} if sent in (None, "") else {"input": sent}
        start = str(kind or name).lower()
        return cls(
            kind=next((kind for kind, starts in _KINDS if start.startswith(starts)), start),
            name=str(name),
            id=call_id if isinstance(call_id, str) and call_id else None,
            status="completed" if word in _DONE else "failed" if word in _FAILED else "pending",
            input=given,
        )


class Source(Saved):
    """A page or a document that a provider's tool found.

    Args:
        url: its address; None for a document that has none.
        title: its title or its file's name.
        cited: whether the answer cites it. The model has only seen the others.
        quotes: the passages of it that the provider shows.
        id: the provider's id of the file or the document.
    """

    url: str | None = None
    title: str | None = None
    cited: bool = False
    quotes: tuple[str, ...] = ()
    id: str | None = None

    @classmethod
    def of(cls, url: Any, title: Any, *, cited: bool, quote: Any = None, file_id: Any = None) -> Self:
        """Return the source that values of a body describe, whatever their types are."""
        url, title, quote, file_id = map(_text_or_none, (url, title, quote, file_id))
        return cls(url=url, title=title, cited=cited, quotes=(quote,) if quote else (), id=file_id)

    @property
    def quote(self) -> str | None:
        """The first passage; None if the provider shows none."""
        return next(iter(self.quotes), None)

    def __str__(self) -> str:
        return printable(", ".join(filter(None, (self.title, self.url or self.id))) or "unnamed source")


class File(Saved):
    """A file that a provider's tool made.

    Args:
        id: the provider's id, by which its API of files gives the content; None if the answer holds that.
        media_type: such as `image/png`; None if the provider does not say.
        data: the content in Base64.
        url: where the provider keeps it, for a time.
        name: its name.
    """

    id: str | None = None
    media_type: str | None = None
    data: str | None = pydantic.Field(default=None, repr=False)
    url: str | None = None
    name: str | None = None

    @classmethod
    def of(cls, *, at: Any = None, file_id: Any = None, media_type: Any = None, name: Any = None) -> Self:
        """Return the file that values of a body describe; `at` is Base64, a data URL or an address."""
        file_id, at, media_type, name = map(_text_or_none, (file_id, at, media_type, name))
        if at is None or at.startswith(("http://", "https://", "gs://")):
            return cls(id=file_id, media_type=media_type, url=at, name=name)
        if at.startswith("data:"):
            head, _, at = at.partition(",")
            media_type = head[len("data:") :].partition(";")[0] or media_type
        return cls(id=file_id, media_type=media_type, data=at, name=name)

    def content(self) -> bytes | None:
        """Return the bytes of the file; None if the answer does not hold them.

        Example:
            >>> File(media_type="text/plain", data="SGku").content()
            b'Hi.'
        """
        return None if self.data is None else b64decode(self.data)


class _Several(pydantic.RootModel[tuple[_T, ...]], Generic[_T]):
    """A tuple that a signature's output field can hold."""

    model_config = pydantic.ConfigDict(frozen=True)
    root: tuple[_T, ...] = ()

    def __len__(self) -> int:
        return len(self.root)

    def __iter__(self) -> Iterator[_T]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  (a RootModel of a tuple is its items)
        return iter(self.root)

    def __getitem__(self, place: int) -> _T:
        return self.root[place]


class Sources(_Several[Source]):
    """The sources of an answer, and the type of an output field that takes them. The model writes none of it.

    It prints as footnotes.

    Example:
        >>> print(Sources((Source(url="https://a.test/", title="Weather", cited=True),)))
        [1] Weather, https://a.test/
    """

    def __str__(self) -> str:
        return "\n".join(f"[{number}] {source}" for number, source in enumerate(self.root, 1))


class Files(_Several[File]):
    """The files of an answer, and the type of an output field that takes them. The model writes none of it.

    Example:
        >>> [file.id for file in Files((File(id="file_1"),))]
        ['file_1']
    """


class ServerWork(NamedTuple):
    """All of it, of one answer."""

    calls: tuple[ServerToolCall, ...] = ()
    sources: Sources = Sources()
    files: Files = Files()

    @classmethod
    def of(
        cls, calls: Iterable[ServerToolCall], sources: Iterable[Source], files: Iterable[File] = ()
    ) -> "ServerWork":
        """Return the work, with each source and file once: it may be found, and then cited several times."""
        known: dict[tuple[Any, ...], Source] = {}
        for source in sources:
            same = (source.url,) if source.url else (None, source.id or source.title or source.quote)
            before = known.setdefault(same, source)
            if before is not source:
                known[same] = before.model_copy(
                    update={
                        "title": before.title or source.title,
                        "cited": before.cited or source.cited,
                        "quotes": tuple(dict.fromkeys((*before.quotes, *source.quotes))),
                    }
                )
        return cls(tuple(calls), Sources(tuple(known.values())), Files(tuple(dict.fromkeys(files))))


NO_WORK = ServerWork()


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
