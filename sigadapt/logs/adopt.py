"""Rows of data out of a log: the calls that were right in it, and a table of those that were not.

A call is gold if it fits its declaration and no later request shows that it failed. One that was put right in
the same turn has the corrected call as its gold. Requests that continue one another are one conversation; the
order of lines does not change that.
"""

import hashlib
import pprint
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sigadapt.logs.conversation import Conversation
from sigadapt.logs.exchanges import Exchange
from sigadapt.providers.wire.recorded import MARKED
from sigadapt.schemas.json_values import Json, compact, short_hash
from sigadapt.signatures.calls import InvalidToolCall, ToolCall
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.results import Round
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.trust.echoes import Echoes
from sigadapt.trust.masking import secrets_in

Rounds = tuple[Round, ...]
Failure = tuple[str, str | None, str | None]
"""The code of a call that was not right, its tool, and the place in its arguments."""

_HELD_OUT = 4  # one conversation of so many
_PROGRAM = '''"""What `sigadapt adopt` made of recorded traffic: its tools, and a program with them."""

from sigadapt import ToolDecls
from sigadapt.logs.talk import Talk

TOOLS = ToolDecls(
{tools}
)

program = Talk(TOOLS)
'''


@dataclass
class Adopted:
    """What a log gave: rows with gold calls, turns without a call, and failures with their counts."""

    tools: ToolDecls
    rows: list[Json] = field(default_factory=list[Json])
    silences: list[Json] = field(default_factory=list[Json])
    failures: Counter[Failure] = field(default_factory=Counter[Failure])
    heldout: frozenset[str] = frozenset()  # the ids of conversations
    conversations: int = 0
    drifted: int = 0  # rows whose calls do not fit the newest declaration
    own_tools: int = 0  # tools that a provider runs

    def files(self) -> dict[str, str]:
        """Return the texts of the files of the program, by their names."""
        tools = pprint.pformat(self.tools.to_openai(), width=100, sort_dicts=False).splitlines()
        rows: dict[str, list[Json]] = {"train": [], "heldout": [], "silences": self.silences}
        for row in self.rows:
            rows["heldout" if row["conversation"] in self.heldout else "train"].append(row)
        return {
            "program.py": _PROGRAM.format(tools="\n".join(f"    {line}" for line in tools)),
            **{f"{name}.jsonl": "".join(f"{compact(row)}\n" for row in rows[name]) for name in rows},
            "failures.json": f"{compact(self.table())}\n",
        }

    def table(self) -> list[Json]:
        """Return the failures, the most frequent first."""
        order = sorted(self.failures.items(), key=lambda item: (-item[1], str(item[0])))
        return [dict(zip(("code", "tool", "path", "count"), (*key, n), strict=True)) for key, n in order]


def adopted(exchanges: Iterable[Exchange]) -> Adopted:
    """Return what the exchanges of a log give."""
    log = sorted(exchanges, key=lambda exchange: exchange.time)
    every = [entry for exchange in log for entry in exchange.conversation.tools.entries]
    newest = {entry.name: entry for entry in every if isinstance(entry, ToolDecl)}
    server_tools = {compact(entry.to_openai()) for entry in every if not isinstance(entry, ToolDecl)}
    steps = [[*_steps(exchange.conversation)] for exchange in log]
    rounds_after: dict[str, list[Rounds]] = defaultdict(list)  # a request, by its hash
    for before, _, rounds in (step for each in steps for step in each if step[2]):
        rounds_after[before].append(rounds)
    hashes = [["", *(after for _, after, _ in each)] for each in steps]
    names = _conversations(log, hashes)
    result = Adopted(ToolDecls(newest.values()), conversations=len({*names}), own_tools=len(server_tools))
    rows: dict[str, Json] = {}
    for exchange, digests, name in zip(log, hashes, names, strict=True):
        calls, is_confirmed, failures = _gold(exchange, rounds_after[digests[-1]])
        result.failures.update(failures)
        last = exchange.conversation
        results = exchange.conversation.results
        row: Json = {
            "question": last.question,
            "history": last.history.model_dump(mode="json") if last.history.messages else None,
            "results": None if results is None else results.model_dump(mode="json"),
            "system": last.system,
            "conversation": name,
        }
        if calls:
            gold = [{"name": call.name, "args": call.args} for call in calls]
            row |= {"calls": gold, "confirmed": is_confirmed}
        elif exchange.choice.tool_calls or not exchange.conversation.tools:
            continue
        if any(result.tools.flaw_of(call.name, call.args) for call in calls):
            result.drifted += 1
        else:
            row = Echoes(exchange.secrets | {*secrets_in(row)}).hidden_in(row, (), {})
            rows.setdefault(compact(row), row)
    result.rows = [row for row in rows.values() if "calls" in row]
    result.silences = [row for row in rows.values() if "calls" not in row]
    order = sorted({row["conversation"] for row in result.rows}, key=short_hash)
    result.heldout = frozenset(order[: max(1, len(order) // _HELD_OUT)] if len(order) > 1 else ())
    return result


def _steps(conversation: Conversation) -> Iterator[tuple[str, str, Rounds]]:
    """Yield for each step the hashes of what is before and after it, and its turn's rounds from it on."""
    last: Json = {"question": conversation.question, "results": conversation.results}
    digest = ""
    for event in (*conversation.history.messages, last):
        rounds: Rounds = () if event.get("results") is None else event["results"].rounds
        contents: list[tuple[Any, Rounds]] = [(event.get("question"), ())]
        for number, each in enumerate(rounds):
            pairs = [[_identity(call), result.value, result.is_error] for call, result in each.pairs]
            contents.append(([each.text, pairs], rounds[number:]))
        for what, following in (*contents, (event.get("answer"), ())):
            if what:
                before = digest
                digest = hashlib.sha256(f"{digest}{compact(what)}".encode("utf-8", "replace")).hexdigest()
                yield before, digest, following


def _identity(call: ToolCall | InvalidToolCall) -> str:
    """Return what two equal calls have in common, whatever their ids."""
    return compact([call.name, call.args if isinstance(call, ToolCall) else call.arguments])


def _conversations(log: list[Exchange], hashes: list[list[str]]) -> list[str]:
    """Return the id of each exchange's conversation: the log's own, else a hash of what was said."""
    parents: dict[str, str] = {}

    def root(node: str) -> str:
        while parents.setdefault(node, node) != node:
            node = parents[node] = parents[parents[node]]  # so that no path gets long
        return node

    ends = [digests[-1] for digests in hashes]
    requests = {*ends}
    for exchange, digests in zip(log, hashes, strict=True):
        names_of_log = [] if exchange.name is None else [f"~{exchange.name}"]  # after every hash
        for other in (*names_of_log, *(after for after in digests[1:] if after in requests)):
            first, second = sorted((root(digests[-1]), root(other)))  # whatever the order of lines
            parents[second] = first
    names = {root(end): exchange.name for exchange, end in zip(log, ends, strict=True) if exchange.name}
    return [names.get(root(end)) or short_hash(root(end)) for end in ends]


def _gold(exchange: Exchange, later: list[Rounds]) -> tuple[list[ToolCall], bool, list[Failure]]:
    """Return the calls that were right, whether later results confirm them all, and what was not right."""
    if exchange.choice.tool_calls is None:
        return [], False, []
    tools = exchange.conversation.tools
    checked_calls = exchange.choice.tool_calls.validated(tools).in_order()
    identities = {*map(_identity, checked_calls)}
    own_rounds = [rounds for rounds in later if identities & {*map(_identity, rounds[0].calls.in_order())}]
    rounds = max(own_rounds or later, key=len, default=())
    results = {_identity(call): result for call, result in rounds[0].pairs} if rounds else {}
    right = [
        call
        for each in rounds
        for call, result in each.pairs
        if isinstance(call, ToolCall) and not _failed(result) and not tools.flaw_of(call.name, call.args)
    ]
    gold: list[ToolCall] = []
    failures: list[Failure] = []
    is_confirmed = True
    for call in checked_calls:
        result = results.get(_identity(call))
        if isinstance(call, ToolCall) and not (result and _failed(result)):
            gold.append(call)
            is_confirmed = is_confirmed and result is not None
            continue
        code, path = (call.code, call.path) if isinstance(call, InvalidToolCall) else ("tool_failed", None)
        failures.append((code, call.name, path))
        used = {*identities, *map(_identity, gold)}
        gold += [each for each in right if each.name == call.name and _identity(each) not in used][:1]
    return gold, is_confirmed, failures


def _failed(result: ToolResult) -> bool:
    """Return whether a result is a failure, by its flag, or by its text where a client lost the flag."""
    return result.is_error or str(result.value).startswith(MARKED)
