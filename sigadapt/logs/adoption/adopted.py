"""adopt: logs in, a program with rows of data out. Nothing leaves the machine.

Lines are read to exchanges, exchanges are grouped into conversations, each answer is judged by what came
later, and what was right becomes a row. What the rows have in common becomes the program.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import dspy
from rich.console import RenderableType

from sigadapt.adapters.request.canonical import Change
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.logs.adoption.failures import FailurePattern, FailureRule
from sigadapt.logs.adoption.folder import PROGRAM, json_lines, program_in, rows_in, text_in, write_files
from sigadapt.logs.adoption.gold import Failure, LaterRounds, gold_of
from sigadapt.logs.adoption.program_text import program_text
from sigadapt.logs.adoption.prompts import CommonPrompt, common_prompt
from sigadapt.logs.adoption.rows import SharedTools, row_of
from sigadapt.logs.adoption.split import held_out
from sigadapt.logs.adoption.threads import conversations_of
from sigadapt.logs.adoption.transcript import transcript_of
from sigadapt.logs.exchanges import LoggedExchange, LogSource, UnreadLine, read_log
from sigadapt.logs.tables import Report, html_page, progress, table_of
from sigadapt.logs.turns import FIELDS, LABELS, SENT_SETTINGS, TurnProgram, turn_signature
from sigadapt.schemas.json_values import Json, compact, is_iterable, is_object, type_of
from sigadapt.signatures.tool_decls import ToolDecls

_MOST_UNREAD = 5
_MEANINGS = {
    "conversations": "conversations",
    "rows": "rows with gold calls",
    "confirmed": "of these, confirmed by a result",
    "heldout": "of these, held out: no conversation is in both files",
    "silences": "turns that needed no call",
    "drifted": "rows with an older declaration, because it changed since",
    "own_tools": "tools that one provider alone has",
    "changes": "things that a row cannot say as its request did",
}


@dataclass(repr=False)
class Adopted(Report):
    """What a log gave. It prints as tables.

    Args:
        program: a DSPy program that sends a row's request and gets the answer or the calls.
        tools: the newest declaration of each function.
        train: the rows to learn from, as Examples whose inputs are set and whose `calls` are gold.
        heldout: the rows of other conversations, to measure with.
        silences: Examples without a call in `calls`: turns that the model answered in words, though it had
            tools.
        failures: the calls that were not right, by `code`, `tool`, `path`, with their `count`.
        unread: the lines that hold no exchange, each with its number and the reason.
        changes: a `Change` for each kind of thing that rows cannot say as their requests did.
        prompt: the instructions that most conversations have in common.
        read: how many exchanges were read.
        conversations: how many conversations they are.
        drifted: how many rows have an older declaration, because it changed since.
        own_tools: how many tools only one provider has.
        program_file: the text of the program.py that was loaded; empty if a log was adopted.
    """

    program: dspy.Module
    tools: ToolDecls
    train: list[dspy.Example] = field(default_factory=list[dspy.Example])
    heldout: list[dspy.Example] = field(default_factory=list[dspy.Example])
    silences: list[dspy.Example] = field(default_factory=list[dspy.Example])
    failures: list[Json] = field(default_factory=list[Json])
    unread: list[UnreadLine] = field(default_factory=list[UnreadLine])
    changes: list[Change] = field(default_factory=list[Change])
    prompt: CommonPrompt = field(default_factory=lambda: CommonPrompt(""))
    read: int = 0
    conversations: int = 0
    drifted: int = 0
    own_tools: int = 0
    program_file: str = ""

    @property
    def rows(self) -> list[dspy.Example]:
        """All rows with gold calls."""
        return [*self.train, *self.heldout]

    def counts(self) -> dict[str, int]:
        """Return how much there is of everything."""
        return {
            "conversations": self.conversations,
            "rows": len(self.rows),
            "confirmed": sum(row["confirmed"] is True for row in self.rows),
            "heldout": len(self.heldout),
            "silences": len(self.silences),
            "drifted": self.drifted,
            "own_tools": self.own_tools,
            "changes": len(self.changes),
        }

    def save(self, folder: str | PathLike[str]) -> list[Path]:
        """Write the program, the rows and the report into a folder that its owner alone can read.

        Files of an earlier run are replaced, all or none. A program.py that its user changed stays as it is,
        and the new one is written beside it as program_new.py.

        Args:
            folder: where to write; it is made if it is not there.

        Returns:
            The paths of the files.

        Example:
            >>> import tempfile
            >>> line = '{"messages": [{"role": "user", "content": "Hi."}], "response": ' + (
            ...     '{"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}}'
            ... )
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     print([path.name for path in adopt(line).save(folder)][:2])
            ['program.py', 'train.jsonl']
        """
        fields = _fields_of([*self.rows, *self.silences])
        files = {
            PROGRAM: self.program_file or program_text(self.tools, self.prompt, fields),
            "train.jsonl": json_lines(map(dict, self.train)),
            "heldout.jsonl": json_lines(map(dict, self.heldout)),
            "silences.jsonl": json_lines(map(dict, self.silences)),
            "failures.json": f"{compact(self.failures)}\n",
            "report.html": html_page(self),
        }
        return write_files(Path(folder), files)

    def tables(self) -> Sequence[RenderableType]:
        """Return what was read, the calls that were not right, and why lines were not read."""
        title = f"{_number_of(self.read, 'exchange')} read, {_number_of(len(self.unread), 'line')} not"
        counts = self.counts()
        tables: list[RenderableType] = [
            table_of(title, ("", "count"), [(text, counts[name]) for name, text in _MEANINGS.items()])
        ]
        if self.failures:
            heads = ("code", "tool", "place in the arguments", "calls")
            rows = [[failure[key] for key in ("code", "tool", "path", "count")] for failure in self.failures]
            tables.append(table_of("Calls that were not right", heads, rows))
        if self.unread:
            tables.append(table_of("Lines that were not read", ("line", "why"), self.unread[:_MOST_UNREAD]))
        if self.changes:
            rows = [list(change) for change in self.changes[:_MOST_UNREAD]]
            tables.append(table_of("What rows cannot say", ("where", "what", "why"), rows))
        return tables


def adopt(
    lines_or_paths: "LogSource | Iterable[LogSource]", *, failed: FailurePattern | None = None, seed: int = 0
) -> Adopted:
    """Make a program, rows with gold calls and a table of failures of recorded traffic.

    A call is gold if it fits its declaration and no later request says that it failed, or if it corrected an
    earlier one in the same turn. Nothing leaves the machine, and secrets are masked.

    Args:
        lines_or_paths: lines of JSON, paths of files of such lines, or decoded lines; one, or an iterable of
            them. A text that begins with a bracket is a line.
        failed: which results are failures besides what every tool says: a regular expression, or a function
            of a ToolResult.
        seed: another one holds out other conversations.

    Returns:
        An Adopted.

    Raises:
        InvalidHistory: if no line holds an exchange.
        InvalidOption: for a path that cannot be read, what holds no lines, or an invalid `failed`.

    Example:
        >>> import json
        >>> def chat(*messages: dict, answer: dict) -> str:
        ...     tools = [{"type": "function", "function": {"name": "now", "description": "The time."}}]
        ...     request = {"model": "m", "messages": list(messages), "tools": tools}
        ...     return json.dumps({"request": request, "response": {"choices": [{"message": answer}]}})
        >>> question = {"role": "user", "content": "What time is it?"}
        >>> function = {"name": "now", "arguments": "{}"}
        >>> call = {
        ...     "role": "assistant",
        ...     "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        ... }
        >>> result = {"role": "tool", "tool_call_id": "c1", "content": "noon"}
        >>> answer = {"role": "assistant", "content": "Noon."}
        >>> log = [chat(question, answer=call), chat(question, call, result, answer=answer)]
        >>> adopted = adopt(log)
        >>> [(row.calls, row.why) for row in adopted.train]
        [([{'name': 'now', 'args': {}}], 'result')]
    """
    is_failure = FailureRule(failed)
    is_one = isinstance(lines_or_paths, (str, PathLike)) or is_object(lines_or_paths)
    sources: Any = [lines_or_paths] if is_one else lines_or_paths
    if not is_iterable(sources):
        reason = f"expected files, lines or rows, got {type_of(sources)}"
        raise InvalidOption(reason, field="lines_or_paths", fix="Give the path of a log, or its lines.")
    exchanges: list[LoggedExchange] = []
    unread: list[UnreadLine] = []
    for item in progress(read_log(sources), "Reading"):
        if isinstance(item, UnreadLine):
            unread.append(item)
        else:
            exchanges.append(item)
    if not exchanges:
        reason = f"line {unread[0].line}: {unread[0].reason}" if unread else "the log is empty"
        raise InvalidHistory(f"no line holds a request and its answer: {reason}", field="lines_or_paths")
    adopted = _adopted(exchanges, is_failure, seed)
    adopted.unread = unread
    return adopted


def _adopted(exchanges: list[LoggedExchange], is_failure: FailureRule, seed: int) -> Adopted:
    """Return what exchanges give."""
    log = sorted(exchanges, key=lambda exchange: exchange.time)
    transcripts = [transcript_of(each.conversation, each.choice, each.name) for each in log]
    names = conversations_of(log, transcripts)
    later = LaterRounds(transcripts, names)
    tools = SharedTools(log)
    failures: Counter[Failure] = Counter()
    changes: dict[Change, None] = {}
    rows: dict[str, Json] = {}
    drifted = 0
    pairs = zip(log, transcripts, names, strict=True)
    for exchange, transcript, name in progress(pairs, "Judging", len(log)):
        calls = exchange.choice.tool_calls.in_order() if exchange.choice.tool_calls else []
        gold = gold_of(exchange, later.place_of(transcript, name, calls), is_failure)
        failures.update(gold.failures)
        row = row_of(exchange, name, gold, tools)
        if row is None:
            continue
        changes.update(dict.fromkeys(exchange.conversation.changes))
        changes.update(dict.fromkeys(_unsent_settings(row)))
        drifted += any(call.name in tools.decls and call.name not in row["tools"] for call in gold.calls)
        rows.setdefault(compact(row), row)
    adopted = _with_program([*rows.values()], tools.decls, seed)
    order = sorted(failures.items(), key=lambda item: (-item[1], str(item[0])))
    for (code, tool, path), count in order:
        adopted.failures.append({"code": code, "tool": tool, "path": path, "count": count})
    adopted.changes = [*changes]
    adopted.read = len(log)
    adopted.conversations = len({*names})
    adopted.drifted = drifted
    adopted.own_tools = tools.provider_tools
    return adopted


def _with_program(rows: list[Json], tools: ToolDecls, seed: int) -> Adopted:
    """Return rows, split, with the program that they have in common."""
    prompt = common_prompt(rows)
    held_out_names = held_out([row for row in rows if "calls" in row], seed)
    parts: dict[str, list[dspy.Example]] = {"train": [], "heldout": [], "silences": []}
    for row in rows:
        part = "heldout" if row["conversation"] in held_out_names else "train"
        columns = {key: value for key, value in row.items() if key != "system"}
        if "calls" not in row:
            part = "silences"
            columns["calls"] = []
        parts[part].append(_example(columns | prompt.parts_of(row["system"])))
    fields = _fields_of([example for part in parts.values() for example in part])
    signature = turn_signature(prompt.text, fields)
    program = TurnProgram(signature, tools, context_first=prompt.context_first)
    return Adopted(
        program=program,
        tools=tools,
        train=parts["train"],
        heldout=parts["heldout"],
        silences=parts["silences"],
        prompt=prompt,
    )


def _example(row: Json) -> dspy.Example:
    """Return a row as an Example whose inputs are set."""
    return dspy.Example(**row).with_inputs(*(key for key in row if key not in LABELS))


def _fields_of(rows: Iterable[dspy.Example]) -> list[str]:
    """Return the input fields that rows use."""
    used = {"question", "tools"}
    for row in rows:
        used |= {key for key in FIELDS if row.get(key) is not None}
    return [name for name in FIELDS if name in used]


def _unsent_settings(row: Json) -> list[Change]:
    """Return a Change for each setting of a row that is one provider's own."""
    reason = "it is one provider's own setting: the row holds it, and the program does not send it"
    names = [name for name in row["settings"] if name not in SENT_SETTINGS]
    return [Change(f"/{name}", "dropped", reason) for name in names]


def load(folder: str | PathLike[str]) -> Adopted:
    """Read what `Adopted.save` or an earlier release wrote. The folder's program.py is run.

    Args:
        folder: the folder.

    Returns:
        An Adopted, without the lines that were not read.

    Raises:
        InvalidOption: for what is no path, or if the folder has no program that runs.
    """
    given: Any = folder
    if not isinstance(given, (str, PathLike)):
        reason = f"expected the path of an adopted log's folder, got {type_of(given)}"
        raise InvalidOption(reason, field="folder", fix="Give what adopt returned, or where save wrote it.")
    path = Path(folder)
    program, tools = program_in(path)
    parts: dict[str, list[dspy.Example]] = {}
    unread: list[UnreadLine] = []
    for name in ("train", "heldout", "silences"):
        rows, bad_lines = rows_in(path / f"{name}.jsonl")
        if name == "silences":  # earlier releases wrote no calls there
            rows = [{**row, "calls": []} for row in rows]
        parts[name] = [*map(_example, rows)]
        if bad_lines:
            unread.append(UnreadLine(f"{name}.jsonl", f"{_number_of(bad_lines, 'line')} with no JSON object"))
    failures, _ = rows_in(path / "failures.json")
    rows: list[Any] = [*parts["train"], *parts["heldout"], *parts["silences"]]
    names: set[str] = {row["conversation"] for row in rows}
    return Adopted(
        program=program,
        tools=tools,
        train=parts["train"],
        heldout=parts["heldout"],
        silences=parts["silences"],
        failures=failures,
        unread=unread,
        read=len(rows),
        conversations=len(names),
        program_file=text_in(path / PROGRAM),
    )


def _number_of(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
