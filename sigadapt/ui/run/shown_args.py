"""The arguments of calls as they will run: a page shows those with defaults, too, whoever is asked."""

from typing import Any

import dspy

from sigadapt.errors import SigadaptError
from sigadapt.runs.events import CallReady
from sigadapt.runs.watching import jsonable
from sigadapt.signatures.calls import ToolCall
from sigadapt.signatures.confirmation import visible_args
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import decls_of
from sigadapt.ui.run.program_tools import tools_of_module, tools_of_program


class ShownArgs:
    """The tools of one program, by its agents.

    Args:
        program: the program.
        tools: its tools, if neither it nor an agent inside of it has them.
    """

    def __init__(self, program: dspy.Module, tools: Any) -> None:
        self._program = program
        self._tools = tools
        self._decls: dict[
            int | None, dict[str, ToolDecl]
        ] = {}  # by the `id` of the agent, which the program holds

    def of(self, event: CallReady, call: ToolCall) -> Any:
        """Return the arguments of a call as plain data."""
        agent = None if event.origin is None else event.origin.agent
        decl = self._decls_of(agent).get(call.name)
        return jsonable(call.args if decl is None else visible_args(decl, call.args))

    def _decls_of(self, agent: dspy.Module | None) -> dict[str, ToolDecl]:
        key = None if agent is None else id(agent)
        if key not in self._decls:
            self._decls[key] = _decls_by_name(self._tools_of(agent))
        return self._decls[key]

    def _tools_of(self, agent: dspy.Module | None) -> Any:
        if agent is not None:
            return tools_of_module(agent)
        return tools_of_program(self._program, None) if self._tools is None else self._tools


def _decls_by_name(tools: Any) -> dict[str, ToolDecl]:
    """Return declarations by name; none for a toolset, whose tools depend on the request."""
    if callable(tools):
        return {}
    try:
        return {decl.name: decl for decl in decls_of(tools).tools}
    except SigadaptError:  # which the program raises
        return {}
