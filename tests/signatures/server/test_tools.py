"""Server tools as declarations: what they print, save and refuse."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from sigadapt import ToolDecls
from sigadapt.errors import InvalidToolDecl
from sigadapt.server_tools import CodeExecution, FileSearch, ImageGeneration, McpServer, WebFetch, WebSearch
from sigadapt.trust import drift_of, pins_of

TOKEN = "tok-of-a-test-1234"  # noqa: S105  (of no server)


def my_search(query: str) -> str:
    """Search with my own engine."""
    return query


def server(token: str = TOKEN, url: str = "https://mcp.test/mcp") -> McpServer:
    return McpServer("docs", url, token=token)


ALL = [
    WebSearch(allowed_domains=["a.test"], max_uses=2, options={"x": {"y": 1}}, local=my_search),
    WebFetch(),
    CodeExecution(),
    FileSearch(["vs_1"]),
    ImageGeneration(),
    server(),
]


@pytest.mark.parametrize("tool", ALL, ids=str)
def test_a_tool_survives_json_pickle_and_copies(tool: Any) -> None:
    """server-tools: A token is in the body alone."""
    decls = ToolDecls([tool])
    saved = decls.model_dump_json()
    assert TOKEN not in saved
    assert TOKEN not in repr(tool) + str(tool) + f"{tool}" + repr(decls)
    assert ToolDecls.model_validate_json(saved) == decls
    assert ToolDecls.model_validate_json(saved).fingerprint() == decls.fingerprint()
    assert pickle.loads(pickle.dumps(decls)) == decls == copy.deepcopy(decls)  # noqa: S301


def test_a_token_changes_no_fingerprint_and_no_pin() -> None:
    """server-tools: A token is in the body alone."""
    before, rotated, other = server(), server("another"), server(url="https://other.test/")
    assert ToolDecls([before]).fingerprint() == ToolDecls([rotated]).fingerprint()
    assert ToolDecls([before]).fingerprint() != ToolDecls([other]).fingerprint()
    assert drift_of([rotated], pins_of([before])) == []
    assert [drift.field for drift in drift_of([other], pins_of([before]))] == ["/server_url"]
    assert TOKEN not in str(pins_of([before]))


WRONG: dict[str, Callable[[], Any]] = {
    "a text for a list": lambda: WebSearch(allowed_domains="a.test"),
    "a stand-in that is no tool": lambda: WebSearch(local=3),
    "twice": lambda: ToolDecls([WebSearch(), WebSearch(max_uses=1)]),
    "the name and the address of a server swapped": lambda: McpServer("https://a.test/mcp", "bank"),
    "an address with half of its brackets": lambda: McpServer("bank", "http://[::1"),
    "an address of no web server": lambda: McpServer("bank", "file:///etc/passwd"),
    "one server twice": lambda: ToolDecls([server(), server("another")]),
    "a stand-in that is declared too": lambda: ToolDecls([my_search, WebSearch(local=my_search)]),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name: str) -> None:
    """server-tools: A mistaken declaration is refused."""
    with pytest.raises(InvalidToolDecl):
        WRONG[name]()
