"""The jobs with the OpenAI Agents SDK. It has no limit of tokens: a hook is written."""

from agents import Agent, RunHooks, Runner, SQLiteSession, function_tool
from openai import OpenAIError

from benchmarks.peers.jobs.shared import FOLLOW_UPS, QUESTION, decide, fetch, order, stock

agent = Agent(name="Shop", model="gpt-4o", tools=[function_tool(order), function_tool(stock)])


class TokenLimit(RunHooks):
    async def on_llm_start(self, context, *arguments):
        if context.usage.total_tokens >= 5_000:
            raise RuntimeError("The run has used its tokens.")


def limited():
    """Run with a limit of tokens, and say what it used."""
    result = Runner.run_sync(agent, QUESTION, hooks=TokenLimit())
    return result.final_output, result.context_wrapper.usage.total_tokens


def continued():
    """Go on after an error, without running anything twice."""
    session = SQLiteSession("continued")
    try:
        return Runner.run_sync(agent, QUESTION, session=session).final_output
    except OpenAIError:
        return Runner.run_sync(agent, [], session=session).final_output


def side_by_side():
    """Run the tools of a turn side by side, one with a time limit."""
    tools = [function_tool(stock), function_tool(fetch, timeout=0.2)]
    return Runner.run_sync(Agent(name="Shop", model="gpt-4o", tools=tools), QUESTION).final_output


def branches():
    """Ask two questions that branch from one answer."""
    first = Runner.run_sync(agent, QUESTION).to_input_list()
    questions = [[*first, {"role": "user", "content": each}] for each in FOLLOW_UPS]
    return [Runner.run_sync(agent, each).final_output for each in questions]


async def streamed():
    """Yield the answer as text, while it is written."""
    async for event in Runner.run_streamed(agent, QUESTION).stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            yield event.data.delta


def approved():
    """Stop for an approval, decide, go on."""
    tools = [function_tool(order, needs_approval=True)]
    careful = Agent(name="Shop", model="gpt-4o", tools=tools)
    result = Runner.run_sync(careful, QUESTION)
    if result.interruptions:
        state = result.to_state()
        for call in result.interruptions:
            if decide(call.name, call.arguments):
                state.approve(call)
            else:
                state.reject(call)
        result = Runner.run_sync(careful, state)
    return result.final_output
