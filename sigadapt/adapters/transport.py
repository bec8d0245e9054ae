"""The only file that knows how dspy.LM is called (Request -> dspy.LM -> Response).

It goes through the typed boundary, `lm(dspy.lm15.Request)`, because `lm(messages=..., tools=...)` is
deprecated for DSPy 3.5 and loses what a provider sent (DESIGN section 5). What that boundary asks of its
caller is done here: `lm.kwargs` are not merged into a Request, connection settings do not belong in one,
and `n` is refused, so n candidates are n requests.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from dspy import lm15
from dspy.clients.backend_selection import CLIENT_KEYS, select_backend
from dspy.clients.base_lm import BaseLM
from dspy.clients.call_context import adapter_fallback_scope as fallback_scope
from dspy.clients.call_result import legacy_output
from dspy.clients.capabilities import with_capability_planning

from sigadapt.adapters import profiles
from sigadapt.adapters.options import Options
from sigadapt.adapters.profiles import Profile
from sigadapt.adapters.request import Request
from sigadapt.errors import InvalidOption
from sigadapt.signatures.arguments import parse_arguments

__all__ = [
    "Controls",
    "asend",
    "controls_of",
    "fallback_scope",
    "legacy_output",
    "refuse_unsupported",
    "send",
    "with_capability_planning",
]

_CONTROLS = frozenset({"cache", "rollout_id", "n", "num_generations", "prompt_cache"})


class Controls(NamedTuple):
    """What governs the sending of a request without being part of it.

    `client` holds connection settings given for this call alone, `count` how many candidates are wanted.
    """

    client: dict[str, Any]
    count: int
    cache: bool | None
    rollout_id: Any
    prompt_cache: lm15.CacheConfig | None

    def candidate(self, number: int) -> "Controls":
        """For one candidate alone: its own rollout_id, or the cache would give one answer n times."""
        base = self.rollout_id
        rollout = base if number == 0 else f"{'' if base is None else base}#{number}"
        return self._replace(count=1, rollout_id=rollout)


def controls_of(lm: BaseLM, settings: Mapping[str, Any]) -> tuple[Controls, dict[str, Any]]:
    """Split a call's settings, over the model's own, into how to send and what to generate.

    Args:
        lm: the language model; its `kwargs` are the defaults.
        settings: the call's keyword settings, as Predict's `config` gives them; None means unset.

    Returns:
        The controls, and the generation settings that belong in a request.
    """
    merged = {**lm.kwargs, **settings}
    count = merged.get("n") or merged.get("num_generations") or 1
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InvalidOption(f"{count!r} is not a positive integer", field="n")
    client = {key: value for key, value in settings.items() if key in CLIENT_KEYS}
    controls = Controls(
        client, count, settings.get("cache"), merged.get("rollout_id"), merged.get("prompt_cache")
    )
    generation = {
        key: value
        for key, value in merged.items()
        if value is not None and key not in CLIENT_KEYS and key not in _CONTROLS
    }
    return controls, generation


def refuse_unsupported(lm: BaseLM, options: Options) -> None:
    """Raise InvalidOption where this model cannot be sent tools natively (rule 4)."""
    if lm.model_type == "text":
        raise InvalidOption(
            f"{lm.model} is called as a text-completion model, whose wire has no tools",
            field="model_type",
            fix="Construct the LM with model_type='chat' or 'responses'.",
        )
    if options.tool_calling == "auto" and not lm.supports_function_calling:
        raise InvalidOption(
            f"DSPy does not know that {lm.model} supports function calling",
            field="tool_calling",
            fix="Pass tool_calling='native' to the adapter if it does.",
        )


def send(lm: BaseLM, request: Request, controls: Controls) -> list[lm15.Response]:
    """Send a request through the language model, once a candidate.

    Raises:
        InvalidOption: for a generation setting that lm15 has no place for, with lm15's reason.
        dspy.utils.exceptions.LMError: whatever the language model raises.
    """
    lm, typed = _prepared(lm, request, controls)
    call = cast("Any", lm)
    return [call(typed, **keywords) for keywords in _executions(controls)]


async def asend(lm: BaseLM, request: Request, controls: Controls) -> list[lm15.Response]:
    """The same, awaited."""
    lm, typed = _prepared(lm, request, controls)
    call = cast("Any", lm.acall)
    return [await call(typed, **keywords) for keywords in _executions(controls)]


def _prepared(lm: BaseLM, request: Request, controls: Controls) -> tuple[BaseLM, lm15.Request]:
    typed = to_lm15(request, profile_of(lm))
    if controls.prompt_cache is not None:
        typed = replace(typed, config=replace(typed.config, cache=controls.prompt_cache))
    if controls.client:
        history = lm.history
        lm = lm.copy(**controls.client)
        lm.history = history
    return lm, typed


def _executions(controls: Controls) -> Iterator[dict[str, Any]]:
    common = {} if controls.cache is None else {"cache": controls.cache}
    for number in range(controls.count):
        rollout = controls.candidate(number).rollout_id
        yield common if rollout is None else {**common, "rollout_id": rollout}


def profile_of(lm: BaseLM) -> Profile:
    """The wire that a language model's requests go over, as DSPy will select it."""
    if not isinstance(getattr(lm, "engine", None), str):
        return profiles.ENGINE
    selection: Any = select_backend(lm)
    if selection.native:
        return profiles.NATIVE[_LM15_DIALECTS.get(selection.resolution.adapter, "openai-chat")]
    if lm.model_type == "responses":
        return profiles.LITELLM["openai-responses"]
    return profiles.LITELLM[profiles.LITELLM_DIALECTS.get(lm.model.partition("/")[0], "openai-chat")]


_LM15_DIALECTS = {"OpenAILM": "openai-responses", "AnthropicLM": "anthropic", "GeminiLM": "gemini"}


def to_lm15(request: Request, profile: Profile) -> lm15.Request:
    """The canonical request as lm15's; tools and messages are handed over as they stand.

    Example:
        >>> request: Request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        >>> to_lm15(request, profiles.NATIVE["anthropic"]).messages[0].text
        'hi'
    """
    system, messages = _split_system(request["messages"])
    return lm15.Request(
        model=request["model"],
        system=system,
        messages=tuple(_messages(messages, profile)),
        tools=tuple(_tool(tool) for tool in request.get("tools", ())),
        config=_config(request),
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
        yield _message(row)
    if results:
        yield lm15.Message(role="tool", parts=tuple(results))


def _message(row: dict[str, Any]) -> lm15.Message:
    if row["role"] == "assistant":
        return lm15.Message(role="assistant", parts=tuple(_said(row)) or (lm15.TextPart(text=""),))
    if row["role"] == "user" and isinstance(row["content"], str):
        return lm15.Message.user(row["content"])
    # Content blocks (images, files, ...) and system messages further down: lm15's own reader knows them.
    return lm15.request_from_openai_chat(
        {"model": "any", "messages": [{"role": "user", "content": ""}, row]}
    ).messages[1]


def _said(row: dict[str, Any]) -> Iterator[Any]:
    if row.get("content"):
        yield lm15.TextPart(text=row["content"])
    for call in row.get("tool_calls", ()):
        function = call["function"]
        args = parse_arguments(function["arguments"])
        # lm15 replays objects only; what is wrong with the text is said in the call's result (rule 5).
        yield lm15.ToolCallPart(
            id=call["id"], name=function["name"], input=args if isinstance(args, dict) else {}
        )


def _result(row: dict[str, Any], profile: Profile) -> lm15.ToolResultPart:
    failed, text = row.get("is_error", False), row["content"]
    if failed and not profile.marks_failed_results:
        failed, text = False, f"ERROR: {text}"
    return lm15.ToolResultPart(
        id=row["tool_call_id"], name=row.get("name"), content=(lm15.TextPart(text=text),), is_error=failed
    )


def _tool(tool: dict[str, Any]) -> lm15.FunctionTool:
    function = tool["function"]
    return lm15.FunctionTool(
        name=function["name"], description=function.get("description"), parameters=function["parameters"]
    )


_NOT_CONFIG = frozenset({"model", "messages", "tools", "tool_choice", "parallel_tool_calls"})


def _config(request: Request) -> lm15.Config:
    generation = {key: value for key, value in request.items() if key not in _NOT_CONFIG}
    config = _generation_config(generation) if generation else lm15.Config()
    choice = _tool_choice(request.get("tool_choice"), request.get("parallel_tool_calls"))
    return replace(config, tool_choice=choice) if choice else config


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
