"""Toolsets: tools that are decided when a request is made."""

import asyncio
import gc
import warnings
from collections.abc import Callable
from typing import Any, cast

import dspy
import mcp
import mcp.types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.server.mcpserver import MCPServer

from sigadapt import RequestContext, ToolDecl, ToolDecls, Toolset
from sigadapt.errors import InvalidToolDecl


def search(query: str) -> str:
    """Search the web."""
    raise AssertionError


def names(decls: ToolDecls) -> list[str]:
    return [decl.name for decl in decls]


def resolve(value: Any) -> ToolDecls:
    return Toolset("all", [value]).resolve()


def refusal(act: Callable[[], object]) -> InvalidToolDecl:
    with pytest.raises(InvalidToolDecl) as caught:
        act()
    return caught.value


ABC = Toolset("abc", [{"name": "a"}, {"name": "b"}, {"name": "c"}])
NATIVE = {"type": "web_search", "search_context_size": "low"}


class Ask(dspy.Signature):
    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str = dspy.OutputField()


CONTEXT = RequestContext(Ask, {"question": "why?", "admin": True}, {"temperature": 0})


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (ABC, ["a", "b", "c"]),
        (ABC.filtered(lambda context, decl: decl.name != "b"), ["a", "c"]),
        (ABC.filtered(lambda context, decl: bool(context.inputs.get("admin"))), ["a", "b", "c"]),
        (ABC.named("c", "a"), ["c", "a"]),
        (ABC.prefixed("x_"), ["x_a", "x_b", "x_c"]),
        (ABC.renamed({"a": "b", "b": "a"}), ["b", "a", "c"]),
        (ABC.prepared(lambda context, decls: [*decls, search]), ["a", "b", "c", "search"]),
        (ABC.prefixed("x_").named("x_b").renamed({"x_b": "y"}), ["y"]),
        (ABC.combined(Toolset("s", [search])), ["a", "b", "c", "search"]),
    ],
)
def test_each_change_gives_the_tools_it_says(changed: Toolset, expected: list[str]):
    """toolsets: Changes are composed and leave the toolset as it was."""
    assert names(changed.resolve(CONTEXT)) == expected
    assert names(ABC.resolve()) == ["a", "b", "c"]


def test_native_tools_ride_through_changes():
    """toolsets: Native tools ride through changes."""
    mixed = Toolset("m", [{"name": "a"}, NATIVE])
    for changed in (
        mixed.filtered(lambda context, decl: False),
        mixed.prefixed("x_"),
        mixed.renamed({"a": "b"}),
    ):
        assert changed.resolve().to_openai()[-1] == NATIVE
    assert len(mixed.named("a").resolve().entries) == 1


def test_the_source_sees_the_request_and_cannot_change_it():
    """toolsets: A function of the request decides which tools there are."""
    seen: list[RequestContext] = []

    def tools(context: RequestContext) -> list[Any]:
        seen.append(context)
        return [search] if context.inputs["admin"] else []

    toolset = Toolset("t", tools)
    assert names(toolset.resolve(CONTEXT)) == ["search"]
    assert names(toolset.resolve(RequestContext(inputs={"admin": False}))) == []
    assert seen[0] is CONTEXT
    assert seen[0].signature is Ask
    with pytest.raises(TypeError):
        seen[0].inputs["admin"] = False  # pyright: ignore[reportIndexIssue]
    with pytest.raises(AttributeError):
        seen[0].signature = None  # pyright: ignore[reportAttributeAccessIssue]


async def remote(context: RequestContext) -> list[Any]:
    await asyncio.sleep(0)
    return [search, {"name": "ask"}] if context.inputs else [search]


def test_an_async_source_is_refused_where_nobody_awaits():
    """toolsets: A sync call refuses a toolset that has to be awaited."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a coroutine that was never awaited
        for value in (Toolset("crm", remote), [search, [Toolset("crm", remote)]]):
            error = refusal(lambda value=value: resolve(value))
            assert error.code == "async_toolset"
            assert "'crm'" in error.reason
            assert "acall" in str(error.fix)
        gc.collect()
    loop = asyncio.new_event_loop()
    future: Any = loop.create_future()
    assert refusal(Toolset("crm", lambda context: future).resolve).code == "async_toolset"
    assert not future.done()
    loop.close()


async def test_an_async_source_is_awaited():
    """toolsets: An async toolset is awaited."""

    async def fails(context: RequestContext) -> list[Any]:
        await asyncio.sleep(0)
        raise KeyError("k")

    both = Toolset("both", [Toolset("crm", remote), ABC])
    assert names(await both.aresolve(CONTEXT)) == ["search", "ask", "a", "b", "c"]
    with pytest.raises(InvalidToolDecl, match="KeyError"):
        await Toolset("t", [Toolset("crm", fails)]).aresolve()


def broken(context: RequestContext) -> list[Any]:
    raise ConnectionError("no route")


async def afilter(context: RequestContext, decl: ToolDecl) -> bool:
    return False


def forgetful(context: RequestContext) -> None:
    return None


def late(context: RequestContext) -> Any:
    yield search
    raise ConnectionError("no route")


@pytest.mark.parametrize(
    ("toolset", "code", "told"),
    [
        (Toolset("crm", broken), "toolset_failed", "no route (ConnectionError)"),
        (Toolset("crm", late), "toolset_failed", "no route (ConnectionError)"),
        (Toolset("crm", cast("Any", forgetful)), "unknown_source", "None"),
        (Toolset("crm", [5]), "unknown_source", "5 (int)"),
        (Toolset("crm", [{"name": "f", "parameters": {"type": "dict"}}]), "invalid_schema", "'dict'"),
        (Toolset("crm", []).named("x"), "unknown_tool", "no tool with this name"),
        (Toolset("crm", [search]).renamed({"serach": "x"}), "unknown_tool", "no tool with this name"),
        (Toolset("crm", [search]).prepared(lambda context, decls: 1 / 0), "toolset_failed", "ZeroDivision"),
        (Toolset("crm", [search]).filtered(cast("Any", afilter)), "async_filter", "async"),
        (Toolset("crm", [search, search]), "duplicate_name", "2 times"),
        (Toolset("crm", ABC).renamed({"a": "b"}), "duplicate_name", "2 times"),
    ],
)
def test_an_error_names_the_toolset(toolset: Toolset, code: str, told: str):
    """toolsets: An error names the toolset."""
    error = refusal(toolset.resolve)
    assert error.code == code
    assert "toolset 'crm'" in error.reason
    assert told in str(error)
    assert error.__cause__ is not None


def test_a_prefix_tells_duplicates_apart():
    """toolsets: A name given by two toolsets is refused with both."""
    both = [Toolset("web", [search]), Toolset("wiki", [search]).prefixed("wiki_")]
    assert names(resolve(both)) == ["search", "wiki_search"]


def test_a_function_that_is_a_tool_is_never_run():
    """toolsets: A tool given as the source of a toolset is refused."""

    def two(context: RequestContext, query: str) -> None: ...

    def by_keyword(*, context: RequestContext) -> None: ...

    functions: list[Callable[..., Any]] = [search, len, lambda: None, two, by_keyword]
    for function in functions:
        error = refusal(lambda function=function: Toolset("t", function))
        assert error.code == "invalid_toolset"
        assert "Toolset('t', [function])" in str(error.fix)
    assert names(Toolset("t", [search]).resolve()) == ["search"]
    assert names(Toolset("t", dspy.Tool(search)).resolve()) == ["search"]


@pytest.mark.parametrize("name", ["", " ", None, 5])
def test_a_toolset_has_a_name(name: Any):
    assert refusal(lambda: Toolset(name, [])).code == "invalid_toolset"


def test_an_iterator_lasts_for_every_request():
    toolset = Toolset("t", (tool for tool in (search,)))
    assert names(toolset.resolve()) == names(toolset.resolve()) == ["search"]


@pytest.mark.parametrize(
    "value",
    [ABC, [ABC], [search, [ABC]], (ABC.prefixed("x"),), Toolset("r", remote)],
    ids=["one", "in a list", "beside a function", "in a tuple", "remote"],
)
def test_a_toolset_is_what_a_tools_field_takes(value: object):
    """toolsets: A tools field takes toolsets without a warning."""
    assert isinstance(value, ToolDecls)


def test_declarations_ask_a_toolset_without_a_request():
    """tool-declarations: Nested collections are laid out flat."""
    assert names(ToolDecls([search, [ABC]])) == ["search", "a", "b", "c"]
    assert refusal(lambda: ToolDecls([Toolset("crm", remote)])).code == "async_toolset"


trees = st.recursive(
    st.just("tool") | st.just("toolset"), lambda inner: st.lists(inner, max_size=4), max_leaves=12
)


@given(trees)
def test_any_nesting_keeps_the_order(tree: Any):
    """toolsets: Toolsets may stand anywhere among tools."""
    count = 0

    def built(node: Any) -> Any:
        nonlocal count
        if isinstance(node, list):
            return [built(inner) for inner in node]  # pyright: ignore[reportUnknownVariableType]
        count += 1
        tool = {"name": f"t{count}"}
        return Toolset(f"s{count}", [tool]) if node == "toolset" else tool

    assert names(resolve(built(tree))) == [f"t{n + 1}" for n in range(count)]


server = MCPServer("demo")


@server.tool()
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def shout(text: str) -> str:
    """Shout."""
    return text.upper()


async def test_a_server_object_is_a_source():
    """toolsets: A live MCP session or server gives its tools as the server wrote them."""
    decls = await Toolset("demo", server).prefixed("demo_").aresolve()
    listed = await server.list_tools()
    assert names(decls) == ["demo_add", "demo_shout"]
    assert [decl.parameters for decl in decls] == [tool.input_schema for tool in listed]
    assert [decl.returns for decl in decls] == [tool.output_schema for tool in listed]


class Paged:
    """A session that gives as many pages as asked, taking the cursor as version 1 of the SDK does."""

    def __init__(self, pages: int, *, endless: bool = False) -> None:
        self.pages, self.endless = pages, endless

    async def list_tools(self, cursor: str | None = None) -> Any:
        number = int(cursor or 0)
        following = "0" if self.endless else str(number + 1) if number + 1 < self.pages else None
        tool = {"name": f"t{number}", "inputSchema": {"type": "object"}}
        return mcp.types.ListToolsResult.model_validate({"tools": [tool], "nextCursor": following})

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        raise AssertionError


class PagedByParams(Paged):
    """The same, taking the cursor as version 2 does."""

    async def list_tools(self, *, params: mcp.types.PaginatedRequestParams | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return await super().list_tools(params.cursor if params else None)


@pytest.mark.parametrize("session", [Paged(3), PagedByParams(3)])
async def test_every_page_is_read(session: Any):
    """toolsets: Every page of an MCP listing is read."""
    assert names(await Toolset("p", session).aresolve()) == ["t0", "t1", "t2"]


async def test_a_listing_without_end_is_refused():
    """toolsets: Every page of an MCP listing is read."""
    with pytest.raises(InvalidToolDecl, match="'p': its list of tools has no end"):
        await Toolset("p", Paged(3, endless=True)).aresolve()


def test_a_live_session_is_refused_where_nobody_awaits():
    """toolsets: A sync call refuses a toolset that has to be awaited."""
    assert refusal(Toolset("demo", server).resolve).code == "async_toolset"
