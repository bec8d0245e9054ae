"""What a question shows beside text: content blocks as DSPy's inputs write them, as blocks of a wire.

DSPy writes an input of its types as content blocks of a chat message: `text`, `image_url`, `input_audio` and
`file` of OpenAI's chat completions, and `document` of Anthropic's Messages for `dspy.Document`. A route says
with one of these functions, or one of its own, what of them arrives. Read in dspy 3.4.1 and litellm 1.106.
"""

import base64
from collections.abc import Callable

from sigadapt.providers.wire.result_blocks import chat_block, decoded_text
from sigadapt.schemas.json_values import Json, is_object
from sigadapt.signatures.tool_results.tool_output import Part, part_of_chat


def part_of_question(block: Json) -> Part | None:
    """Return a content block of a question as a part; None if it is of no known kind or has no content."""
    return _document(block) if block.get("type") == "document" else part_of_chat(block)


def _document(block: Json) -> Part | None:
    # {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "The Earth ..."},
    #  "citations": {"enabled": true}, "title": "Astronomy", "context": "For children"}
    source = block.get("source")
    if not is_object(source):
        return None
    data = source.get("data")
    mime = source.get("media_type")
    if not isinstance(data, str) or not isinstance(mime, str):
        return None
    if source.get("type") == "text":
        head = block.get("context")
        text = f"{head}\n{data}" if isinstance(head, str) and head else data
        data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    name = {"name": block["title"]} if isinstance(block.get("title"), str) else {}
    return {"type": "file", "mime_type": mime, "data": data, **name}


def as_written(block: Json, model: str) -> Json | None:
    """Return any block as DSPy writes it, for clients and servers that take chat messages."""
    return None if block.get("type") == "file" and part_of_chat(block) is None else block


def as_part(block: Json, model: str) -> Json | None:
    """Return a block as a part without a name, as an engine of the user's takes it: in lm15's types."""
    part = part_of_question(block)
    return None if part is None else {key: value for key, value in part.items() if key != "name"}


def named_chat_block(block: Json, model: str) -> Json | None:
    """Return a block as DSPy writes it; a file with a name and as a data URI, which OpenAI asks for."""
    part = part_of_chat(block) if block.get("type") == "file" else None
    if part is None or "data" not in part:
        return as_written(block, model)
    return chat_block({**part, "type": "file"}, model)


def only(*kinds: str) -> Callable[[Json, str], Json | None]:
    """Return what lets blocks of these kinds through, and of other files the text."""

    def block_or_text(block: Json, model: str) -> Json | None:
        if block.get("type") in kinds:
            return as_written(block, model)
        text = text_of_file(block)
        return None if text is None else {"type": "text", "text": text}

    return block_or_text


def text_of_file(block: Json) -> str | None:
    """Return a file of text, a document too, as text with its name; None for any other block."""
    part = part_of_question(block)
    text = None if part is None else decoded_text(part)
    if part is None or text is None:
        return None
    return f"{part['name']}\n{text}" if part.get("name") else text
