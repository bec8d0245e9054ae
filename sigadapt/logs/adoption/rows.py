"""Rows of data: what an exchange's request holds, and the calls of its answer that were right.

A row is its request. It names its tools where these are the declarations that the log shares, and holds the
declaration where it is another one, or the tool of one provider. It has the request's settings, without the
model and what only bills or marks.
"""

from collections.abc import Sequence
from typing import Any

from sigadapt.logs.adoption.gold import Gold
from sigadapt.logs.exchanges import LoggedExchange
from sigadapt.schemas.json_values import Json, compact
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.trust.echoes import Echoes
from sigadapt.trust.masking import secrets_in

_NO_SETTINGS = frozenset(
    str.split("""
    background container include metadata model n prompt_cache_key prompt_cache_retention safety_identifier
    service_tier store stream stream_options user
    """)
)
"""What a request sets that changes no call: the model, bills, marks, and how the answer travels."""


class SharedTools:
    """The newest declaration of each function of a log, which rows name.

    Attributes:
        decls: the declarations, without secrets.
        provider_tools: how many tools there are that one provider alone has.
    """

    def __init__(self, exchanges: Sequence[LoggedExchange]) -> None:
        newest: dict[str, ToolDecl] = {}
        provider_tools: set[str] = set()
        for tools in {id(each.conversation.tools): each.conversation.tools for each in exchanges}.values():
            provider_tools |= {
                compact(entry.to_openai()) for entry in tools.entries if not _is_function(entry)
            }
        for exchange in exchanges:
            for entry in exchange.conversation.tools.entries:
                if isinstance(entry, ToolDecl) and entry.format is None:
                    newest[entry.name] = entry
        self.provider_tools = len(provider_tools)
        self._newest = {name: _document_of(entry) for name, entry in newest.items()}
        documents = [*self._newest.values()]
        hidden = Echoes({*secrets_in(documents)}).hidden_in(documents, (), {})
        self.decls = ToolDecls(hidden)
        self._entries: dict[int, tuple[ToolDecls, list[Any]]] = {}

    def entries_of(self, tools: ToolDecls) -> list[Any]:
        """Return the names of a request's tools, or their declarations where these are others."""
        known = self._entries.get(id(tools))
        if known is None:
            entries: list[Any] = []
            for entry in tools.entries:
                document = _document_of(entry)
                name = getattr(entry, "name", None)
                is_shared = _is_function(entry) and self._newest.get(str(name)) == document
                entries.append(name if is_shared else document)
            known = self._entries[id(tools)] = tools, entries
        return known[1]


def _document_of(entry: Any) -> Json:
    """Return a declaration as JSON, without the mark of a cache, which only bills."""
    document: Json = entry.to_openai()
    return {key: value for key, value in document.items() if key != "cache_control"}


def _is_function(entry: Any) -> bool:
    """Return whether a tool is one that every provider takes."""
    return isinstance(entry, ToolDecl) and entry.format is None


def row_of(exchange: LoggedExchange, name: str, gold: Gold, tools: SharedTools) -> Json | None:
    """Return the row of an exchange, without secrets; None if nothing in its answer was right."""
    conversation = exchange.conversation
    if not gold.calls and (gold.failures or not gold.is_in_words or not conversation.tools):
        return None
    history = conversation.history
    results = conversation.results
    settings = {key: value for key, value in conversation.settings.items() if key not in _NO_SETTINGS}
    entries = tools.entries_of(conversation.tools)
    row: Json = {
        "question": conversation.question,
        "history": history.model_dump(mode="json") if history.messages else None,
        "results": None if results is None else results.model_dump(mode="json"),
        "system": conversation.system,
        "tools": entries,
        "settings": settings,
    }
    if any(not isinstance(entry, str) for entry in entries):  # which its own wire takes as they are
        row["wire"] = conversation.wire
    row["conversation"] = name
    if gold.calls:
        row["calls"] = [{"name": call.name, "args": call.args} for call in gold.calls]
        row["confirmed"] = gold.is_confirmed
        row["why"] = gold.reason
    secrets = exchange.secrets | {*secrets_in(row)}
    return Echoes(secrets).hidden_in(row, (), {}) if secrets else row
