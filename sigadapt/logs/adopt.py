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
from typing import Any, NamedTuple

from sigadapt.logs.conversation import Conversation
from sigadapt.logs.exchanges import LoggedExchange
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
class AdoptedLog:
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
            part = "heldout" if row["conversation"] in self.heldout else "train"
            rows[part].append(row)
        files = {"program.py": _PROGRAM.format(tools="\n".join(f"    {line}" for line in tools))}
        for name, some_rows in rows.items():
            files[f"{name}.jsonl"] = "".join(f"{compact(row)}\n" for row in some_rows)
        files["failures.json"] = f"{compact(self.table())}\n"
        return files

    def table(self) -> list[Json]:
        """Return the failures, the most frequent first."""
        order = sorted(self.failures.items(), key=lambda item: (-item[1], str(item[0])))
        return [{"code": code, "tool": tool, "path": path, "count": n} for (code, tool, path), n in order]


class _LogStep(NamedTuple):
    """One thing that was said in a conversation: the hashes of all before it, and of all up to it."""

    before: str
    after: str
    rounds: Rounds  # of its turn, from it on


class _Gold(NamedTuple):
    """The calls of an answer that were right, whether later results confirm all, and what was not right."""

    calls: list[ToolCall]
    is_confirmed: bool
    failures: list[Failure]


def adopt_log(exchanges: Iterable[LoggedExchange]) -> AdoptedLog:
    """Return what the exchanges of a log give."""
    log = sorted(exchanges, key=lambda exchange: exchange.time)
    log_steps = [[*_steps(exchange.conversation)] for exchange in log]
    rounds_after: dict[str, list[Rounds]] = defaultdict(list)  # a request, by its hash
    for steps in log_steps:
        for step in steps:
            if step.rounds:
                rounds_after[step.before].append(step.rounds)
    names = _conversations(log, log_steps)
    result = _empty_result(log, names)
    rows: dict[str, Json] = {}
    for exchange, steps, name in zip(log, log_steps, names, strict=True):
        gold = _gold(exchange, rounds_after[_end_of(steps)])
        result.failures.update(gold.failures)
        row = _row(exchange, name, gold)
        if row is None:
            continue
        if any(result.tools.flaw_of(call.name, call.args) for call in gold.calls):
            result.drifted += 1
            continue
        row = Echoes(exchange.secrets | {*secrets_in(row)}).hidden_in(row, (), {})
        rows.setdefault(compact(row), row)
    result.rows = [row for row in rows.values() if "calls" in row]
    result.silences = [row for row in rows.values() if "calls" not in row]
    # Some conversations are held out, the same ones whatever the order of the lines.
    conversations = sorted({row["conversation"] for row in result.rows}, key=short_hash)
    if len(conversations) > 1:
        result.heldout = frozenset(conversations[: max(1, len(conversations) // _HELD_OUT)])
    return result


def _empty_result(log: list[LoggedExchange], names: list[str]) -> AdoptedLog:
    """Return the newest declaration of each tool, and counts."""
    newest: dict[str, ToolDecl] = {}
    server_tools: set[str] = set()
    for exchange in log:
        for entry in exchange.conversation.tools.entries:
            if isinstance(entry, ToolDecl):
                newest[entry.name] = entry
            else:
                server_tools.add(compact(entry.to_openai()))
    tools = ToolDecls(newest.values())
    return AdoptedLog(tools, conversations=len({*names}), own_tools=len(server_tools))


def _row(exchange: LoggedExchange, name: str, gold: _Gold) -> Json | None:
    """Return the row of an exchange; None if no call of its answer was right, or it could make none."""
    conversation = exchange.conversation
    history = conversation.history
    results = conversation.results
    row: Json = {
        "question": conversation.question,
        "history": history.model_dump(mode="json") if history.messages else None,
        "results": None if results is None else results.model_dump(mode="json"),
        "system": conversation.system,
        "conversation": name,
    }
    if gold.calls:
        row["calls"] = [{"name": call.name, "args": call.args} for call in gold.calls]
        row["confirmed"] = gold.is_confirmed
    elif exchange.choice.tool_calls or not conversation.tools:
        return None
    return row


def _steps(conversation: Conversation) -> Iterator[_LogStep]:
    """Yield each step of a conversation."""
    last: Json = {"question": conversation.question, "results": conversation.results}
    digest = ""
    for event in (*conversation.history.messages, last):
        for content, rounds in _contents(event):
            if content:
                before = digest
                hashed = f"{digest}{compact(content)}".encode("utf-8", "replace")
                digest = hashlib.sha256(hashed).hexdigest()
                yield _LogStep(before, digest, rounds)


def _contents(event: Json) -> Iterator[tuple[Any, Rounds]]:
    """Yield what was said in an event, each with its turn's rounds from it on."""
    rounds: Rounds = () if event.get("results") is None else event["results"].rounds
    yield event.get("question"), ()
    for number, turn in enumerate(rounds):
        pairs = [[_identity(call), result.value, result.is_error] for call, result in turn.pairs]
        yield [turn.text, pairs], rounds[number:]
    yield event.get("answer"), ()


def _end_of(steps: list[_LogStep]) -> str:
    """Return the hash of a request."""
    return steps[-1].after if steps else ""


def _identity(call: ToolCall | InvalidToolCall) -> str:
    """Return what two equal calls have in common, whatever their ids."""
    arguments = call.args if isinstance(call, ToolCall) else call.arguments
    return compact([call.name, arguments])


def _conversations(log: list[LoggedExchange], log_steps: list[list[_LogStep]]) -> list[str]:
    """Return the id of each exchange's conversation: the log's own, else a hash of what was said."""
    parents: dict[str, str] = {}

    def root(node: str) -> str:
        while parents.setdefault(node, node) != node:
            node = parents[node] = parents[parents[node]]  # so that no path gets long
        return node

    ends = [_end_of(steps) for steps in log_steps]
    requests = {*ends}
    names: dict[str, str] = {}
    for exchange, steps, end in zip(log, log_steps, ends, strict=True):
        related = [step.after for step in steps if step.after in requests]
        if exchange.name is not None:
            related.insert(0, f"~{exchange.name}")  # after every hash
        for node in related:
            first, second = sorted((root(end), root(node)))  # whatever the order of lines
            parents[second] = first
    for exchange, end in zip(log, ends, strict=True):
        if exchange.name:
            names[root(end)] = exchange.name
    return [names.get(root(end)) or short_hash(root(end)) for end in ends]


def _gold(exchange: LoggedExchange, later_rounds: list[Rounds]) -> _Gold:
    """Tell the calls of an answer that were right from those that were not, by what came later."""
    if exchange.choice.tool_calls is None:
        return _Gold([], is_confirmed=False, failures=[])
    tools = exchange.conversation.tools
    calls = exchange.choice.tool_calls.validated(tools).in_order()
    identities = {*map(_identity, calls)}
    rounds = _rounds_of(identities, later_rounds)
    results = {_identity(call): result for call, result in rounds[0].pairs} if rounds else {}
    right_calls = [*_right_calls(rounds, tools)]
    gold_calls: list[ToolCall] = []
    failures: list[Failure] = []
    is_confirmed = True
    for call in calls:
        result = results.get(_identity(call))
        has_failed = result is not None and _failed(result)
        if isinstance(call, ToolCall) and not has_failed:
            gold_calls.append(call)
            is_confirmed = is_confirmed and result is not None
            continue
        if isinstance(call, InvalidToolCall):
            failures.append((call.code, call.name, call.path))
        else:
            failures.append(("tool_failed", call.name, None))
        used = {*identities, *map(_identity, gold_calls)}
        for correction in right_calls:
            if correction.name == call.name and _identity(correction) not in used:
                gold_calls.append(correction)
                break
    return _Gold(gold_calls, is_confirmed, failures)


def _rounds_of(identities: set[str], later_rounds: list[Rounds]) -> Rounds:
    """Return the longest rounds that follow an answer, those with its calls before others."""
    with_its_calls: list[Rounds] = []
    for rounds in later_rounds:
        first_calls = {*map(_identity, rounds[0].calls.in_order())}
        if identities & first_calls:
            with_its_calls.append(rounds)
    return max(with_its_calls or later_rounds, key=len, default=())


def _right_calls(rounds: Rounds, tools: ToolDecls) -> Iterator[ToolCall]:
    """Yield the calls of rounds that fit their declarations and did not fail."""
    for turn in rounds:
        for call, result in turn.pairs:
            if not isinstance(call, ToolCall) or _failed(result):
                continue
            if not tools.flaw_of(call.name, call.args):
                yield call


def _failed(result: ToolResult) -> bool:
    """Return whether a result is a failure, by its flag, or by its text where a client lost the flag."""
    return result.is_error or str(result.value).startswith(MARKED)
