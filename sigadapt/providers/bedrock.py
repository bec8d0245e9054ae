"""Amazon Bedrock's Converse and ConverseStream, as boto3 returns them.

Sources: the service model of `bedrock-runtime` that botocore ships (ConverseResponse, ConverseStreamOutput
and its exceptions), and recorded answers.

A `toolUse` block is a call, except with the `type` `server_tool_use`: Bedrock ran that tool itself. Some
models send the `type` `tool_use`, which is a call. Reasoning is `reasoningContent.reasoningText.text`. The
text of `citationsContent` counts as text. In a stream, only tool blocks have a start event; a block ends with
its `contentBlockStop`, or with `messageStop`.
"""

import mimetypes
from collections.abc import Iterable

from sigadapt.json_values import Json, is_array, is_object
from sigadapt.providers import anthropic
from sigadapt.providers.provider import Provider
from sigadapt.providers.route import (
    SIGNED_ID,
    ChoiceRules,
    DocumentedMembers,
    IdentifierRules,
    ResultRules,
    Route,
    RouteModels,
    ToolRules,
    TurnRules,
)
from sigadapt.providers.wire.content_blocks import PDF, PICTURES, chat_block, only
from sigadapt.providers.wire.reading import Part, Reading, finish_word, text_part, with_reported_call
from sigadapt.providers.wire.recorded import PLAIN_MESSAGE, Recording, Where
from sigadapt.providers.wire.stream_parts import Block, Blocks
from sigadapt.providers.wire.values import (
    JsonText,
    an_object,
    content_parts,
    decoded,
    is_text,
    join_texts,
    json_text,
    member_names,
    objects,
    one_call_each,
    text_of,
    usual_arguments,
)

NAME = "bedrock-converse"

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "malformed_model_output": "error",
}
_SETTINGS = {"maxTokens": "max_tokens", "topP": "top_p", "stopSequences": "stop", "modelId": "model"}
_OWN = frozenset(("toolConfig", "inferenceConfig", "modelId", "additionalModelRequestFields"))
_BLOCKS = frozenset(
    ("text", "toolUse", "toolResult", "image", "document", "video", "reasoningContent", "cachePoint")
)
_EVENTS = {"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"}


def _is_call(block: Json) -> bool:
    use = block.get("toolUse")
    return isinstance(use, dict) and an_object(use).get("type") != "server_tool_use"


def _whole_block(block: Block, *, ended: bool) -> Json:
    """Return the content block that a streamed block makes."""
    start = block.start.get("toolUse")
    pieces = [use.get("input") for use in objects(block.pieces("toolUse"))]
    if is_object(start) or any(piece is not None for piece in pieces):
        use = an_object(start)
        arguments = JsonText(json_text(pieces)) or use.get("input")
        return {"toolUse": {**use, "input": block.arguments(arguments, ended=ended)}}
    thoughts = objects(block.pieces("reasoningContent"))
    if thoughts:
        ciphertexts = [each["redactedContent"] for each in thoughts if each.get("redactedContent")]
        if ciphertexts:
            return {"reasoningContent": {"redactedContent": ciphertexts[0]}}
        text, signature = (join_texts(each.get(key) for each in thoughts) for key in ("text", "signature"))
        return {"reasoningContent": {"reasoningText": {"text": text or "", "signature": signature}}}
    text = join_texts(block.pieces("text"))
    if citations := block.pieces("citation"):
        return {"citationsContent": {"content": [{"text": text or ""}], "citations": citations}}
    return {"text": text}


_MEMBERS = DocumentedMembers(
    body=member_names("""
        modelId messages system inferenceConfig outputConfig performanceConfig toolChoice
    """),
    tool_lists=member_names("tools toolConfig additionalModelRequestFields"),
    tool_groups=member_names("tools toolSpec"),
    tool=member_names("""
        name description inputSchema outputSchema strict cachePoint toolChoice any auto tool thinking
    """),
)
"""What its references document of a request and of tools."""


class BedrockConverse(Provider):
    """Converse."""

    name = NAME
    telemetry = "aws.bedrock"
    members = _MEMBERS
    arguments_as_objects = True
    errors = frozenset((
        "internalServerException", "modelStreamErrorException", "serviceUnavailableException",
        "throttlingException", "validationException",
    ))  # fmt: skip

    def is_body(self, body: Json) -> bool:
        return "stopReason" in body or "message" in an_object(body.get("output"))

    # {"stopReason": "tool_use", "output": {"message": {"role": "assistant", "content": [
    #   {"text": "Let me look."},
    #   {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Paris"}}}]}}}
    # https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
    def read(self, body: Json) -> list[Reading]:
        message = an_object(an_object(body.get("output")).get("message"))
        blocks = one_call_each(content_parts(message.get("content")), "toolUse", "input")
        finish = finish_word(body.get("stopReason"), _FINISH)
        reading = self.candidate([*map(self.part_of, blocks)], finish)
        # Converse says nothing of a call that it withholds but the stop reason.
        # https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
        calls = with_reported_call(reading.calls, finish, None)
        return [reading._replace(calls=calls, state=None)]  # LiteLLM keeps none of Converse's blocks

    def part_of(self, block: Json) -> Part:
        if _is_call(block):
            use: Json = block["toolUse"]
            call = use.get("toolUseId"), use.get("name"), usual_arguments(decoded(use.get("input")), use)
            return Part("call", "", block, text=block.get("text"), call=call)
        thought = an_object(an_object(block.get("reasoningContent")).get("reasoningText")).get("text")
        text = block.get("text")
        if "citationsContent" in block:  # an answer that cites a document has its text there
            text = text_of(an_object(block["citationsContent"]).get("content"))
        return text_part(block, text, thinking=thought)

    def is_event(self, event: Json) -> bool:
        return not _EVENTS.isdisjoint(event)

    # {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t1", ...}}}}
    # {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{\"ci"}}}}
    # https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
    def assemble(self, events: Iterable[Json]) -> Json:
        message: Json = {"role": "assistant"}
        body: Json = {"output": {"message": message}, "stopReason": None}
        blocks = Blocks()
        for event in events:
            kind = next((key for key in event if key in _EVENTS), "metadata")
            content = an_object(event.get(kind))
            index = content.get("contentBlockIndex")
            if kind == "messageStart":
                message.update(content)
            elif kind == "contentBlockStart":
                blocks.open(index, content.get("start"))
            elif kind == "contentBlockDelta":
                blocks.add(index, content.get("delta"))
            elif kind == "contentBlockStop":
                blocks.at(index).ended = True
            else:  # messageStop and metadata
                body.update(content)
        ended = is_text(body.get("stopReason"))
        message["content"] = [_whole_block(block, ended=ended) for block in blocks.all]
        return body

    # {"usage": {"inputTokens": 675, "cacheReadInputTokens": 0, "cacheWriteInputTokens": 0,
    #   "outputTokens": 84, "totalTokens": 759}}
    # https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html
    read_counts = "inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"
    written_counts = ("outputTokens",)
    cached_count = "cacheReadInputTokens"

    def is_request(self, body: Json) -> bool:
        messages = objects(body.get("messages"))
        blocks = [block for message in messages for block in objects(message.get("content"))]
        has_own = any("type" not in block and block.keys() & _BLOCKS for block in blocks)
        return is_array(body.get("messages")) and (has_own or not _OWN.isdisjoint(body))

    # {"modelId": "amazon.nova-pro-v1:0", "system": [{"text": "Be brief."}], "messages": [
    #   {"role": "user", "content": [{"text": "Weather?"}]}], "toolConfig": {"tools": [{"toolSpec": {...}}]}}
    # https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
    def request(self, body: Json) -> Recording:
        record = Recording(NAME, _part)
        config = an_object(body.get("toolConfig"))
        record.tools = [tool for tool in objects(config.get("tools")) if "cachePoint" not in tool]
        left_out = ("messages", "system", "toolConfig", "inferenceConfig")
        record.set({**body, **an_object(body.get("inferenceConfig"))}, _SETTINGS, left_out)
        record.set({"tool_choice": config.get("toolChoice")}, {})
        instructions = objects(body.get("system"))
        record.instruct([block for block in instructions if "text" in block], ("system",))
        _lose_blocks(record, instructions, ("system",))
        for place, message in enumerate(objects(body["messages"])):
            where = ("messages", place, "content")
            record.lose_members(message, PLAIN_MESSAGE, ("messages", place))
            blocks = content_parts(message.get("content"))
            if message.get("role") == "assistant":
                record.turns += self.read({"output": {"message": message}})
                _lose_blocks(record, blocks, where)
                continue
            for at, block in enumerate(blocks):
                # {"toolResult": {"toolUseId": "tooluse_Lb2N...", "status": "success", "content": [
                #   {"text": "John lives at 123 Main St, Springfield"}]}}
                result = an_object(block.get("toolResult"))
                if result:
                    call = (result.get("toolUseId"), None)
                    failed = result.get("status") == "error"
                    record.tell(call, result.get("content"), (*where, at), failed=failed)
                elif "cachePoint" in block and "text" not in block:
                    _lose_blocks(record, [block], where, at)
                else:
                    record.ask(block, (*where, at))
        return record


def _lose_blocks(record: Recording, blocks: Iterable[Json], where: Where, start: int = 0) -> None:
    """Record the blocks that are neither a text nor a call."""
    for at, block in enumerate(blocks, start):
        if not _is_call(block) and "text" not in block:
            kind = next(iter(block), "an empty block")
            record.lose((*where, at), f"{kind!r} has no neutral form, and is left out")


# {"image": {"format": "jpeg", "source": {"bytes": "/9j/4AAQ..."}}}
def _part(block: Json) -> Json | None:
    """Return a block of a question or a result as a part; None for a video or a file in a bucket."""
    if "json" in block:
        return {"type": "json", "value": block["json"]}
    kind = "image" if "image" in block else "document"
    file = an_object(block.get(kind))
    data = an_object(file.get("source")).get("bytes")
    form = file.get("format")
    if not is_text(data) or not is_text(form):
        return None
    name = {"name": file["name"]} if is_text(file.get("name")) else {}
    mime = f"image/{form}" if kind == "image" else mimetypes.guess_type(f"file.{form}")[0] or "text/plain"
    return {"type": "image" if kind == "image" else "file", "mime_type": mime, "data": data, **name}


def result_block(part: Json, model: str) -> Json | None:
    """Return a part of a result as LiteLLM takes it in a tool message; None if it does not reach Bedrock."""
    # LiteLLM leaves out audio without a word. Source: the Converse reference, ToolResultContentBlock (text,
    # image, document), read 2026-11-21.
    return None if part["type"] == "audio" else chat_block(part, model)


def _caveat(request: Json) -> str:
    """Return that LiteLLM reads Claude's redacted thinking and does not write it (measured on 1.106)."""
    states = (message["turn"].state for message in request["messages"] if message.get("turn") is not None)
    blocks = (block for state in states if state is not None for block in state["blocks"])
    has_redacted = any(block.get("type") == "redacted_thinking" for block in blocks)
    return "LiteLLM leaves out redacted_thinking on the way to Bedrock" if has_redacted else ""


_DOCUMENTS = (
    rf"{PDF}|text/(plain|html|csv|markdown)|application/(msword|vnd\.ms-excel"
    r"|vnd\.openxmlformats-officedocument\.(wordprocessingml\.document|spreadsheetml\.sheet))"
)

PROVIDER = BedrockConverse(
    Route(
        NAME,
        "litellm",
        as_chat=True,
        models=RouteModels(prefixes=frozenset({"bedrock"})),
        turns=TurnRules(takes=frozenset({anthropic.NAME}), writes_arguments=True, takes_instructions=False),
        # Source: ImageBlock and DocumentBlock of the Converse reference, read 2026-11-21.
        # LiteLLM downloads what a URL leads to, and fails at the id of a file.
        results=ResultRules(
            inside=result_block, images=PICTURES, files=_DOCUMENTS, sources=frozenset({"data"})
        ),
        choices=ChoiceRules(
            forms=frozenset({"auto", "required", "named"}), parallel=False, forces_with_thinking=False
        ),
        tools=ToolRules(
            # LiteLLM puts a `cachePoint` behind the tool. Bedrock takes `strict`; LiteLLM sends it to some
            # models only. Sources: ToolSpecification of botocore 1.44, litellm 1.106; read on 2026-11-21.
            fields=frozenset({"cache_control"}),
            # `ToolJsonSchemaBlock` of litellm 1.106; references to `$defs` are replaced by what they name.
            root_pattern=r"type|properties|required|additionalProperties|\$defs",
        ),
        ids=IdentifierRules(
            rf"(?!.*{SIGNED_ID})[a-zA-Z0-9_.:-]+", 64
        ),  # LiteLLM changes any other in silence
        # `_bedrock_converse_messages_pt` of litellm 1.106 leaves out all other kinds in silence.
        question_block=only("text", "image_url", "file", "document"),
        caveat=_caveat,
    )
)
