"""The spans of OpenTelemetry's GenAI conventions: `invoke_agent`, `chat` and `execute_tool`.

Source: gen-ai-spans.md and gen-ai-agent-spans.md of open-telemetry/semantic-conventions-genai; read on
2026-11-28.
The conventions are in development, so their names stand here, and nowhere else.

 a. A span that failed has the status ERROR and `error.type`: the code of an error of sigadapt, else the type
    of the exception. To wait for a person is no failure.
 b. What was said is there only with `content`, masked: messages, arguments, results, and what errors say.
 c. Nothing here raises: a provider, a processor or a value that fails costs a span, and a line in the log.

The last functions write what was said as these conventions do.
"""

import logging
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from dspy.utils.callback import BaseCallback
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from pydantic_core import to_jsonable_python
from typing_extensions import Self

from sigadapt.adapters.response.choice import Choice, choice_from_response
from sigadapt.dspy_boundary.contract import is_entry_of, sent_to_model
from sigadapt.dspy_boundary.internals import settings
from sigadapt.errors import InputNeeded, SigadaptError
from sigadapt.json_values import Json, compact, is_array, is_mapping, is_object
from sigadapt.providers import telemetry_name
from sigadapt.schemas.arguments import CutOff
from sigadapt.signatures.tool_functions.open_call import CallStop
from sigadapt.signatures.tool_results.tool_result import FailedResult
from sigadapt.signatures.tool_results.tool_result import text_of_error as message_of
from sigadapt.trust.echoes import Echoes
from sigadapt.trust.masking import long_secrets_in, secrets_in_settings

_LOG = logging.getLogger("sigadapt")
_TRACE_CONTEXT = TraceContextTextMapPropagator()

_position_to_link: ContextVar[str] = ContextVar("position_to_link", default="")
"""The span, as text, in which the run waited that goes on here; the first span links to it."""

_REQUEST_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "reasoning_effort": "reasoning.level",
}
"""The attributes of `gen_ai.request.` by the settings of a request."""


class OpenSpan:
    """A span that is the current one here, until it is left."""

    def __init__(
        self,
        tracer: "SpanTracer",
        name: str,
        attributes: Mapping[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        self._tracer = tracer
        self._span: Span | None = None
        self._token: Any = None
        self._try(self._begin, name, attributes, kind)

    def _begin(self, name: str, attributes: Mapping[str, Any], kind: SpanKind) -> None:
        begin = self._tracer.tracer.start_span
        self._span = begin(name, kind=kind, attributes=dict(attributes), links=_links())
        self._token = contexts.attach(trace.set_span_in_context(self._span))

    def _try(self, step: Callable[..., None], *given: Any) -> None:
        try:
            step(*given)
        except Exception:  # noqa: BLE001  (rule c)
            _LOG.warning("a trace lacks something", exc_info=True)

    def describe(self, step: Callable[[Span], None]) -> None:
        """Let a function describe the span, if somebody keeps it."""
        span = self._span
        if span is not None and span.is_recording():
            self._try(step, span)

    def tell(self, name: str, value_of: Callable[[], Any]) -> None:
        """Tell what was said as an attribute, if the program asks for content."""
        if self._tracer.has_content:
            self.describe(lambda span: span.set_attribute(f"gen_ai.{name}", self._tracer.text_of(value_of())))

    def close(self, error: BaseException | str | None = None) -> None:
        """End the span, as one that failed if there is an error."""
        span = self._span
        self._span = None
        if span is None:
            return
        if error is not None:
            self._try(self._fail, span, error)
        self._try(span.end)

    def _fail(self, span: Span, error: BaseException | str) -> None:
        span.set_attribute("error.type", _error_type(error))
        words: str | None = None
        if self._tracer.has_content and not isinstance(error, str):
            words = self._tracer.text_of(message_of(error))
        span.set_status(Status(StatusCode.ERROR, words))

    def leave(self) -> None:
        """Make the span before it the current one again, in the context in which it began."""
        if self._token is not None:
            contexts.detach(self._token)
            self._token = None


def _links() -> list[Link]:
    position = _position_to_link.get()
    if not position:
        return []
    _position_to_link.set("")  # those inside of this one need no link
    parent = trace.get_current_span(_TRACE_CONTEXT.extract({"traceparent": position}, contexts.Context()))
    return [Link(parent.get_span_context())]


def _error_type(error: BaseException | str) -> str:
    if isinstance(error, str):
        return error
    if isinstance(error, SigadaptError):
        return error.code
    if isinstance(error, FailedResult):  # what a tool or a server reported
        return error.error_type or "tool_error"
    kind = type(error)
    name = kind.__qualname__.replace("<locals>.", "")
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


class SpanTracer:
    """Makes the spans of one tracer provider (`dspy_boundary/current_run.py` says when)."""

    def __init__(self, provider: trace.TracerProvider | None, *, content: bool) -> None:
        self.tracer = trace.get_tracer("sigadapt", tracer_provider=provider)
        self.has_content = content
        self._secrets: set[str] = secrets_in_settings(os.environ) if content else set()

    @contextmanager
    def agent(self, agent: Any) -> Generator[None]:
        """Run an agent in its span."""
        name = _name_of(agent)
        attributes = {"gen_ai.operation.name": "invoke_agent"}
        if name:
            attributes["gen_ai.agent.name"] = name
        span = OpenSpan(self, f"invoke_agent {name}".rstrip(), attributes)
        try:
            yield
        except (InputNeeded, CallStop):
            raise
        except BaseException as error:
            span.close(error)
            raise
        finally:
            span.close()
            span.leave()

    def request(self, record: Any) -> "_ChatSpan":
        """Return the context in which a request is sent and answered."""
        lm = record.call.lm
        chat = self.chat(lm, _request_attributes(lm, record.request, record.route.wire))
        if record.changes:
            chat.describe(lambda span: self._add_changes(span, record.changes))
        chat.ask(record.request["messages"], record.request.get("tools") or ())
        return chat

    def text_of(self, value: Any) -> str:
        """Return a value as text, without the keys of the environment and of the models that were asked."""
        return text_of(value, self._secrets | _keys_of(settings.lm))

    def chat(self, lm: Any, attributes: Mapping[str, Any]) -> "_ChatSpan":
        """Begin the span of a request."""
        if self.has_content:
            self._secrets |= _keys_of(lm)
        name = f"chat {attributes['gen_ai.request.model']}"
        return _ChatSpan(self, name, attributes, SpanKind.CLIENT)

    def _add_changes(self, span: Span, changes: Any) -> None:
        for change in changes:
            values = {"what": change.what, "where": change.where}
            if self.has_content:
                values["why"] = self.text_of(change.why)
            span.add_event("sigadapt.change", values)

    def requests_of_dspy(self) -> AbstractContextManager[None]:
        """Return the context in which DSPy's own code sends requests."""
        others: list[Any] = [
            each for each in settings.get("callbacks") or () if not isinstance(each, _RequestsOfDspy)
        ]
        return settings.context(callbacks=[*others, _RequestsOfDspy(self)])

    def call(self, call: Any) -> "_ToolSpan":
        """Begin the span of a call, in the context in which its tool runs next."""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
        }
        if call.id:
            attributes["gen_ai.tool.call.id"] = call.id
        span = _ToolSpan(self, f"execute_tool {call.name}", attributes)
        span.tell("tool.call.arguments", lambda: call.args or {})
        return span

    def position(self) -> str:
        """Return the current span as text; empty without one."""
        carrier: dict[str, str] = {}
        _TRACE_CONTEXT.inject(carrier)
        return carrier.get("traceparent", "")

    @contextmanager
    def resuming(self, position: str) -> Generator[None]:
        """Let the first spans of a run that goes on link to where it waited."""
        token = _position_to_link.set(position)
        try:
            yield
        finally:
            _position_to_link.reset(token)


class _ToolSpan(OpenSpan):
    """The span of a call."""

    def end(self, value: Any = None, error: BaseException | str | None = None) -> None:
        """End it with what the call gave, or why it failed; to wait is no failure."""
        if isinstance(error, CallStop):
            self.close()
            return
        if error is None and value is not None:
            self.tell("tool.call.result", lambda: value)
        self.close(error)


class _ChatSpan(OpenSpan):
    """The span of a request, from what it asks to its answer."""

    _fault: BaseException | str | None = None

    def ask(self, messages: Any, tools: Any) -> None:
        """Tell what is asked, if the program asks for content."""
        self.tell("input.messages", lambda: input_messages(messages))
        if tools:
            self.tell("tool.definitions", lambda: tool_definitions(tools))

    def take(self, choice: Choice | None, fault: BaseException | str | None) -> None:
        """Take the answer, and why it is none that can be used."""
        self._fault = fault
        if choice is None:
            return
        self.describe(lambda span: span.set_attributes(_answer_attributes(choice)))
        self.tell("output.messages", lambda: output_messages(choice))

    def end(self, error: BaseException | str | None) -> None:
        """End the span, in the context in which it began."""
        self.close(error)
        self.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.end(error or self._fault)


class _RequestsOfDspy(BaseCallback):
    """The spans of requests that DSPy's own code sends, for signatures without tool fields."""

    def __init__(self, tracer: SpanTracer) -> None:
        self._tracer = tracer
        self._spans: dict[str, tuple[_ChatSpan, Any]] = {}

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Begin the span of a request."""
        messages, settings = sent_to_model(inputs)
        chat = self._tracer.chat(instance, _request_attributes(instance, {**instance.kwargs, **settings}))
        chat.ask(messages, ())
        self._spans[call_id] = chat, instance

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """End the span of a request."""
        chat, lm = self._spans.pop(call_id)
        choice = None
        try:
            choice = _choice_in_history(lm, outputs)
        finally:
            chat.take(choice, None)
            chat.end(exception)


def _choice_in_history(lm: Any, outputs: Any) -> Choice | None:
    """Return the answer of which these are the outputs, if DSPy keeps its history."""
    for entry in lm.history[:-9:-1] if outputs is not None else ():
        response = entry.get("response")
        if response is not None and is_entry_of(entry, outputs):
            return choice_from_response(response[0] if isinstance(response, tuple) else response)
    return None


def _keys_of(lm: Any) -> set[str]:
    return secrets_in_settings(getattr(lm, "kwargs", None) or {})


def _name_of(agent: Any) -> str:
    """Return the name of the class of an agent's signature; empty for a signature that is a string."""
    name = agent.signature.__name__
    return "" if name == "StringSignature" else name


def _request_attributes(lm: Any, request: Mapping[str, Any], wire: str = "") -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": telemetry_name(lm.model, wire),
        "gen_ai.request.model": lm.model.partition("/")[2] or lm.model,
    }
    for name, attribute in _REQUEST_SETTINGS.items():
        value = request.get(name)
        if isinstance(value, (int, float, str)):
            attributes[f"gen_ai.request.{attribute}"] = value
    stop = request.get("stop")
    if isinstance(stop, (str, list)):
        attributes["gen_ai.request.stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if settings.send_stream is not None:
        attributes["gen_ai.request.stream"] = True
    return attributes | _address_of(lm)


def _address_of(lm: Any) -> dict[str, Any]:
    base = lm.kwargs.get("api_base") or lm.kwargs.get("base_url")
    if not isinstance(base, str):
        return {}
    try:
        url = urlsplit(base)
        port = url.port or {"http": 80, "https": 443}.get(url.scheme)
    except ValueError:  # no address
        return {}
    return {"server.address": url.hostname, "server.port": port} if url.hostname and port else {}


def _answer_attributes(choice: Choice) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    if choice.finish_reason is not None:
        attributes["gen_ai.response.finish_reasons"] = [choice.finish_reason]
    for name in ("id", "model"):
        value = getattr(choice.raw, name, None)
        if isinstance(value, str):
            attributes[f"gen_ai.response.{name}"] = value
    usage = choice.usage
    if usage is not None:
        figures = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read.input_tokens": usage.cached_tokens,
        }
        attributes |= {f"gen_ai.usage.{name}": count for name, count in figures.items() if count is not None}
    return attributes


def text_of(value: Any, secrets: AbstractSet[str]) -> str:
    """Return a value as the text of an attribute: JSON, or a text as it is; without secrets."""
    plain = to_jsonable_python(value, fallback=str, bytes_mode="base64", inf_nan_mode="strings")
    masked = Echoes(secrets | long_secrets_in(plain)).hidden_in(plain, (), {})
    return masked if isinstance(masked, str) else compact(masked)


def input_messages(rows: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return the messages of a canonical Request."""
    return [{"role": row["role"], "parts": [*_parts_of(row)]} for row in rows]


def _parts_of(row: Mapping[str, Any]) -> list[Json]:
    content = row.get("blocks") or row.get("content")
    if row["role"] == "tool":
        return [{"type": "tool_call_response", "id": row.get("tool_call_id"), "response": content}]
    parts: list[Json] = []
    if isinstance(content, str):
        parts.append({"type": "text", "content": content})
    elif is_array(content):
        parts += [_part(block) for block in content if is_object(block)]
    calls: Sequence[Any] = row.get("tool_calls") or ()
    return parts + [_call_part(each.get("id"), each.get("function") or {}) for each in calls]


def _part(block: Json) -> Json:
    if block.get("type") == "text":
        return {"type": "text", "content": block.get("text")}
    return {"type": str(block.get("type"))}  # such as an image, whose data no span should hold


def _call_part(call_id: Any, function: Mapping[str, Any]) -> Json:
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        arguments = _object_in(arguments)
    return {"type": "tool_call", "id": call_id, "name": function.get("name"), "arguments": arguments}


def _object_in(text: str) -> Any:
    from jiter import from_json

    try:
        return from_json(text.encode())
    except ValueError:
        return text


def output_messages(choice: Choice) -> list[Json]:
    """Return the answer of one candidate."""
    parts: list[Json] = []
    if choice.reasoning:
        parts.append({"type": "reasoning", "content": choice.reasoning})
    if choice.text:
        parts.append({"type": "text", "content": choice.text})
    for call in choice.tool_calls.in_order() if choice.tool_calls is not None else ():
        arguments: Any = getattr(call, "args", None)
        arguments = arguments.sent if isinstance(arguments, CutOff) else arguments
        parts.append({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments})
    return [{"role": "assistant", "parts": parts}]


def tool_definitions(tools: Sequence[Any]) -> list[Json]:
    """Return the tools of a canonical Request; of a provider's own, which may hold tokens, type and name."""
    return [_definition(tool) for tool in tools if is_mapping(tool)]


def _definition(tool: Mapping[str, Any]) -> Json:
    function = tool.get("function")
    if is_mapping(function):
        names = ("name", "description", "parameters")
        return {"type": "function", **{name: function[name] for name in names if name in function}}
    return {name: tool[name] for name in ("type", "name") if name in tool}
