"""Ollama's native chat API (`/api/chat`).

Sources: Ollama's API documentation and the types of its Python SDK.

Reasoning is `message.thinking`. Arguments are objects. Older servers send calls without an id. In a stream,
each event holds whole calls, and the event with `done: true` is the last.
"""

from collections.abc import Iterable
from typing import Any

from sigadapt.json_values import Json, is_array, is_object
from sigadapt.providers import openai_chat
from sigadapt.providers.provider import Provider
from sigadapt.providers.route import (
    ChoiceRules,
    DocumentedMembers,
    ResultRules,
    Route,
    RouteModels,
    ToolRules,
    TurnRules,
)
from sigadapt.providers.usage import AnswerUsage, answer_usage, count_in
from sigadapt.providers.wire.content_blocks import PICTURES, chat_image, only
from sigadapt.providers.wire.reading import Reading, finish_word, mark_last_cut_off
from sigadapt.providers.wire.recorded import Recording
from sigadapt.providers.wire.values import (
    RawCall,
    an_object,
    calls_of,
    chat_call,
    decoded,
    is_text,
    join_texts,
    member_names,
    objects,
    text_of,
)

NAME = "ollama"

_SETTINGS = {"num_predict": "max_tokens"}
_OWN = frozenset(("options", "keep_alive", "think"))
_IMAGES = {"/9j/": "jpeg", "iVBOR": "png", "R0lG": "gif", "UklG": "webp"}
"""How the base64 of an image begins, which comes without its type."""


_MESSAGE_MEMBERS = frozenset(
    ("role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id", "name")
)
_MEMBERS = DocumentedMembers(
    body=member_names("model messages system prompt format think stream options keep_alive"),
    tool_lists=member_names("tools"),
    tool_groups=member_names("function"),
    tool=member_names("type name description parameters"),
)
"""What its references document of a request and of tools."""


class Ollama(Provider):
    """Ollama's `/api/chat`."""

    name = NAME
    telemetry = "ollama"
    members = _MEMBERS
    arguments_as_objects = True

    def is_body(self, body: Json) -> bool:
        return "done" in body and "message" in body

    # {"done": true, "done_reason": "stop", "message": {"role": "assistant", "content": "",
    #   "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}]}}
    # https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion
    def read(self, body: Json) -> list[Reading]:
        message = an_object(body.get("message"))
        finish = finish_word(body.get("done_reason"), {})
        raw_calls = [chat_call(call) for call in calls_of(message.get("tool_calls"))]
        calls: list[RawCall] = [(call_id, name, decoded(arguments)) for call_id, name, arguments in raw_calls]
        text = text_of(message.get("content"))
        thinking = text_of(message.get("thinking"))
        return [Reading(text, thinking, mark_last_cut_off(calls, finish), finish)]

    # {"prompt_eval_count": 26, "eval_count": 298, "prompt_eval_duration": 325953000, ...}
    def usage(self, body: Json) -> AnswerUsage | None:
        counts = {name: body[name] for name in body if name.endswith(("_count", "_duration"))}
        read = count_in(counts, "prompt_eval_count")
        return answer_usage(counts, read=read, written=count_in(counts, "eval_count"))

    def assemble(self, events: Iterable[Json]) -> Json:
        body: Json = {"done": False}
        whole: Json = {}
        messages: list[Json] = []
        for event in events:
            body.update(event)
            messages.append(an_object(event.get("message")))
            whole.update(messages[-1])
        calls: list[Any] = [call for message in messages for call in calls_of(message.get("tool_calls"))]
        for key in ("content", "thinking"):
            whole[key] = join_texts(text_of(message.get(key)) for message in messages)
        return {**body, "message": {**whole, "tool_calls": calls}}

    def is_request(self, body: Json) -> bool:
        messages = objects(body.get("messages"))
        calls = [call for message in messages for call in objects(message.get("tool_calls"))]
        has_objects = any(is_object(an_object(call.get("function")).get("arguments")) for call in calls)
        has_own = any("tool_name" in message or "images" in message for message in messages)
        return is_array(body.get("messages")) and (has_own or has_objects or not _OWN.isdisjoint(body))

    # {"model": "qwen3", "messages": [{"role": "user", "content": "What is it?", "images": ["iVBO..."]},
    #   {"role": "tool", "tool_name": "get_weather", "content": "18 C"}], "options": {"num_predict": 99}}
    # https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion
    def request(self, body: Json) -> Recording:
        record = Recording(NAME, _image)
        record.tools = [*objects(body.get("tools"))]
        record.set({**body, **an_object(body.get("options"))}, _SETTINGS, ("messages", "tools", "options"))
        for place, message in enumerate(objects(body["messages"])):
            where = ("messages", place)
            role = message.get("role")
            content = message.get("content")
            record.lose_members(message, _MESSAGE_MEMBERS, where)
            if role == "system":
                record.instruct(content, where)
            elif role == "assistant":
                record.turns += self.read({"message": message})
            elif role == "tool":
                name = message.get("tool_name") or message.get("name")
                record.tell((message.get("tool_call_id"), name), content, where, failed=None)
            else:
                images: Any = message.get("images")
                question: list[Any] = [content] if content else []
                if is_array(images):
                    question += ({"image": data} for data in images)
                record.ask(question, where)
        return record


def _image(block: Json) -> Json | None:
    data = block.get("image")
    kind = next((kind for head, kind in _IMAGES.items() if is_text(data) and data.startswith(head)), "png")
    return {"type": "image", "mime_type": f"image/{kind}", "data": data} if is_text(data) else None


def _caveat(request: Json) -> str:
    if not request.get("tools"):
        return ""
    return "LiteLLM writes tools into the prompt of ollama/ models; use the native engine, or ollama_chat/"


_RESULTS = ResultRules(behind=chat_image, images=PICTURES, sources=frozenset({"data"}))
_NO_CHOICES = ChoiceRules(forms=frozenset(), parallel=False, formats_beside_tools=False)
_OVER_LITELLM = Route(
    NAME,
    "litellm",
    as_chat=True,
    models=RouteModels(prefixes=frozenset({"ollama_chat"})),
    turns=TurnRules(
        takes=frozenset({openai_chat.NAME}), reasoning_field="reasoning_content", writes_arguments=True
    ),
    results=_RESULTS,
    choices=_NO_CHOICES,
    # LiteLLM leaves out files in silence, and fails at audio with an error about tokens (litellm 1.106).
    question_block=only("text", "image_url"),
)
_IN_THE_PROMPT = _OVER_LITELLM._replace(models=RouteModels(prefixes=frozenset({NAME})), caveat=_caveat)
# lm15 uses Ollama's OpenAI-compatible API, which accepts a tool choice and ignores it.
_COMPATIBLE = openai_chat.PROVIDER.routes[0]._replace(
    models=RouteModels(server=NAME), results=_RESULTS, choices=_NO_CHOICES, tools=ToolRules()
)

PROVIDER = Ollama(_OVER_LITELLM, _IN_THE_PROMPT, _COMPATIBLE)
