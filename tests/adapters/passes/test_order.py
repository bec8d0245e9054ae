"""The passes in their order, over requests and answers that need few of them."""

import itertools
from typing import Any

import dspy
import pytest
from support import LITELLM, NATIVE, Talk, lm_of

import sigadapt
from sigadapt import ToolDecl, ToolDecls
from sigadapt.adapters.passes import order
from sigadapt.server_tools import WebSearch
from sigadapt.testing import Answer, Call, LoopbackProvider

ROUTES = {f"native {name}": route for name, route in NATIVE.items()} | {
    f"litellm {name}": route for name, route in LITELLM.items()
}


ROWS = [{"role": "system", "content": "Answer."}, {"role": "user", "content": "Caf\u00e9?"}]


@pytest.mark.parametrize("name", ["get_weather", "get.weather", "weather:now", "9days", "w" * 100])
def test_tools_that_one_route_takes_are_looked_at_again_for_another(name: str) -> None:
    """request-shaping: A name that a provider takes goes out as it is."""

    def tools(words: str) -> Any:
        parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
        return ToolDecls([ToolDecl(name, description=words, parameters=parameters)]).canonical

    def name_sent(tools: Any, route: Any) -> str:
        sent: Any = order.lower({"model": "m", "messages": ROWS, "tools": tools}, route).request
        return sent["tools"][0]["function"]["name"]

    for number, (first, second) in enumerate(itertools.permutations(ROUTES.values(), 2)):
        shared = tools(f"Weather {number}.")
        name_sent(shared, first)
        assert name_sent(shared, second) == name_sent(tools(f"Weather {number} of {second.names}."), second)


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
    with LoopbackProvider([answer]) as net:
        adapter = sigadapt.ChatAdapter(hooks=[Looks()], tool_calling=mode)
        with dspy.context(lm=lm_of(net, "openai", cache=False), adapter=adapter):
            out: Any = dspy.Predict(Talk)(question="?", tools=[WebSearch(local=lookup)])
    assert [each.name for each in out.calls] == ["lookup"]
