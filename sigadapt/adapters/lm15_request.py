"""The canonical request in the types of lm15, which dspy.LM takes (Request -> lm15.Request). Pure.

Tools and texts are handed over as they stand. What a wire needs beyond lm15's own translation is said by its
profile. What a model said in an earlier turn goes back in its own order, with its provider's state, to the
provider it came from; another provider gets the words and the calls (rule 8).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

from dspy import lm15

from sigadapt.adapters.memo import Memo
from sigadapt.adapters.profiles import Profile
from sigadapt.adapters.request import Request
from sigadapt.errors import InvalidOption
from sigadapt.signatures.arguments import compact, parse_arguments


def to_lm15(request: Request, profile: Profile) -> lm15.Request:
    """The canonical request as lm15's; tools and messages are handed over as they stand.

    Example:
        >>> request: Request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        >>> from sigadapt.adapters.profiles import NATIVE
        >>> to_lm15(request, NATIVE["anthropic"]).messages[0].text
        'hi'
    """
    system, messages = _split_system(request["messages"])
    return lm15.Request(
        model=request["model"],
        system=system,
        messages=tuple(_messages(messages, profile)),
        tools=_TOOLS(request["tools"]) if "tools" in request else (),
        config=_config(request, profile),
    )


def _split_system(rows: list[dict[str, Any]]) -> tuple[Any, list[dict[str, Any]]]:
    if rows and rows[0]["role"] == "system" and isinstance(rows[0]["content"], str):
        return rows[0]["content"] or None, rows[1:]
    return None, rows


def _messages(rows: list[dict[str, Any]], profile: Profile) -> Iterator[lm15.Message]:
    results: list[lm15.ToolResultPart] = []
    for row in rows:
        if row["role"] == "tool":
            results.append(_result(row, profile))
            continue
        if results:
            yield lm15.Message(role="tool", parts=tuple(results))
            results = []
        yield _message(row, profile)
    if results:
        yield lm15.Message(role="tool", parts=tuple(results))


def _message(row: dict[str, Any], profile: Profile) -> lm15.Message:
    if row["role"] == "assistant":
        parts = tuple(_said(row, profile)) or (lm15.TextPart(text=""),)
        return lm15.Message(role="assistant", parts=parts)
    if row["role"] == "user" and isinstance(row["content"], str):
        return lm15.Message.user(row["content"])
    # Content blocks (images, files, ...) and system messages further down: lm15's own reader knows them.
    return lm15.request_from_openai_chat(
        {"model": "any", "messages": [{"role": "user", "content": ""}, row]}
    ).messages[1]


def _said(row: dict[str, Any], profile: Profile) -> Iterator[Any]:
    """An assistant turn's parts: in the provider's own order with its state, where it is the same one."""
    calls = {call["id"]: call for call in row.get("tool_calls", ())}
    state = row["turn"].state if row.get("turn") else None
    if state is not None and profile.replays == "lm15" and state["dialect"] == profile.dialect:
        for item in state["items"]:
            yield from _replayed(item, calls, profile)
    elif row.get("content"):
        yield lm15.TextPart(text=_sendable(row["content"]))
    yield from (_call(call, ()) for call in calls.values())


def _replayed(item: dict[str, Any], calls: dict[str, dict[str, Any]], profile: Profile) -> Iterator[Any]:
    sent = item.get("continuation")
    kept = sent is not None and (sent[0] != "openai-chat" or profile.replays_reasoning_content)
    state = (lm15.ContinuationState(provider=sent[0], kind=sent[1], data=sent[2]),) if sent and kept else ()
    if item["type"] == "call":
        if item["id"] in calls:
            yield _call(calls.pop(item["id"]), state)
    elif item["type"] == "text":
        if item["text"] or state:
            yield lm15.TextPart(text=_sendable(item["text"]), continuation=state)
    elif kept:
        yield lm15.ThinkingPart(text=item["text"], continuation=state)


def _call(call: dict[str, Any], state: tuple[lm15.ContinuationState, ...]) -> lm15.ToolCallPart:
    function = call["function"]
    args = parse_arguments(function["arguments"])
    # lm15 replays objects only; what is wrong with the text is said in the call's result (rule 5).
    sent = args if isinstance(args, dict) else {}
    return lm15.ToolCallPart(id=call["id"], name=function["name"], input=sent, continuation=state)


def _sendable(text: str) -> str:
    """The text with half a surrogate pair, which a model may write and no request can hold, replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _result(row: dict[str, Any], profile: Profile) -> lm15.ToolResultPart:
    failed, text = row.get("is_error", False), _sendable(row["content"])
    if profile.makes_results_objects:
        failed, text = False, _object(text, failed=failed)
    elif failed and not profile.marks_failed_results:
        failed, text = False, f"ERROR: {text}"
    return lm15.ToolResultPart(
        id=row["tool_call_id"], name=row.get("name"), content=(lm15.TextPart(text=text),), is_error=failed
    )


def _object(text: str, *, failed: bool) -> str:
    """The text of an object: the result itself where it is one, else under the key that lm15 has for it."""
    if not failed and text.lstrip().startswith("{") and isinstance(parse_arguments(text), dict):
        return text
    return compact({"error" if failed else "result": text})


def _tools(tools: list[dict[str, Any]]) -> tuple[lm15.FunctionTool, ...]:
    return tuple(
        lm15.FunctionTool(
            name=function["name"], description=function.get("description"), parameters=function["parameters"]
        )
        for function in (tool["function"] for tool in tools if "function" in tool)
    )


_TOOLS = Memo(_tools)
_IN_LM15S_TYPES = Memo(lambda tools: not any(_has_no_place(tool) for tool in tools))


def _has_no_place(tool: dict[str, Any]) -> bool:
    return "function" not in tool or bool(tool["function"].get("strict"))


def wire_tools(request: Request, profile: Profile) -> list[dict[str, Any]] | None:
    """The tools in the wire's own words, where lm15's types have no place for them; None where they have.

    Three cases: a provider's own tools, which go out as they are; a strict flag on OpenAI's wires; and
    Gemini's `parametersJsonSchema`, which takes JSON Schema where `parameters` takes a subset of its own
    (source: Google's FunctionDeclaration reference).

    Example:
        >>> from sigadapt.adapters.profiles import NATIVE
        >>> tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": {}}}
        >>> request: Request = {"model": "m", "messages": [], "tools": [tool]}
        >>> wire_tools(request, NATIVE["gemini"])[0]["functionDeclarations"][0]["parametersJsonSchema"]
        {}
    """
    tools = request.get("tools")
    if not tools:
        return None
    if profile.dialect == "gemini" and profile.replays == "lm15":
        return _gemini_tools(tools)
    if _IN_LM15S_TYPES(tools):
        return None
    words = _WORDS.get(profile.dialect) if profile.replays == "lm15" else None
    if words is None:
        return tools
    return [words(tool["function"]) if "function" in tool else tool for tool in tools]


_WORDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "anthropic": lambda function: {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    },
    "openai-responses": lambda function: {"type": "function", **function},
}


def _gemini_tools(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    declarations = [
        {
            "name": function["name"],
            "description": function["description"],
            "parametersJsonSchema": function["parameters"],
        }
        for function in (tool["function"] for tool in tools if "function" in tool)
    ]
    own = [tool for tool in tools if "function" not in tool]
    return [{"functionDeclarations": declarations}, *own] if declarations else own


_NOT_CONFIG = frozenset({"model", "messages", "tools", "tool_choice", "parallel_tool_calls"})


_DEFAULT = lm15.Config()


def _config(request: Request, profile: Profile) -> lm15.Config:
    generation = {key: value for key, value in request.items() if key not in _NOT_CONFIG}
    config = _generation_config(generation) if generation else _DEFAULT
    choice = _tool_choice(request.get("tool_choice"), request.get("parallel_tool_calls"))
    if choice is not None:
        config = replace(config, tool_choice=choice)
    tools = wire_tools(request, profile)
    return (
        config if tools is None else replace(config, extensions={**(config.extensions or {}), "tools": tools})
    )


def _generation_config(generation: dict[str, Any]) -> lm15.Config:
    body = {**generation, "model": "any", "messages": [{"role": "user", "content": ""}]}
    try:
        return lm15.request_from_openai_chat(body).config
    except (lm15.LM15Error, TypeError, ValueError) as error:
        raise InvalidOption(
            f"a setting cannot be sent: {error}",
            field=getattr(error, "feature", None),
            fix="Remove it from the LM's keywords or the call's config, or put it where lm15 names one.",
        ) from error


def _tool_choice(choice: str | dict[str, Any] | None, parallel: bool | None) -> lm15.ToolChoice | None:  # noqa: FBT001
    if choice is None:
        return None if parallel is None else lm15.ToolChoice(mode="auto", parallel=parallel)
    if isinstance(choice, str):
        return lm15.ToolChoice(mode=cast("Any", choice), parallel=None if choice == "none" else parallel)
    if choice["type"] == "function":
        return lm15.ToolChoice(mode="required", allowed=(choice["function"]["name"],), parallel=parallel)
    allowed = choice["allowed_tools"]
    names = tuple(tool["function"]["name"] for tool in allowed["tools"])
    return lm15.ToolChoice(mode=allowed["mode"], allowed=names, parallel=parallel)
