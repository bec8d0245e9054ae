"""The tools of a program, by which a chat goes on: those of the agent in it that waits."""

from typing import Any

import dspy

from sigadapt.schemas.json_values import is_mapping

_ADDED = ("submit", "finish")


def name_of_agent(program: dspy.Module, agent: object) -> str | None:
    """Return the name of an agent inside of a program, for other processes; None if it isn't there."""
    names = [name for name, module in program.named_sub_modules() if module is agent]
    return names[0] if names else None


def tools_of_program(program: dspy.Module, agent_name: str | None) -> Any:
    """Return the tools of an agent inside of a program; of the first one that has tools, if there is none."""
    modules: dict[str, Any] = dict(program.named_sub_modules())  # the program itself is the first
    if agent_name in modules:
        return tools_of_module(modules[agent_name])
    for module in modules.values():
        tools = tools_of_module(module)
        if tools:
            return tools
    return []


def tools_of_module(module: Any) -> Any:
    """Return the tools of a module, without those that DSPy's agents add; `[]` for one without."""
    tools: Any = getattr(module, "tools", None)
    if is_mapping(tools):
        return [tool for name, tool in tools.items() if name not in _ADDED]
    return [] if tools is None else tools
