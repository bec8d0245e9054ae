"""The jobs with pydantic-ai."""

from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelHTTPError,
    Tool,
    UsageLimits,
    capture_run_messages,
)

from benchmarks.peers.jobs.shared import FOLLOW_UPS, QUESTION, decide, fetch, order, stock

agent = Agent("openai:gpt-4o", tools=[order, stock])


def limited():
    """Run with a limit of tokens, and say what it used."""
    result = agent.run_sync(QUESTION, usage_limits=UsageLimits(total_tokens_limit=5_000))
    return result.output, result.usage.total_tokens


def continued():
    """Go on after an error, without running anything twice."""
    with capture_run_messages() as messages:
        try:
            return agent.run_sync(QUESTION).output
        except ModelHTTPError:
            return agent.run_sync(message_history=messages).output


def side_by_side():
    """Run the tools of a turn side by side, one with a time limit."""
    patient = Agent("openai:gpt-4o", tools=[stock, Tool(fetch, timeout=0.2)])
    return patient.run_sync(QUESTION).output


def branches():
    """Ask two questions that branch from one answer."""
    first = agent.run_sync(QUESTION).all_messages()
    return [agent.run_sync(each, message_history=first).output for each in FOLLOW_UPS]


async def streamed():
    """Yield the answer as text, while it is written."""
    async with agent.run_stream(QUESTION) as result:
        async for text in result.stream_text(delta=True, debounce_by=None):
            yield text


def approved():
    """Stop for an approval, decide, go on."""
    tools = [Tool(order, requires_approval=True)]
    careful = Agent("openai:gpt-4o", tools=tools, output_type=[str, DeferredToolRequests])
    result = careful.run_sync(QUESTION)
    if isinstance(result.output, DeferredToolRequests):
        verdicts = {call.tool_call_id: decide(call.tool_name, call.args) for call in result.output.approvals}
        decisions = DeferredToolResults(approvals=verdicts)
        result = careful.run_sync(message_history=result.all_messages(), deferred_tool_results=decisions)
    return result.output
