"""Say the tools, calls and results of a Request in words, for models that are not sent tools natively.

The system text gets the tools and the form in which to call them. An assistant turn says its calls in that
form, behind its text. The results of a turn are one user message. The form is a row of
`text/`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.lowering import Change
from sigadapt.adapters.request.states import state_of
from sigadapt.errors import InvalidOption
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json, closest, compact

if TYPE_CHECKING:
    from sigadapt.text.contract import TextFormat

DEFAULT_FORM = "hermes"
"""The text format to ask for unless `call_format` names another."""
_ONLY_NATIVE = ("tools", "tool_choice", "parallel_tool_calls", "response_format")
_OFFER = (
    "# Tools\n\nYou can call these tools. Each line describes one, with the JSON Schema of its arguments:\n"
    "<tools>\n{tools}\n</tools>\n\n"
    "To call a tool, write the call in exactly this form:\n{example}\n\n"
    "Write one such block for each call, and nothing after the calls. The next message has the results."
)
_EXAMPLE = [("tool_name", {"argument": "value"})]


def _formats() -> "tuple[TextFormat, ...]":
    from sigadapt.text.formats import FORMATS  # noqa: PLC0415  (`text_choice.py` says why)

    return FORMATS


def sayable() -> list[str]:
    """Return the names of the text formats in which calls can be asked for."""
    return [each.name for each in _formats() if each.say is not None]


def check_form(name: str) -> None:
    """Refuse a name that is none of `sayable`.

    Raises:
        InvalidOption: with the names there are.
    """
    if name != DEFAULT_FORM and name not in sayable():
        near = closest(name, sayable()) if isinstance(cast("object", name), str) else None
        fix = f"Did you mean {near!r}?" if near else f"Use one of {', '.join(sayable())}."
        raise InvalidOption(f"{name!r} is not a text format to ask for", field="call_format", fix=fix)


def put_in_words(request: Request, form: str) -> tuple[Request, tuple[Change, ...]]:
    """Return the Request in words, and a record of what it says in another way."""
    changes = list(_changes(request))
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in _functions(request)}
    rows = list(_rows(request["messages"], form, schemas))
    words = _instructions(request, form)
    if words and rows and rows[0]["role"] == "system" and isinstance(rows[0]["content"], str):
        rows[0] = {**rows[0], "content": f"{rows[0]['content']}\n\n{words}"}
    elif words:
        rows.insert(0, {"role": "system", "content": words})
    sent: Any = {key: value for key, value in request.items() if key not in _ONLY_NATIVE}
    sent["messages"] = _alternating(rows)
    return sent, tuple(changes)


def _functions(request: Request) -> list[Json]:
    return [tool for tool in request.get("tools", ()) if "function" in tool]


def _changes(request: Request) -> Iterator[Change]:
    if "tools" in request:
        yield Change("/tools", "lowered", "the prompt describes the tools; calls are read from the text")
    for number, tool in enumerate(request.get("tools", ())):
        if "function" not in tool:
            kind = tool.get("type") or next(iter(tool), "?")
            why = f"a prompt offers functions alone, not {kind!r}"
            yield Change(f"/tools/{number}", "dropped", why)
    if "tool_choice" in request:
        yield Change("/tool_choice", "lowered", "the prompt says it; the provider does not enforce it")
    if "parallel_tool_calls" in request:
        yield Change(
            "/parallel_tool_calls", "lowered", "the prompt says it; the provider does not enforce it"
        )
    if "response_format" in request:
        yield Change(
            "/response_format", "dropped", "a call in the text is not JSON alone; the prompt has the form"
        )
    for number, row in enumerate(request["messages"]):
        if row.get("tool_calls") and state_of(row) is not None:
            why = "provider state belongs to native calls; text and calls are said in words"
            yield Change(f"/messages/{number}/turn/state", "dropped", why)


# The words


def _instructions(request: Request, form: str) -> str:
    functions = _functions(request)
    if not functions:
        return ""
    tools = "\n".join(compact(tool) for tool in functions)
    words = _OFFER.format(tools=tools, example=_example(form))
    asked = _choice(request.get("tool_choice"))
    if request.get("parallel_tool_calls") is False:
        asked = f"{asked} Make at most one call.".strip()
    return f"{words}\n{asked}" if asked else words


@lru_cache(maxsize=64)
def _example(form: str) -> str:
    return _say(form, _EXAMPLE, {})


def _say(form: str, calls: Sequence[tuple[str, Json]], schemas: Mapping[str, Json]) -> str:
    say = next(each.say for each in _formats() if each.name == form)
    return cast("Any", say)(calls, schemas)


def _choice(choice: str | dict[str, Any] | None) -> str:
    if choice is None or choice == "auto":
        return ""
    if choice == "required":
        return "You must call at least one tool now."
    if choice == "none":
        return "Do not call any tool now."
    if isinstance(choice, dict) and "function" in choice:
        return f"You must call the tool {choice['function']['name']!r} now, and no other."
    if isinstance(choice, dict) and "allowed_tools" in choice:
        names = ", ".join(repr(tool["function"]["name"]) for tool in choice["allowed_tools"]["tools"])
        return f"You must call at least one of these tools now, and no other: {names}."
    return ""


# The conversation


def _rows(rows: Sequence[Json], form: str, schemas: Mapping[str, Json]) -> Iterator[Json]:
    for is_result, group in groupby(rows, lambda row: row["role"] == "tool"):
        if is_result:
            yield {"role": "user", "content": "\n".join(map(_result, group))}
        else:
            yield from (_said(row, form, schemas) if row.get("tool_calls") else row for row in group)


def _said(row: Json, form: str, schemas: Mapping[str, Json]) -> Json:
    calls = [
        (call["function"]["name"], _arguments(call["function"]["arguments"])) for call in row["tool_calls"]
    ]
    said = _say(form, calls, schemas)
    return {"role": "assistant", "content": f"{row['content']}\n{said}" if row.get("content") else said}


def _arguments(text: str) -> Json:
    """Return the arguments as an object; those of a bad call are quoted in its result."""
    args = parse_arguments(text)
    return args if isinstance(args, dict) else {}


def _result(row: Json) -> str:
    key = "error" if row.get("is_error") else "content"
    return f"<tool_response>\n{compact({'name': row.get('name'), key: row['content']})}\n</tool_response>"


def _alternating(rows: Sequence[Json]) -> list[Json]:
    """Join texts of the user that follow one another, because many chat templates refuse them."""
    joined: list[Json] = []
    for row in rows:
        last = joined[-1] if joined else None
        if last is not None and last["role"] == row["role"] == "user" and _are_texts(last, row):
            joined[-1] = {"role": "user", "content": f"{last['content']}\n\n{row['content']}"}
        else:
            joined.append(row)
    return joined


def _are_texts(*rows: Json) -> bool:
    return all(isinstance(row["content"], str) for row in rows)
