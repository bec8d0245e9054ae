"""Whether a person edited a recorded call before it ran, as the note behind its result says.

The note ends a text, is the last of several parts, or is the member `note` of an object.
"""

from itertools import starmap
from typing import Any, NamedTuple

from sigadapt.logs.adoption.failures import object_in
from sigadapt.logs.adoption.transcript import AnyCall
from sigadapt.schemas.json_values import Json, compact, equal_json, is_array, is_object
from sigadapt.signatures.calls import ToolCall
from sigadapt.signatures.tool_results.results import Round
from sigadapt.signatures.tool_results.tool_output import read_edit_note
from sigadapt.signatures.tool_results.tool_result import ToolResult


class RunCall(NamedTuple):
    """A call as it ran, its result without the note, if there is one, and whether a person edited it."""

    call: AnyCall
    result: ToolResult | None
    is_edited: bool = False


def as_it_ran(call: AnyCall, result: ToolResult) -> RunCall:
    """Return a recorded call as it ran."""
    if not isinstance(call, ToolCall):
        return RunCall(call, result)
    edit = _edit_in(result.value)
    if edit is None and (note := read_edit_note(result.note or "")):
        edit = result.value, note[1]
    if edit is None or equal_json(edit[1], call.args):
        return RunCall(call, result)
    value, args = edit
    edited = call.model_copy(update={"args": args, "arguments": compact(args)})
    return RunCall(edited, result.model_copy(update={"value": value, "note": None}), is_edited=True)


def round_as_it_ran(turn: Round) -> Round:
    """Return a recorded round with its calls as they ran, and the results without the notes."""
    runs = [*starmap(as_it_ran, turn.pairs)]
    if not any(run.is_edited for run in runs):
        return turn
    calls = [run.call for run in runs if isinstance(run.call, ToolCall)]
    results = tuple(run.result for run in runs if run.result is not None)
    return Round(calls=turn.calls.model_copy(update={"tool_calls": calls}), results=results)


def _edit_in(value: Any) -> tuple[Any, Json] | None:
    """Return a value without the note in it, and the arguments that this has; None without one."""
    if isinstance(value, str):
        return read_edit_note(value) or _edit_in(object_in(value))
    if is_array(value) and value and is_object(value[-1]) and value[-1].get("type") == "text":
        note = read_edit_note(str(value[-1].get("text")))
        if note is None:
            return None
        text, args = note
        return [*value[:-1], *([{**value[-1], "text": text}] if text else [])], args
    if not is_object(value) or not isinstance(value.get("note"), str):
        return None
    note = read_edit_note(value["note"])
    if note is None:
        return None
    rest = {key: member for key, member in value.items() if key != "note"}
    return rest["result"] if [*rest] == ["result"] else rest, note[1]
