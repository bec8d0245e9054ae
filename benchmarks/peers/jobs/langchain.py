"""The jobs with LangChain. It limits neither tokens nor the time of a tool; a hook and a function do."""

import asyncio

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolErrorMiddleware, before_model
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from openai import OpenAIError

from benchmarks.peers.jobs.shared import FOLLOW_UPS, QUESTION, decide, fetch, order, stock

agent = create_agent("openai:gpt-4o", tools=[order, stock], checkpointer=InMemorySaver())
ask = {"messages": [{"role": "user", "content": QUESTION}]}
thread = {"configurable": {"thread_id": "1"}}


@before_model
def stop_at_limit(state, runtime):
    if sum(m.usage_metadata["total_tokens"] for m in state["messages"] if m.type == "ai") >= 5_000:
        raise RuntimeError("The run has used its tokens.")


def limited():
    """Run with a limit of tokens, and say what it used."""
    thrifty = create_agent("openai:gpt-4o", tools=[order, stock], middleware=[stop_at_limit])
    with get_usage_metadata_callback() as usage:
        result = thrifty.invoke(ask)
    return result["messages"][-1].text, sum(used["total_tokens"] for used in usage.usage_metadata.values())


def continued():
    """Go on after an error, without running anything twice."""
    try:
        result = agent.invoke(ask, thread)
    except OpenAIError:
        result = agent.invoke(None, thread)
    return result["messages"][-1].text


@tool("fetch")
async def fetch_in_time(title: str):
    """Fetch a book from a far shelf."""
    return await asyncio.wait_for(fetch(title), 0.2)


async def side_by_side():
    """Run the tools of a turn side by side, one with a time limit."""
    telling = ToolErrorMiddleware(lambda error, request: repr(error))
    patient = create_agent("openai:gpt-4o", tools=[stock, fetch_in_time], middleware=[telling])
    result = await patient.ainvoke(ask)
    return result["messages"][-1].text


def branches():
    """Ask two questions that branch from one answer."""
    agent.invoke(ask, thread)
    first = agent.get_state(thread).config
    return [agent.invoke({"messages": [("user", each)]}, first)["messages"][-1].text for each in FOLLOW_UPS]


def streamed():
    """Yield the answer as text, while it is written."""
    for chunk, _ in agent.stream(ask, thread, stream_mode="messages"):
        if chunk.type == "AIMessageChunk":
            yield chunk.text


def approved():
    """Stop for an approval, decide, go on."""
    asking = HumanInTheLoopMiddleware(interrupt_on={"order": True})
    careful = create_agent("openai:gpt-4o", [order], middleware=[asking], checkpointer=InMemorySaver())
    result = careful.invoke(ask, thread)
    if "__interrupt__" in result:
        actions = result["__interrupt__"][0].value["action_requests"]
        verdicts = [decide(action["name"], action["args"]) for action in actions]
        decisions = [{"type": "approve" if verdict else "reject"} for verdict in verdicts]
        result = careful.invoke(Command(resume={"decisions": decisions}), thread)
    return result["messages"][-1].text
