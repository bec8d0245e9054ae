"""Parts of DSPy's next version that the installed one has: see openspec/changes/dspy-3-5.

`tasks.py test --dspy` runs these first among the programs of DSPy, so that what fails there is one part each.
"""

import asyncio
import json
from typing import Any

import dspy
import pytest
from dspy.primitives import LocalInterpreter
from mcp import Client
from mcp.server.mcpserver import MCPServer
from support import PARIS, May, get_weather, lm_of

import sigadapt
from sigadapt import ToolDecls, ToolResults
from sigadapt.testing import Answer, LoopbackProvider

THOUGHT = "Weather is needed."


@pytest.mark.parametrize("kind", [str, dspy.Reasoning])
@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "gemini"])
def test_chain_of_thought_calls_tools(wire: str, kind: Any) -> None:
    """adapter-plug-in: ChainOfThought runs with tools and either kind of reasoning."""
    signature: Any = May
    program = dspy.ChainOfThought(signature, rationale_field_type=kind)
    text = f"[[ ## reasoning ## ]]\n{THOUGHT}\n\n[[ ## answer ## ]]\nSunny.\n\n[[ ## completed ## ]]"
    script = [Answer(calls=[PARIS], reasoning=THOUGHT), Answer(text=text, reasoning=THOUGHT)]
    with LoopbackProvider(script) as provider:
        lm = lm_of(provider, wire, max_tokens=16_000)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            called = program(question="Weather?", tools=[get_weather])
            answered: Any = program(question="Weather?", tools=[get_weather])
    assert called.calls[0].args == {"city": "Paris"}
    assert called.calls.reasoning == THOUGHT
    assert (answered.answer, not answered.calls) == ("Sunny.", True)
    assert str(getattr(answered.reasoning, "content", answered.reasoning)).strip() == THOUGHT
    asks_for_it = "[[ ## reasoning ## ]]" in json.dumps(provider.received[0].body)
    assert asks_for_it is (kind is str or wire in WITHOUT_NATIVE_REASONING)


WITHOUT_NATIVE_REASONING = ("openai",)
"""Where DSPy does not take a model for one that reasons."""


def test_a_recursive_model_sends_what_it_sends_under_dspy_s_adapter() -> None:
    """adapter-plug-in: RLM runs as under DSPy's adapter."""

    def look_up(word: str) -> str:
        """Look a word up."""
        return f"{word} is a city."

    fields = "[[ ## reasoning ## ]]\nHm.\n\n[[ ## code ## ]]\n{}\n\n[[ ## completed ## ]]"
    codes = ("```python\nprint(look_up(word='Paris'))\n```", "```python\nSUBMIT('a city')\n```")
    script = [Answer(text=fields.format(code)) for code in codes]
    sent: list[list[Any]] = []
    for adapter in (dspy.ChatAdapter(), sigadapt.ChatAdapter()):
        with LoopbackProvider(script) as provider:
            with dspy.context(lm=lm_of(provider), adapter=adapter):
                signature: Any = "question -> answer"
                program: Any = dspy.RLM(signature, tools=[look_up], interpreter_factory=LocalInterpreter)
                out = program(question="What is Paris?")
            sent.append([received.body for received in provider.received])
        assert out.answer == "a city"
    assert sent[0] == sent[1]
    assert "Paris is a city." in json.dumps(sent[0][1])


@pytest.mark.parametrize("mode", ["text", "structured"])
def test_an_mcp_tool_of_dspy_s_in_either_mode_of_results(mode: Any) -> None:
    """conversations: A tool of DSPy's gives what its mode of results says."""
    server = MCPServer("weather")

    @server.tool()
    def forecast(city: str) -> dict[str, int]:
        """Degrees for a city."""
        return {city: 18}

    async def run() -> Any:
        async with Client(server) as session:
            (listed,) = (await session.list_tools()).tools
            any_session: Any = session
            tool = dspy.Tool.from_mcp_tool(any_session, listed, result_mode=mode)
            plain, own = ToolDecls([listed])["forecast"], ToolDecls([tool])["forecast"]
            assert own.parameters["properties"] == plain.parameters["properties"]
            calls = sigadapt.ToolCalls([{"id": "t1", "name": "forecast", "args": {"city": "Paris"}}])
            return next(iter(ToolResults.of(calls, [await tool.acall(city="Paris")]))).value

    value = asyncio.run(run())
    assert (json.loads(value) if mode == "text" else value) == {"Paris": 18}
