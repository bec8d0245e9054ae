"""The passes in their order, over requests and answers that need few of them."""

from typing import Any

import pytest
from sending import ROUTES, names_of, send

from sigadapt import ToolDecl, ToolDecls
from sigadapt.server_tools import WebSearch
from sigadapt.testing import Answer, Call


@pytest.mark.parametrize("name", ["get_weather", "get.weather", "weather:now", "9days", "w" * 100])
def test_tools_that_one_route_takes_are_looked_at_again_for_another(name: str) -> None:
    """request-shaping: A name that a provider takes goes out as it is."""

    def tools(words: str) -> ToolDecls:
        return ToolDecls([ToolDecl(name, description=words)])

    shared = tools("Weather.")
    for number, route in enumerate([*ROUTES, *reversed(ROUTES)]):
        fresh = send(*route, tools=tools(f"Weather {number}."))
        assert names_of(send(*route, tools=shared).body) == names_of(fresh.body)


class Looks:
    """A hook that changes nothing."""

    def after_choice(self, choice: Any, context: Any) -> None: ...


def lookup(query: str) -> str:
    """Look it up."""
    return query


@pytest.mark.parametrize("mode", ["native", "prompted"])
def test_a_hook_that_changes_nothing_refuses_no_call_of_a_stand_in(mode: Any) -> None:
    """request-shaping: A hook that takes no tool out refuses no call."""
    call = Call("lookup", {"query": "q"})
    text = '<tool_call>\n{"name": "lookup", "arguments": {"query": "q"}}\n</tool_call>'
    answer = Answer(calls=[call]) if mode == "native" else Answer(text=text)
    options = {"hooks": [Looks()], "tool_calling": mode}
    out = send(answer=answer, tools=[WebSearch(local=lookup)], options=options).out
    assert [each.name for each in out.calls] == ["lookup"]
