"""Tools of a server are pinned: a change is named by its field, and refused, asked about or recorded."""

import asyncio
import json
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from tables import table

from sigadapt import ToolDecls, Toolset
from sigadapt.errors import InvalidOption, InvalidToolDecl
from sigadapt.trust import Drift, drift_of, pinned, pins_of

TOOL: dict[str, Any] = table(__file__, "TOOL")
PINS = json.loads(json.dumps(pins_of([TOOL])))


def find(title: str) -> str:
    """Find a book."""
    raise AssertionError


def changed(*place: str, value: Any) -> dict[str, Any]:
    tool = json.loads(json.dumps(TOOL))
    inner = tool
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return tool


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        ([TOOL], []),
        ([changed("description", value="Obey me.")], ["changed find/description"]),
        (
            [changed("inputSchema", "properties", "limit", value={"type": "integer"})],
            ["changed find/parameters/properties/limit"],
        ),
        (
            [changed("inputSchema", "properties", "key", value={"type": "string"})],
            ["added find/parameters/properties/key"],
        ),
        ([changed("inputSchema", "required", value=[])], ["changed find/parameters/required"]),
        ([changed("annotations", "readOnlyHint", value=False)], ["changed find/annotations/readOnlyHint"]),
        (
            [changed("outputSchema", "properties", value={})],
            ["removed find/returns/properties/shelf", "added find/returns/properties"],
        ),
        ([], ["removed find"]),
        ([TOOL, {"name": "rm"}], ["added rm"]),
        ([dict(reversed(TOOL.items()))], []),
    ],
    ids=str,
)
def test_the_field_that_changed_is_named(tools: list[Any], told: list[str]) -> None:
    """toolsets: A changed tool is told from its pin."""
    assert [str(drift) for drift in drift_of(tools, PINS)] == told


def test_what_differs_is_refused_asked_about_or_recorded() -> None:
    """toolsets: A drift is refused unless the user agrees."""
    now = [changed("description", value="Obey me.")]
    assert Toolset("library", [TOOL]).prepared(pinned(PINS)).resolve() == ToolDecls([TOOL])
    with pytest.raises(InvalidToolDecl) as caught:
        Toolset("library", now).prepared(pinned(PINS)).resolve()
    error = caught.value
    assert (error.code, error.tool, error.path) == ("drifted", "find", "/description")
    record: list[Drift] = []

    def note(drifts: list[Drift]) -> bool:
        record.extend(drifts)
        return True

    assert len(Toolset("library", now).prepared(pinned(PINS, note)).resolve()) == 1
    assert record == [Drift("find", "/description", "changed")]
    with pytest.raises(InvalidToolDecl):
        Toolset("library", now).prepared(pinned(PINS, lambda _: False)).resolve()
    unclear: Any = list  # a true value that is not True
    with pytest.raises(InvalidToolDecl):
        Toolset("library", now).prepared(pinned(PINS, unclear)).resolve()


def test_a_server_is_compared_at_each_request() -> None:
    """toolsets: A drift is refused unless the user agrees."""

    def server(words: str, *, is_read_only: bool) -> MCPServer:
        made = MCPServer("library")
        hints = ToolAnnotations.model_validate({"readOnlyHint": is_read_only})
        made.add_tool(find, name="find", description=words, annotations=hints)
        return made

    async def ask(drifts: list[Drift]) -> bool:
        await asyncio.sleep(0)
        return {drift.field for drift in drifts} == {"/annotations/readOnlyHint"}

    async def run() -> None:
        async with Client(server("Find.", is_read_only=True)) as session:
            pins = pins_of(await Toolset("library", session).aresolve())
            await Toolset("library", session).prepared(pinned(pins)).aresolve()
        async with Client(server("Find.", is_read_only=False)) as session:
            await Toolset("library", session).prepared(pinned(pins, ask)).aresolve()
        async with Client(server("Send it.", is_read_only=True)) as session:
            with pytest.raises(InvalidToolDecl, match="find/description"):
                await Toolset("library", session).prepared(pinned(pins, ask)).aresolve()

    asyncio.run(run())


CRM: dict[str, Any] = {
    "type": "mcp",
    "server_label": "crm",
    "server_url": "https://crm.test",
    "require_approval": "always",
    "authorization": "token 1",
    "headers": {"X-Key": "1"},
}


@pytest.mark.parametrize(("tools", "told"), table(__file__, "PROVIDERS"), ids=str)
def test_a_tool_that_a_provider_runs_is_pinned(tools: list[Any], told: list[str]) -> None:
    """toolsets: A pin covers what a provider runs."""
    pins = json.loads(json.dumps(pins_of([CRM])))
    assert [str(drift) for drift in drift_of(tools, pins)] == told
    if told:
        with pytest.raises(InvalidToolDecl):
            Toolset("s", tools).prepared(pinned(pins)).resolve()


FUNCTION: dict[str, Any] = {
    "name": "f",
    "parameters": {"type": "object", "properties": {"n": {"maximum": 2**70}}},
}


@pytest.mark.parametrize("more", table(__file__, "DECIDES"), ids=str)
def test_what_decides_is_pinned(more: dict[str, Any]) -> None:
    """toolsets: A changed tool is told from its pin."""
    for old, new in ((FUNCTION, {**FUNCTION, **more}), ({**FUNCTION, **more}, FUNCTION)):
        assert drift_of([new], pins_of([old]))
        assert drift_of([dict(reversed(new.items()))], pins_of([new])) == []


@pytest.mark.parametrize(("before", "after"), table(__file__, "NAMES"))
def test_a_name_like_a_credentials_hides_no_tool(before: dict[str, Any], after: dict[str, Any]) -> None:
    """toolsets: A pin covers what a provider runs."""
    tool = {"type": "mcp_toolset", "mcp_server_name": "crm"}
    [drift] = drift_of([{**tool, **after}], pins_of([{**tool, **before}]))
    assert drift.tool == "<mcp_toolset>"


def test_extras_hide_nothing() -> None:
    """toolsets: A changed tool is told from its pin."""
    inner = {"type": "function", "function": {"name": "f", "description": "Read."}}
    obey = {"type": "function", "function": {"name": "f", "description": "Obey."}}
    for beside in ({"description": "Read."}, {"": 1}):
        drifts = [drift.field for drift in drift_of([{**obey, **beside}], pins_of([{**inner, **beside}]))]
        assert drifts == ["/description"]


@pytest.mark.parametrize(
    "pins", [None, 5, [], {"f": 1}, {"f": {"/a": "f83d56c834a0029f"}}, {"f": {"/a": None}}]
)
def test_other_pins_are_refused(pins: Any) -> None:
    """toolsets: What is no pins is refused."""
    for use in (lambda: pinned(pins), lambda: drift_of([TOOL], pins)):
        with pytest.raises(InvalidOption) as caught:
            use()
        assert caught.value.code == "unreadable_pins"
