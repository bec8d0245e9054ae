"""One faulty answer, one program, one verdict: sigadapt beside DSPy's adapter, pydantic-ai and LangChain.

Each program is the one that the library's documentation shows: it asks with two functions as tools, and runs
the calls it gets in the library's own way, so that what a run refuses counts as told. A verdict looks at what
reached the functions, at what the result still holds, and at the words of the error with its causes.
"""

import importlib
import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import dspy

import sigadapt
from benchmarks.faulty import Sent
from benchmarks.wholecall import QUESTION, Ours, Theirs
from sigadapt.testing import Answer, LoopbackProvider, Received, Reply

# From best to worst; a class before another is the better one, which is generous to leniency.
CLASSES = ("right", "lenient", "told", "in a field", "reason lost", "good call lost", "silent")
_FIELDS = re.compile(
    r"invalid_tool_calls=\[\{|finish_?reason'?[:=] ?'(?!stop|tool_call|STOP|None)\w"
    r"|stop_reason'?[:=] ?'(refusal|max)|'?refusal'?[:=] ?'\w|'?status'?[:=] ?'(failed|incomplete|cancelled)"
)
Ran = list[tuple[str, dict[str, Any]]]


class Outcome(NamedTuple):
    """What came of an answer: the calls that ran, what the result holds as text, and the error's words."""

    ran: Ran
    result: str
    error: str | None


def tools(ran: Ran) -> list[Callable[..., str]]:
    """The two functions, which note what reached them."""

    def get_weather(city: str, days: int = 3) -> str:
        """Weather for a city."""
        ran.append(("get_weather", {"city": city} | ({"days": days} if days != 3 else {})))
        return "Sunny."

    def now() -> str:
        """The time."""
        ran.append(("now", {}))
        return "Noon."

    return [get_weather, now]


def each_of(runs: list[Callable[[], Any]]) -> None:
    """Run every call, whatever fails, and raise what failed at the end: one bad call costs no good one."""
    errors: list[str] = []
    for run in runs:
        try:
            run()
        except Exception as error:  # noqa: BLE001, PERF203
            errors += _words(error)
    if errors:
        raise RuntimeError(" | ".join(errors))


def _predicted(adapter: dspy.Adapter, signature: Any, given: list[Any], sent: Sent, at: Any) -> Any:
    lm, program = dspy.LM(**at.lm_options(sent.wire)), dspy.Predict(signature)
    with dspy.context(lm=lm, adapter=adapter):
        if not sent.streamed:
            return program(question=QUESTION, tools=given)
        streamed: Any = dspy.streamify(program, async_streaming=False)
        *_, out = streamed(question=QUESTION, tools=given)
        return out


def _sigadapt(sent: Sent, at: LoopbackProvider, ran: Ran) -> Any:
    given = tools(ran)
    try:
        out = _predicted(sigadapt.ChatAdapter(), Ours, given, sent, at)
    except BaseException as error:
        while hasattr(error, "exceptions"):  # a streamed program raises a group
            (error,) = error.exceptions
        choice = getattr(error, "choice", None)
        if choice is not None and choice.tool_calls:  # the error carries the good calls, so they can run
            sigadapt.ToolCalls(list(choice.tool_calls)).run(given)
        raise
    if out.calls:
        out.calls.run(given)
    return out, getattr(out.calls, "text", None)


def _dspy(sent: Sent, at: LoopbackProvider, ran: Ran) -> Any:
    given = [dspy.Tool(each) for each in tools(ran)]
    adapter = dspy.ChatAdapter(use_native_function_calling=True)
    out = _predicted(adapter, Theirs, given, sent, at)
    each_of([partial(call.execute, functions=given) for call in (out.calls.tool_calls if out.calls else ())])
    return out


def _pydantic_ai(sent: Sent, at: LoopbackProvider, ran: Ran) -> Any:
    ai = importlib.import_module("pydantic_ai")
    room, kind, provider, where = {
        "openai": ("openai", "OpenAIChatModel", "OpenAIProvider", at.base_url("openai")),
        "responses": ("openai", "OpenAIResponsesModel", "OpenAIProvider", at.base_url("openai")),
        "anthropic": ("anthropic", "AnthropicModel", "AnthropicProvider", at.url),
        "gemini": ("google", "GoogleModel", "GoogleProvider", at.url),
    }[sent.wire]
    made = getattr(importlib.import_module(f"pydantic_ai.providers.{room}"), provider)
    model = getattr(importlib.import_module(f"pydantic_ai.models.{room}"), kind)
    name = at.lm_options(sent.wire)["model"].rpartition("/")[2]
    agent = ai.Agent(model(name, provider=made(base_url=where, api_key="x")), tools=tools(ran))

    async def watch(_: Any, events: Any) -> None:
        async for _event in events:
            pass

    out = agent.run_sync(QUESTION, event_stream_handler=watch if sent.streamed else None)
    return out.output, out.all_messages()


def _langchain(sent: Sent, at: LoopbackProvider, ran: Ran) -> Any:
    if sent.wire not in {"openai", "responses"}:
        raise ModuleNotFoundError(sent.wire)
    model = importlib.import_module("langchain_openai").ChatOpenAI(
        model=at.lm_options(sent.wire)["model"].rpartition("/")[2],
        base_url=at.base_url(sent.wire),
        api_key="x",
        max_retries=0,
        use_responses_api=sent.wire == "responses",
    )
    tool = importlib.import_module("langchain_core.tools").tool
    given = {each.name: each for each in map(tool, tools(ran))}
    bound, out = model.bind_tools(list(given.values())), None
    if sent.streamed:
        for chunk in bound.stream(QUESTION):
            out = chunk if out is None else out + chunk
    else:
        out = bound.invoke(QUESTION)
    each_of([partial(_invoked, given, call) for call in (out.tool_calls if out is not None else ())])
    return out


def _invoked(given: dict[str, Any], call: Any) -> Any:
    return given[call["name"]].invoke(call)


PROGRAMS: dict[str, Callable[[Sent, LoopbackProvider, Ran], Any]] = {
    "sigadapt": _sigadapt,
    "DSPy's adapter": _dspy,
    "pydantic-ai": _pydantic_ai,
    "LangChain": _langchain,
}


def outcome(sent: Sent, who: str) -> Outcome | None:
    """Ask once over HTTP; None if the library is not installed, or has no provider for the wire here."""
    ran: Ran = []

    def script(received: Received) -> Reply:  # an agent that ran the calls asks again, and is answered
        is_over = received.number > 1 and ran and (sent.row.sound or not sent.row.good)
        return Answer(text="Done.") if is_over else sent.reply

    provider = LoopbackProvider(script).start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = PROGRAMS[who](sent, provider, ran)
    except ModuleNotFoundError:
        return None
    except BaseException as error:  # noqa: BLE001  (it is the outcome)
        return Outcome(ran, "", " | ".join(_words(error)))
    finally:
        provider.__exit__(None, KeyboardInterrupt(), None)  # whatever the client made of it is the outcome
    return Outcome(ran, repr(result), None)


def _words(error: BaseException | None) -> list[str]:
    """An error as a traceback shows it: its class and message, and those of its causes."""
    if error is None:
        return []
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    here = f"{type(error).__name__}: {error} {getattr(error, 'code', '')}"
    follow = [*inner, error.__cause__ or (None if error.__suppress_context__ else error.__context__)]
    return [here, *(word for one in follow for word in _words(one))]


def verdict(sent: Sent, came: Outcome) -> str:  # noqa: PLR0911  (the classes, in order)
    """Put an outcome into its class."""
    row, ran = sent.row, [*came.ran]
    calls = [call for place, call in enumerate(ran) if call not in ran[:place]]  # an agent may run one again
    good, extra = [call in calls for call in row.good], [call for call in calls if call not in row.good]
    if row.sound:
        if came.error is not None or not all(good):
            return "good call lost"
        return "silent" if extra or (row.text is not None and row.text not in came.result) else "right"
    if row.lenient and calls == [*row.lenient] and came.error is None:
        return "lenient"
    if extra:
        return "silent"
    if not all(good):
        return "good call lost"
    if came.error is not None:
        return "told" if re.search(row.names, came.error, re.IGNORECASE) else "reason lost"
    return "in a field" if _FIELDS.search(came.result) else "silent"
