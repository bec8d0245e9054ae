"""sigadapt: `sigadapt.ReAct` in a `sigadapt.Run`, approvals by `confirm="raise"`."""

from contextlib import suppress
from typing import Any

import dspy

import sigadapt
from benchmarks.peers.dspy_runs import lm_of
from benchmarks.peers.library import Cannot, Library, Outcome
from sigadapt import ToolDecl
from sigadapt.errors import InputNeeded, InvalidOption


class Runs(Library):
    """sigadapt's programs."""

    def prepare(self) -> None:
        self.history: Any = None
        self.first: Any = None
        self.waiting: Any = None
        self.make()

    def make(self) -> None:
        """Make the agent."""
        setup = self.setup
        self.tools = [self.declared(function) for function in self.shop.functions(setup.tools)]
        self.adapter: Any = sigadapt.ChatAdapter(confirm="raise") if setup.confirm else sigadapt.ChatAdapter()
        self.lm = lm_of(setup.wire, setup.url)
        self.agent: Any = sigadapt.ReAct("question -> answer", tools=self.tools)

    def declared(self, function: Any) -> Any:
        """Return the declaration of a tool, with its settings."""
        setup = self.setup
        name = function.__name__
        options: dict[str, Any] = {}
        if name in setup.confirm:
            options["requires_confirmation"] = True
        if name in setup.timeouts:
            options["timeout"] = setup.timeouts[name]
        if name in setup.sequential:
            options["sequential"] = True
        return ToolDecl.of(function, **options)

    def arguments(self, step: str, value: Any) -> dict[str, Any]:
        if step == "decide":
            return {"history": self.waiting.resume(self.tools, self.decisions(value))}
        if step == "go_on":
            if self.history is None:
                raise Cannot("an error carries no history")
            return {"history": self.history}
        history = self.first if step == "branch" else self.history
        arguments = {"question": value}
        if history is not None:
            arguments["history"] = history
        if step == "ask" and self.setup.limits:
            arguments["limits"] = sigadapt.Limits(**self.setup.limits)
        return arguments

    def decisions(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return the decisions by the ids of their requests."""
        decisions: dict[str, Any] = {}
        for request in self.waiting.requests:
            decision = value[request.call.name]
            if isinstance(decision, dict):
                decision = request.call.model_copy(update={"args": decision})
            decisions[request.id] = decision
        return decisions

    def call(self, arguments: dict[str, Any]) -> Outcome:
        limits = arguments.pop("limits", None)
        with dspy.context(lm=self.lm, adapter=self.adapter), sigadapt.Run(limits) as run:
            try:
                return self.outcome(self.agent(**arguments), run)
            except InputNeeded as error:
                return self.stopped(error, run)

    async def acall(self, arguments: dict[str, Any]) -> Outcome:
        limits = arguments.pop("limits", None)
        with dspy.context(lm=self.lm, adapter=self.adapter), sigadapt.Run(limits) as run:
            try:
                return self.outcome(await self.agent.acall(**arguments), run)
            except InputNeeded as error:
                return self.stopped(error, run)

    async def stream(self, arguments: dict[str, Any]) -> Outcome:
        pieces: list[str] = []
        ended: Any = None
        with dspy.context(lm=self.lm, adapter=self.adapter), sigadapt.Run() as run:
            try:
                async for event in sigadapt.stream(self.agent, **arguments):
                    kind = type(event).__name__
                    if kind == "TextDelta":
                        pieces.append(event.text)
                    if kind == "Ended":
                        ended = event
            except InputNeeded as error:
                return self.stopped(error, run)
        outcome = self.outcome(ended.prediction, run)
        outcome.pieces = pieces
        return outcome

    def outcome(self, result: Any, run: Any) -> Outcome:
        """Read a prediction."""
        self.history = result.history
        self.first = self.first or result.history
        mark = "" if result.termination_reason == "submit" else result.termination_reason
        return Outcome(answer=str(result.answer), usage=used(run), mark=mark)

    def stopped(self, error: InputNeeded, run: Any) -> Outcome:
        """Read a run that waits."""
        self.waiting = error
        return Outcome(waiting=[request.call.name for request in error.requests], usage=used(run))

    def failed(self, error: BaseException) -> None:
        with suppress(InvalidOption):  # of an error that left no run
            self.history = sigadapt.run_of(error).history

    def reload(self) -> None:
        waiting = self.waiting and type(self.waiting).model_validate_json(self.waiting.model_dump_json())
        text = self.history and self.history.model_dump_json()
        self.make()
        self.waiting = waiting
        self.history = self.first = text and dspy.History.model_validate_json(text)


def used(run: Any) -> tuple[int, int, int]:
    """Return what a run used."""
    return (run.usage.requests, run.usage.input_tokens, run.usage.output_tokens)
