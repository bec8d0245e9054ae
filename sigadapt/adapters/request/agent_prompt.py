"""The sentence of an agent's prompt that names its tools, with the tools of the request.

`dspy.ReActV2` writes the sentence when the agent is made. A toolset is resolved for each request.
"""

from typing import Any

import dspy

from sigadapt.adapters.request.canonical import Change
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


def _sentence(names: list[str]) -> str:
    # As `ReActV2._make_react_signature` writes it.
    return f"The available tools are: {', '.join(f'`{name}`' for name in names)}."
