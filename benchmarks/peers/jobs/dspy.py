"""The jobs with DSPy alone. It has no way to go on, no time limits, no streamed agents and no approvals."""

from copy import deepcopy

import dspy

from benchmarks.peers.jobs.shared import FOLLOW_UPS, QUESTION, order, stock

dspy.configure(lm=dspy.LM("openai/gpt-4o"), adapter=dspy.ChatAdapter(use_native_function_calling=True))
agent = dspy.ReActV2("question -> answer", tools=[order, stock])


def limited():
    """Run with a limit of tokens, and say what it used."""
    with dspy.track_usage() as tracker, dspy.context(lm=LimitedLM("openai/gpt-4o")):
        return agent(question=QUESTION).answer, tokens(tracker)


class LimitedLM(dspy.LM):
    def forward(self, *arguments, **options):
        if tokens(dspy.settings.usage_tracker) >= 5_000:
            raise RuntimeError("The run has used its tokens.")
        return super().forward(*arguments, **options)


def tokens(tracker):
    return sum(used["total_tokens"] for used in tracker.get_total_tokens().values())


def branches():
    """Ask two questions that branch from one answer."""
    first = agent(question=QUESTION)
    return [agent(question=each, history=deepcopy(first.history)).answer for each in FOLLOW_UPS]
