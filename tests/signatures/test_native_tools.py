"""Tools that their provider runs ride beside functions."""

import pickle
from typing import Any

import pytest

from sigadapt import ToolDecls
from sigadapt.errors import InvalidToolDecl

NATIVE: list[dict[str, Any]] = [
    {"type": "web_search"},
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
    {"type": "code_interpreter", "container": {"type": "auto"}},
    {"type": "mcp", "server_label": "x", "server_url": "https://example.com"},
    {"google_search": {}},
    {"googleSearch": {}, "codeExecution": {}},
    {"systemTool": {"name": "nova_grounding"}},
]


@pytest.mark.parametrize("spec", NATIVE)
def test_native_tools_ride_untouched(spec: dict[str, Any]):
    """tool-declarations: A provider's own tools ride untouched beside functions."""
    given = [{"name": "a"}, spec, {"name": "b"}]
    assert isinstance(given, ToolDecls)
    decls = ToolDecls(given)
    assert decls.to_openai()[1] == spec
    assert [decl.name for decl in decls] == ["a", "b"]
    assert len(decls) == 2
    assert ToolDecls.model_validate_json(decls.model_dump_json()) == decls
    assert pickle.loads(pickle.dumps(decls)) == decls  # noqa: S301
    assert decls != ToolDecls([{"name": "a"}, {"name": "b"}])


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"type": "function", "name": "f"},
        {"type": "functoin", "name": "f"},
        {"type": "custom", "name": "f"},
        {"type": "object", "properties": {}},
        {"type": "anything", "name": "f", "input_schema": {}},
        {"googleSearch": {}, "functionDeclarations": []},
        {"type": 5},
        "web_search",
    ],
)
def test_what_may_be_a_function_is_not_native(value: object):
    try:
        assert len(ToolDecls(value)) == 1
    except InvalidToolDecl as error:
        assert error.code == "unknown_source"  # noqa: PT017  (either outcome is right)


def test_what_is_no_json_is_refused():
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecls({"type": "web_search", "filters": {1, 2}})
    assert (caught.value.code, caught.value.tool) == ("invalid_schema", "web_search")
