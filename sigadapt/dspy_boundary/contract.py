"""Where DSPy 3.4 and 3.5 differ, each difference once. Other files need not know which of them runs.

From 3.5 on, DSPy's adapters, types and models speak lm15's Request, Response and Message alone. What is there
decides, never a version's number. A comment names the version of each half, so that the support of 3.4 can
be cut out here. Sources: DSPy's "The DSPy LM contract (3.5)" and "Upgrading from DSPy 3.4.1 to 3.5".
"""

# pyright: reportPrivateUsage=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# DSPy does not annotate these names, or not for a strict type checker.

import copy
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import dspy
import pydantic
from dspy import adapters, lm15
from dspy.adapters.types import base_type
from dspy.adapters.types.history import History
from dspy.clients import call_result, execution
from dspy.clients.base_lm import BaseLM

IS_TYPED = hasattr(BaseLM, "generate")
"""Whether DSPy speaks lm15 alone: from DSPy 3.5 on."""

DEFAULT_ADAPTER = "XMLAdapter" if IS_TYPED else "ChatAdapter"
"""The name of DSPy's adapter where a program sets none; in 3.5 with native tool calling."""

# Agents.


if TYPE_CHECKING:

    class ReActV2(dspy.Module):
        """DSPy's agent. DSPy's decorator of experimental classes hides its type."""

        signature: type[dspy.Signature]
        tools: dict[str, dspy.Tool]
        max_iters: int
        react: dspy.Predict

        def __init__(
            self, signature: type[dspy.Signature] | str, tools: list[dspy.Tool], max_iters: int = ...
        ) -> None: ...

        def forward(self, **input_args: Any) -> dspy.Prediction:
            """Run the agent."""
            ...

        async def aforward(self, **input_args: Any) -> dspy.Prediction:
            """Run the agent, awaited."""
            ...

        def _forced_submit(
            self, history: History, pending_inputs: dict[str, Any], break_reason: str, turn_index: int
        ) -> dspy.Prediction: ...

        async def _aforced_submit(
            self, history: History, pending_inputs: dict[str, Any], break_reason: str, turn_index: int
        ) -> dspy.Prediction: ...

else:
    ReActV2 = dspy.ReAct  # DSPy 3.5, which warns of the older name
    if not hasattr(ReActV2, "_make_submit_tool"):  # DSPy 3.4
        from dspy.predict.react_v2 import ReActV2

AGENTS: tuple[Any, ...] = (dspy.ReAct, ReActV2)
"""DSPy's agents: in 3.4 two, and in 3.5 the same one by two names."""


def keeps_trajectory(module: object) -> bool:
    """Return whether a module is the older `dspy.ReAct` of DSPy 3.4, which keeps its calls as texts."""
    return hasattr(module, "truncate_trajectory")


# Calls of a model.

_prepare: Any = execution.prepare


def prepared_call(lm: BaseLM, request: lm15.Request, *, is_async: bool) -> Any:
    """Return a request as DSPy sends it."""
    if IS_TYPED:
        return _prepare(lm, request, {}, asynchronous=is_async)
    return _prepare(lm, request, None, {}, asynchronous=is_async)  # DSPy 3.4


def sent_to_model(inputs: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the chat messages and the settings of a call of DSPy's own code, of which a callback hears."""
    request = inputs.get("request") or inputs.get("prompt")
    if not isinstance(request, lm15.Request):  # DSPy 3.4
        return inputs.get("messages") or [], inputs.get("kwargs") or {}
    config = request.config
    settings = {name: getattr(config, name) for name in ("temperature", "top_p", "max_tokens", "top_k")}
    return rows_of(request), {name: value for name, value in settings.items() if value is not None}


def is_entry_of(entry: Mapping[str, Any], outputs: Any) -> bool:
    """Return whether an entry of a model's history is that of the call that gave these outputs."""
    responses: Any = entry.get("response")
    candidates: list[Any] = [*responses] if isinstance(responses, (list, tuple)) else [responses]
    # An adapter of DSPy 3.5 gets a list of the responses that the entry holds.
    first = outputs[0] if isinstance(outputs, list) and outputs else outputs
    return outputs is entry.get("outputs") or any(each is outputs or each is first for each in candidates)


def native_values(kinds: Mapping[str, Any], response: lm15.Response, reasoning: str | None) -> dict[str, Any]:
    """Return the values that DSPy's native types read from a Response and its log probabilities."""
    read_from, logprobs = _readable(response, reasoning)
    values: dict[str, Any] = {}
    for name, kind in kinds.items():
        try:
            value = kind.parse_lm_response(read_from)
        except pydantic.ValidationError as error:
            # `dspy.Citations` fits citations of documents; those of a web search have other fields.
            reasons = "; ".join(fault["msg"] for fault in error.errors(include_url=False)[:2])
            logging.getLogger("sigadapt").info("%s stays None: what came is no %s: %s", name, kind, reasons)
            continue
        if value is not None:
            values[name] = value
    if logprobs is not None:
        values["logprobs"] = logprobs
    return values


def _readable(response: lm15.Response, reasoning: str | None) -> tuple[Any, Any]:
    """Return a response in the form that native types read, with the reasoning, and its log probabilities."""
    if not IS_TYPED:  # DSPy 3.4: a dict
        output: dict[str, Any] = call_result.legacy_output(response, logprobs=response.logprobs is not None)
        return output | ({"reasoning_content": reasoning} if reasoning else {}), output.get("logprobs")
    if reasoning and not any(part.text for part in response.message.parts_of(lm15.ThinkingPart)):
        parts = (lm15.ThinkingPart(reasoning), *response.message.parts)
        response = replace(response, message=replace(response.message, parts=parts))
    return response, response.logprobs


# Tools, as one of DSPy's own adapters declares them to a model.


class RefusableTool(dspy.Tool):
    """A `dspy.Tool` that can refuse to be declared: `refuse` raises why."""

    def refuse(self) -> None:
        """Raise why no adapter of DSPy's may declare this tool, if none may."""
        raise NotImplementedError

    def format(self) -> str:
        """Return what is written of the tool into a prompt."""
        self.refuse()
        return super().format()

    def format_as_litellm_function_call(self) -> dict[str, Any]:
        """Return what is sent of the tool: DSPy 3.4."""
        self.refuse()
        return super().format_as_litellm_function_call()

    def as_function_tool(self) -> Any:
        """Return what is sent of the tool: DSPy 3.5."""
        self.refuse()
        dspys: Any = super()
        return dspys.as_function_tool()


# Prompts.


class _OwnMessage(lm15.Message):
    """A message that knows the chat messages which it says: they hold more than lm15 has a place for."""

    __slots__ = ("rows",)

    def __init__(self, message: lm15.Message, rows: list[dict[str, Any]]) -> None:
        super().__init__(role=message.role, parts=message.parts)
        object.__setattr__(self, "rows", rows)


def prompt_of(system: str | None, messages: Iterable[tuple[lm15.Message, list[dict[str, Any]]]]) -> Any:
    """Return a `dspy.adapters.Prompt` of messages, each with the chat messages that it says: DSPy 3.5."""
    prompt: Any = vars(adapters)["Prompt"]
    return prompt(messages=tuple(_OwnMessage(message, rows) for message, rows in messages), system=system)


def rows_of(prompt: Any) -> list[dict[str, Any]]:
    """Return the chat messages of what `format` of a user's adapter returned, or of a Request."""
    if isinstance(prompt, list):
        return prompt
    system = prompt.system  # DSPy 3.5
    if isinstance(system, tuple):
        system = "".join(part.text for part in system)
    rows = [{"role": "system", "content": system}] if system else []
    for message in prompt.messages:
        rows += message.rows if isinstance(message, _OwnMessage) else [_row(message)]
    return rows


def demo_messages(
    adapter: Any, signature: type[dspy.Signature], demos: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return few-shot examples without calls as chat messages, with values of DSPy's types as marked text."""
    if not IS_TYPED:
        return adapter.format_demos(signature, demos)
    # DSPy 3.5 makes parts of everything that is marked, whoever wrote the mark: a text of an example could
    # name a file of the account. So DSPy places names of the texts, and the texts come back afterwards.
    texts: dict[str, str] = {}

    def name_of(write: Callable[..., str], *args: Any, **options: Any) -> str:
        name = f"<<{token_hex(16)}>>"
        texts[name] = write(*args, **options)
        return name

    twin = copy.copy(adapter)
    for method in ("format_user_message_content", "format_assistant_message_content"):
        setattr(twin, method, partial(name_of, getattr(adapter, method)))
    rows = [_row(message) for message in twin.format_demos(signature, demos)]
    for row in rows:
        for name, text in texts.items():
            if isinstance(row["content"], str):
                row["content"] = row["content"].replace(name, text)
    return rows


def _row(message: Any) -> dict[str, Any]:
    """Return an lm15 Message as a chat message."""
    from dspy._vendor.lm15 import serde  # DSPy 3.5

    if all(part.type == "text" for part in message.parts):
        return {"role": message.role, "content": "".join(part.text for part in message.parts)}
    parts = [serde.part_to_dict(part) for part in message.parts]
    return {"role": message.role, "content": [chat_block(part) or part for part in parts]}


# DSPy's types in a text: JSON between two marks.
# DSPy 3.4: [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO..."}}]
# DSPy 3.5: [{"type": "image", "media_type": "image/png", "data": "iVBO..."}]

TYPE_MARKER: str = base_type.CUSTOM_TYPE_START_IDENTIFIER
_END: str = base_type.CUSTOM_TYPE_END_IDENTIFIER
_MARKED = re.compile(f"{re.escape(TYPE_MARKER)}(.*?){re.escape(_END)}", re.DOTALL)


def with_blocks(message: dict[str, Any]) -> dict[str, Any]:
    """Return a user's message with content blocks instead of marked text."""
    text = message["content"]
    if message["role"] != "user" or not isinstance(text, str) or TYPE_MARKER not in text:
        return message
    blocks: list[dict[str, Any]] = []
    for number, piece in enumerate(_MARKED.split(text)):
        if number % 2:
            blocks += _blocks_in(piece.strip())
        elif piece:
            blocks.append({"type": "text", "text": piece})
    return {**message, "content": blocks}


def _blocks_in(payload: str) -> list[dict[str, Any]]:
    """Return the blocks between two marks; what is no list of JSON stays a text."""
    for text in (payload, f'"{payload}"'):  # in JSON of a list or a model, it is escaped once more
        with suppress(ValueError):
            items = json.loads(text)
            items = json.loads(items) if isinstance(items, str) else items
            if isinstance(items, list):
                return [chat_block(item) or {"type": "text", "text": str(item)} for item in items]
    return [{"type": "text", "text": payload}]


_MEDIA = frozenset({"image", "audio", "document", "video", "binary"})
_SOURCES = frozenset({"data", "url", "file_id"})
_FORMATS = {"mpeg": "mp3"}
"""Subtypes of audio that have another name in OpenAI's chat completions."""


def chat_block(item: object) -> dict[str, Any] | None:
    """Return what DSPy wrote of a value as a content block of a chat message; None if it is no object."""
    if not isinstance(item, dict):
        return None
    kind = item.get("type")
    if kind not in _MEDIA or _SOURCES.isdisjoint(item):
        return item  # a chat block: DSPy 3.4
    mime = item.get("media_type") or "application/octet-stream"
    if kind == "audio" and "data" in item:
        subtype = mime.partition("/")[2]
        audio = {"data": item["data"], "format": _FORMATS.get(subtype, subtype)}
        return {"type": "input_audio", "input_audio": audio}
    if "file_id" in item:
        return {"type": "file", "file": {"file_id": item["file_id"]}}
    address = item["url"] if "url" in item else f"data:{mime};base64,{item['data']}"
    if kind == "image":
        detail = {"detail": item["detail"]} if item.get("detail") else {}
        return {"type": "image_url", "image_url": {"url": address, **detail}}
    return {"type": "file", "file": {"file_data": address}}


class _NamedFile(dspy.File):
    """A `dspy.File` that says its name, which DSPy 3.5 does not send, and no type that nobody stated."""

    def format(self) -> Any:
        """Return it as DSPy 3.4 writes it."""
        members = {key: value for key, value in self if value}
        return f"{TYPE_MARKER}{json.dumps([{'type': 'file', 'file': members}], ensure_ascii=False)}{_END}"


def with_file_names(value: Any) -> Any:
    """Return a value whose files are written with their names."""
    if not IS_TYPED:  # DSPy 3.4 writes them
        return value
    if isinstance(value, dspy.File):
        return _NamedFile.model_construct(**dict(value))
    if type(value) in (list, tuple):
        return type(value)(map(with_file_names, value))
    if type(value) is dict:
        return {key: with_file_names(part) for key, part in value.items()}
    if isinstance(value, pydantic.BaseModel) and not isinstance(value, dspy.Type):
        return value.model_copy(update={key: with_file_names(part) for key, part in value})
    return value


def plain(value: Any) -> Any:
    """Return an object of a provider's SDK as plain JSON."""
    fields = dict(value) if isinstance(value, pydantic.BaseModel) else value
    if isinstance(fields, dict):
        return {key: plain(item) for key, item in fields.items()}
    return [plain(item) for item in fields] if isinstance(fields, (list, tuple)) else fields
