"""What the system text says of the tools of a request: their instructions, and for an agent their names.

`dspy.ReActV2` names its tools when the agent is made. A toolset is resolved for each request.
"""

from typing import Any

import dspy
from dspy.signatures.signature import Signature

from sigadapt.adapters.request.canonical import Change
from sigadapt.dspy_boundary.internals import SUBMIT
from sigadapt.schemas.json_values import is_array
from sigadapt.signatures.tool_decls import ResolvableTools, ToolDecls


def with_tool_names(
    messages: list[dict[str, Any]], tools: object, decls: ToolDecls
) -> tuple[list[dict[str, Any]], tuple[Change, ...]]:
    """Return the messages with the names of these tools, and the change, if the agent has toolsets."""
    if not is_array(tools) or not any(isinstance(tool, ResolvableTools) for tool in tools):
        return messages, ()
    agent_tools = [tool for tool in tools if isinstance(tool, dspy.Tool)]
    sentence = _sentence([str(tool.name) for tool in agent_tools])
    content = messages[0]["content"] if messages else None
    if not isinstance(content, str) or sentence not in content:
        return messages, ()
    content = content.replace(sentence, _sentence([decl.name for decl in decls.tools]))
    why = "the agent's prompt names the tools of this request, not its toolsets"
    return [{**messages[0], "content": content}, *messages[1:]], (Change("/messages/0", "lowered", why),)


def with_last_question(messages: list[dict[str, Any]], signature: type[Signature]) -> list[dict[str, Any]]:
    """Return the messages with a question at the end, if words of the agent's model are there.

    Anthropic, Gemini and Mistral want a message of the user or a result to answer.
    """
    if not messages or messages[-1]["role"] != "assistant":
        return messages
    outputs = ", ".join(f"`{name}`" for name in signature.output_fields)
    return [*messages, {"role": "user", "content": f"Call `{SUBMIT}` with {outputs}."}]


def with_instructions(messages: list[dict[str, Any]], decls: ToolDecls) -> list[dict[str, Any]]:
    """Return the messages with the instructions of the tools that are offered, each once."""
    offered = [
        decl for decl in decls.tools if decl.instructions and not (decl.extras or {}).get("defer_loading")
    ]
    texts = list(dict.fromkeys(decl.instructions for decl in offered))
    if not texts:
        return messages
    rest = messages
    if messages and messages[0]["role"] == "system":
        texts.insert(0, messages[0]["content"])
        rest = messages[1:]
    return [{"role": "system", "content": "\n\n".join(texts)}, *rest]


def _sentence(names: list[str]) -> str:
    # As `ReActV2._make_react_signature` writes it.
    return f"The available tools are: {', '.join(f'`{name}`' for name in names)}."
