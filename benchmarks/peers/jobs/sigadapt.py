"""The jobs with sigadapt."""

import dspy
from dspy.utils.exceptions import LMError

from benchmarks.peers.jobs.shared import FOLLOW_UPS, QUESTION, decide, fetch, order, stock
from sigadapt import ChatAdapter, InputNeeded, Limits, ReAct, Run, ToolDecl, run_of, stream_sync
from sigadapt.events import TextDelta

dspy.configure(lm=dspy.LM("openai/gpt-4o"), adapter=ChatAdapter(confirm="raise"))
agent = ReAct("question -> answer", tools=[order, stock])


def limited():
    """Run with a limit of tokens, and say what it used."""
    with Run(Limits(total_tokens=5_000)) as run:
        return agent(question=QUESTION).answer, run.usage.total_tokens


def continued():
    """Go on after an error, without running anything twice."""
    try:
        return agent(question=QUESTION).answer
    except LMError as error:
        return agent(history=run_of(error).history).answer


def side_by_side():
    """Run the tools of a turn side by side, one with a time limit."""
    patient = ReAct("question -> answer", tools=[stock, ToolDecl.of(fetch, timeout=0.2)])
    return patient(question=QUESTION).answer


def branches():
    """Ask two questions that branch from one answer."""
    first = agent(question=QUESTION)
    return [agent(question=each, history=first.history).answer for each in FOLLOW_UPS]


def streamed():
    """Yield the answer as text, while it is written."""
    for event in stream_sync(agent, question=QUESTION):
        if isinstance(event, TextDelta):
            yield event.text


def approved():
    """Stop for an approval, decide, go on."""
    tools = [ToolDecl.of(order, requires_confirmation=True)]
    careful = ReAct("question -> answer", tools=tools)
    try:
        return careful(question=QUESTION).answer
    except InputNeeded as error:
        decisions = {asked.id: decide(asked.call.name, asked.call.args) for asked in error.requests}
        return careful(history=error.resume(tools, decisions)).answer
