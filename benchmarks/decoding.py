"""Reading the same bodies with sigadapt, DSPy's lm15, LiteLLM, the OpenAI SDK, LangChain and pydantic-ai.

Each is called as it calls itself on a body that has arrived, and has decoded the arguments at the end; those
that leave them as text get a `json.loads` for each call. None but sigadapt checks for repeated keys, cut-off
arguments or NaN, and none validates here.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import litellm
from dspy import lm15
from langchain_openai import ChatOpenAI
from openai.types.chat import ChatCompletion
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import sigadapt
from benchmarks.measure import Table, medians, micro, times
from benchmarks.subjects import completion
from sigadapt import ToolDecls

KILOBYTE = "x" * 1_000
SIZES = {"1 kB": 1, "10 kB": 10, "100 kB": 100, "1 MB": 1_000, "10 MB": 10_000}
BODIES: dict[str, dict[str, Any]] = {
    "one call": completion({"city": "Paris", "days": 3}),
    "three calls": completion(*[{"city": "Paris", "days": n, "opts": {"units": "metric"}} for n in range(3)]),
    "ten calls beside 2 kB of text": completion(
        *[{"city": "Paris", "days": n, "notes": ["a", "b", {"c": None}]} for n in range(10)],
        text=KILOBYTE * 2,
    ),
}
CHAT = ChatOpenAI(api_key="loopback", model="gpt-4o-mini")
MODEL = OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(api_key="loopback"))


def tables(seconds: float) -> Iterator[Table]:
    """The comparisons, each row taken for so many seconds."""
    yield whole_bodies(seconds)
    yield arguments(seconds)
    yield streams(seconds)


def whole_bodies(seconds: float) -> Table:
    """Whole answers of growing size, over the least there is to do."""
    rows: list[list[str]] = []
    for title, body in BODIES.items():
        text = json.dumps(body)
        readers = [lambda read=read, text=text: read(json.loads(text)) for read in (least, *READERS.values())]
        base, *others = medians(readers, seconds)
        rows.append([title, *(times(other / base) for other in others), micro(base)])
    told = (
        "From the text of a body to calls with decoded arguments. The unit is the least that can cost: "
        "`json.loads` of the body and of each call's arguments (last column). Only sigadapt detects "
        "repeated keys, cut-off arguments and NaN. lm15 is the part of DSPy that reads providers' answers."
    )
    return Table("Reading an answer", told, ("times the least", *READERS, "the least"), rows)


def least(body: dict[str, Any]) -> list[Any]:
    """What nobody can do without."""
    return [loaded(call) for call in body["choices"][0]["message"]["tool_calls"]]


def loaded(call: dict[str, Any]) -> Any:
    """A raw call's arguments."""
    return json.loads(call["function"]["arguments"])


def by_sigadapt(body: dict[str, Any]) -> Any:
    """`choice_from_response`, and the typed calls, which are made when they are asked for."""
    return sigadapt.choice_from_response(body).tool_calls


def by_lm15(body: dict[str, Any]) -> Any:
    """What DSPy's native engine does."""
    return lm15.response_from_openai_chat(body, model="gpt-4o-mini").tool_calls


def by_litellm(body: dict[str, Any]) -> Any:
    """What DSPy's other engine gets from LiteLLM."""
    message = litellm.ModelResponse(**body).choices[0].message
    return [json.loads(call.function.arguments) for call in message.tool_calls]


def by_openai(body: dict[str, Any]) -> Any:
    """The SDK's own way to an object, without validation."""
    message = ChatCompletion.construct(**body).choices[0].message
    return [json.loads(call.function.arguments) for call in message.tool_calls or ()]


def by_langchain(body: dict[str, Any]) -> Any:
    """A chat model's result of a body."""
    return CHAT._create_chat_result(body).generations[0].message.tool_calls  # noqa: SLF001


def by_pydantic_ai(body: dict[str, Any]) -> Any:
    """A model's response of the SDK's object."""
    response = MODEL._process_response(ChatCompletion.construct(**body))  # noqa: SLF001
    return [call.args_as_dict() for call in response.tool_calls]


READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "sigadapt": by_sigadapt,
    "lm15 (DSPy)": by_lm15,
    "OpenAI SDK": by_openai,
    "LangChain": by_langchain,
    "LiteLLM": by_litellm,
    "pydantic-ai": by_pydantic_ai,
}


def arguments(seconds: float) -> Table:
    """One call's arguments, 1 kB to 10 MB, read and validated."""
    rows: list[list[str]] = []
    decls = ToolDecls(
        [{"name": "tool_0", "parameters": {"properties": {"city": {"items": {"type": "string"}}}}}]
    )
    for title, kilobytes in SIZES.items():
        body = completion({"city": [KILOBYTE] * kilobytes}, text=None)
        text = json.dumps(body)
        base, read, checked = medians(
            [
                lambda text=text: least(json.loads(text)),
                lambda text=text: by_sigadapt(json.loads(text)),
                lambda text=text: by_sigadapt(json.loads(text)).validated(decls),
            ],
            seconds,
        )
        rows.append([title, times(read / base), times(checked / base), micro(base)])
    told = (
        "One call whose argument is a list of 1 kB strings, only read, and also checked against its "
        "schema. The unit is the same."
    )
    return Table(
        "By the size of the arguments", told, ("times the least", "read", "and checked", "the least"), rows
    )


def streams(seconds: float) -> Table:
    """Streams whose arguments come in fragments of twelve characters."""
    rows: list[list[str]] = []
    counts = (1_000, 10_000, 100_000)
    sent = [stream(count) for count in counts]
    taken = medians([lambda one=one: sigadapt.response.choice_from_stream(one) for one in sent], seconds)
    for count, whole in zip(counts, taken, strict=True):
        rows.append([f"{count:,} fragments", micro(whole / count), f"{whole * 1e3:,.1f} ms"])
    told = "A stream of one call, from its events to a choice. A fragment costs the same in a long stream."
    return Table("By the length of a stream", told, ("", "a fragment", "the stream"), rows)


def stream(fragments: int) -> list[dict[str, Any]]:
    """The events of one call with so many fragments of arguments."""
    pieces = ['{"a":[', *['"xyyyyyyyy",'] * fragments, '"end"]}']
    opening = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    deltas = [opening, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
    events = [{"choices": [{"index": 0, "delta": {"tool_calls": [delta]}}]} for delta in deltas]
    return [*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]
