"""Read one recorded answer with one library, over HTTP, as a program of that library reads it.

Each reader asks the replaying server with the tools of the recorded request, and returns the calls and the
text that its library gives to the program. No reader runs a tool. `python -m benchmarks.board.readers` is a
worker: a task as a line of JSON in, what was read as a line of JSON out.
"""

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

QUESTION = "Go on."
Task = dict[str, Any]
Read = dict[str, Any]


def read(calls: list[tuple[str | None, str, Any]], text: str | None) -> Read:
    """Return what was read."""
    return {"calls": [{"id": i, "name": n, "args": a} for i, n, a in calls], "text": text or None}


# --- the official SDKs


def sdk(task: Task) -> Read:
    """Read with the provider's own SDK."""
    return SDKS[task["wire"]](task)


def _openai_client(task: Task) -> Any:
    import openai

    return openai.OpenAI(base_url=task["base"], api_key="x", max_retries=0)


def _openai_chat(task: Task) -> Read:
    tools: Any = [{"type": "function", "function": tool} for tool in task["tools"]]
    asked: Any = {"model": task["model"], "messages": [{"role": "user", "content": QUESTION}], "tools": tools}
    if not tools:
        asked.pop("tools")
    client = _openai_client(task)
    if task["stream"]:
        with client.chat.completions.stream(**asked) as stream:
            message = stream.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(**asked).choices[0].message
    calls = [(c.id, c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or ()]
    return read(calls, message.content)


def _openai_responses(task: Task) -> Read:
    tools: Any = [{"type": "function", "strict": False, **tool} for tool in task["tools"]]
    asked: Any = {"model": task["model"], "input": QUESTION, "tools": tools}
    client = _openai_client(task)
    if task["stream"]:
        with client.responses.stream(**asked) as stream:
            response = stream.get_final_response()
    else:
        response = client.responses.create(**asked)
    calls = [
        (item.call_id, item.name, json.loads(item.arguments))
        for item in response.output
        if item.type == "function_call"
    ]
    return read(calls, response.output_text)


def _anthropic(task: Task) -> Read:
    import anthropic

    client = anthropic.Anthropic(base_url=task["url"], api_key="x", max_retries=0)
    tools = [
        {"name": t["name"], "description": t["description"] or "", "input_schema": t["parameters"]}
        for t in task["tools"]
    ]
    asked: Any = {
        "model": task["model"],
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": QUESTION}],
        "tools": tools,
    }
    if task["stream"]:
        with client.messages.stream(**asked) as stream:
            message: Any = stream.get_final_message()
    else:
        message = client.messages.create(**asked)
    calls = [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
    return read(calls, "".join(block.text for block in message.content if block.type == "text"))


def _gemini(task: Task) -> Read:
    from google import genai

    options: Any = {"base_url": task["url"]}
    client = genai.Client(api_key="x", http_options=options)
    functions = [
        {"name": t["name"], "description": t["description"] or "", "parameters_json_schema": t["parameters"]}
        for t in task["tools"]
    ]
    config: Any = {"automatic_function_calling": {"disable": True}}
    if functions:
        config["tools"] = [{"function_declarations": functions}]
    asked: Any = {"model": task["model"], "contents": QUESTION, "config": config}
    if task["stream"]:
        chunks: Any = [*client.models.generate_content_stream(**asked)]
    else:
        chunks = [client.models.generate_content(**asked)]
    parts = [part for chunk in chunks for each in chunk.candidates or () for part in _parts(each)]
    calls = [
        (p.function_call.id, p.function_call.name, p.function_call.args) for p in parts if p.function_call
    ]
    return read(calls, "".join(part.text for part in parts if part.text and not part.thought))


def _parts(candidate: Any) -> list[Any]:
    return (candidate.content.parts if candidate.content else None) or []


SDKS: dict[str, Callable[[Task], Read]] = {
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}


# --- LangChain


def langchain(task: Task) -> Read:
    """Read with LangChain's chat model for the provider."""
    model = _langchain_model(task)
    tools = [
        {"type": "function", "function": {**t, "description": t["description"] or t["name"]}}
        for t in task["tools"]
    ]
    bound = model.bind_tools(tools) if tools else model
    if task["stream"]:
        message: Any = None
        for chunk in bound.stream(QUESTION):
            message = chunk if message is None else message + chunk
    else:
        message = bound.invoke(QUESTION)
    bad = message.invalid_tool_calls
    if bad:
        raise ValueError(f"invalid_tool_calls: {bad}")  # the message names them as bad
    calls = [(call["id"], call["name"], call["args"]) for call in message.tool_calls]
    text = message.text() if callable(message.text) else message.text
    return read(calls, str(text))


def _langchain_model(task: Task) -> Any:
    if task["wire"].startswith("openai"):
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(
            model=task["model"],
            base_url=task["base"],
            api_key="x",
            max_retries=0,
            use_responses_api=task["wire"] == "openai-responses",
        )
    if task["wire"] == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model=task["model"], base_url=task["url"], api_key="x", max_retries=0)
    from langchain_google_genai import ChatGoogleGenerativeAI

    return ChatGoogleGenerativeAI(
        model=task["model"], google_api_key="x", base_url=task["url"], max_retries=1, transport="rest"
    )


# --- pydantic-ai


def pydantic_ai(task: Task) -> Read:
    """Read with pydantic-ai's model for the provider."""
    from pydantic_ai.direct import model_request_stream_sync, model_request_sync
    from pydantic_ai.messages import ModelRequest, TextPart, ToolCallPart
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    tools = [
        ToolDefinition(
            name=t["name"], description=t["description"], parameters_json_schema=t["parameters"] or {}
        )
        for t in task["tools"]
    ]
    asked: Any = {
        "model_settings": {"max_tokens": 1000},
        "model_request_parameters": ModelRequestParameters(function_tools=tools, allow_text_output=True),
    }
    messages: Any = [ModelRequest.user_text_prompt(QUESTION)]
    model = _pydantic_ai_model(task)
    if task["stream"]:
        with model_request_stream_sync(model, messages, **asked) as stream:
            for _ in stream:
                pass
            response = stream.response
    else:
        response = model_request_sync(model, messages, **asked)
    calls = [
        (part.tool_call_id, part.tool_name, part.args_as_dict())
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    return read(calls, "".join(part.content for part in response.parts if isinstance(part, TextPart)))


def _pydantic_ai_model(task: Task) -> Any:
    if task["wire"].startswith("openai"):
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        kind = OpenAIChatModel if task["wire"] == "openai-chat" else OpenAIResponsesModel
        return kind(task["model"], provider=OpenAIProvider(base_url=task["base"], api_key="x"))
    if task["wire"] == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(task["model"], provider=AnthropicProvider(base_url=task["url"], api_key="x"))
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(task["model"], provider=GoogleProvider(base_url=task["url"], api_key="x"))


READERS: dict[str, Callable[[Task], Read]] = {
    "pydantic-ai": pydantic_ai,
    "LangChain": langchain,
    "the SDK": sdk,
}


def outcome(reader: Callable[[Task], Read], task: Task) -> Read:
    """Return what a reader read, or its error."""
    try:
        return reader(task)
    except BaseException as error:  # noqa: BLE001  (it is the outcome)
        while getattr(error, "exceptions", None):  # a group
            error = error.exceptions[0]
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def main() -> None:
    """Answer tasks until there are no more."""
    warnings.simplefilter("ignore")
    answers = sys.stdout
    sys.stdout = sys.stderr  # what a library prints is no answer
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps(outcome(READERS[task["reader"]], task), default=str), file=answers, flush=True)


if __name__ == "__main__":
    main()
