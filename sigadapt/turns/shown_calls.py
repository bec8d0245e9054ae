"""Check that a saved run shows the calls that it would run: a store is not the only one who can write to it.

The requests of a run are saved beside its calls, because a person may see them long before the run goes on.
"""

from collections.abc import Iterable

from sigadapt.schemas.json_values import Json, cut, equal_json, is_object, type_of
from sigadapt.signatures.calls import ToolCall
from sigadapt.signatures.calls.input_requests import has_all
from sigadapt.signatures.calls.tool_call import id_of_request
from sigadapt.signatures.tool_functions.stops import CallProgress
from sigadapt.signatures.tool_results.result_check import check_value_schema


def check_shown(request: ToolCall, calls: Iterable[ToolCall], progress: CallProgress) -> None:
    """Refuse a request that shows another call than the one that would run.

    Args:
        request: the request.
        calls: the calls of its turn.
        progress: what was decided about its call.

    Raises:
        ValueError: for any other call, and for a question with a schema that no answer can be checked by.
        InvalidHistory: `no_confirmation`, for a call that is no request.
    """
    call = next((each for each in calls if each.id == request.call.id), None)
    if call is None or call.name != request.call.name:
        raise ValueError(f"the request {cut(repr(request.id))} shows a call that is none of the turn's")
    args = call.args if progress.approved is None else progress.approved
    shows_it = _shows_approval(request, args) if request.kind == "approval" else _shows(request, args)
    if not shows_it:
        raise ValueError(f"the request {cut(repr(request.id))} shows other arguments than its call has")
    if request.kind == "answer":
        _check_schema(request)


def _shows_approval(request: ToolCall, args: Json) -> bool:
    """Return whether a request shows what runs after a yes."""
    if equal_json(request.call.args, args):
        return True
    # It shows defaults, too, or what a hook made of the call. Its id is a hash of what was shown at first.
    is_as_asked = request.id == id_of_request(request.call, request.call.args)
    return is_as_asked and (_is_changed(request) or has_all(request.call.args, args))


def _shows(request: ToolCall, args: Json) -> bool:
    return _is_changed(request) or equal_json(request.call.args, args)


def _is_changed(request: ToolCall) -> bool:
    """Return whether a hook changed the arguments that a request shows. It makes the same change again."""
    return request.args.get("changed") is True


def _check_schema(request: ToolCall) -> None:
    schema: object = request.args.get("schema")
    if not is_object(schema):
        raise ValueError(f"the schema of an answer is {type_of(schema)}")
    check_value_schema(schema, request.call.name)
