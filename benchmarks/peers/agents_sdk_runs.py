"""The OpenAI Agents SDK: `Runner`, `max_turns`, `needs_approval`, sessions and `RunState`."""

import asyncio
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from benchmarks.peers.library import Cannot, Library, Outcome

set_tracing_disabled(True)


def tell_model(context: Any, error: Exception) -> str:
    """Tell the model that a tool failed."""
    return f"{type(error).__name__}: {error}"


class Runs(Library):
    """The Agents SDK's programs."""

    def prepare(self) -> None:
        setup = self.setup
        if setup.wire not in {"openai", "responses"}:
            raise Cannot("its own clients speak OpenAI's wires alone")
        missing = {"total_tokens", "tool_calls", "seconds"} & setup.limits.keys()
        if missing:
            raise Cannot(f"no limit of {', '.join(sorted(missing))}")
        if setup.sequential:
            raise Cannot("no sequential tools, only a limit for all tools")
        client = AsyncOpenAI(base_url=f"{setup.url}/v1", api_key="x", max_retries=0)
        kind = OpenAIResponsesModel if setup.wire == "responses" else OpenAIChatCompletionsModel
        tools = [
            function_tool(
                function,
                failure_error_function=tell_model,
                needs_approval=function.__name__ in setup.confirm,
                timeout=setup.timeouts.get(function.__name__),
            )
            for function in self.shop.functions(setup.tools)
        ]
        self.agent: Any = Agent(name="Shop", tools=tools, model=kind(model="gpt-4o", openai_client=client))
        self.session = SQLiteSession("shop")
        self.waiting = ""
        self.first: Any = None

    def arguments(self, step: str, value: Any) -> dict[str, Any]:
        turns = self.setup.limits.get("requests")
        options: dict[str, Any] = {"run_config": RunConfig(tool_not_found_behavior="return_error_to_model")}
        if turns is not None and step == "ask":
            options["max_turns"] = int(turns)
        if step == "decide":
            return {"input": self.decided(value), "session": self.session, **options}
        if step == "branch":
            return {"input": [*self.first, {"role": "user", "content": value}], **options}
        if step == "go_on":
            return {"input": [], "session": self.session, **options}
        return {"input": value, "session": self.session, **options}

    def decided(self, value: dict[str, Any]) -> Any:
        """Return the state with the decisions."""
        reading = RunState.from_string(self.agent, self.waiting)
        state: Any = asyncio.new_event_loop().run_until_complete(reading)  # `run_sync` keeps its own loop
        for item in state.get_interruptions():
            decision = value[item.name]
            if isinstance(decision, dict):
                raise Cannot("no way to approve with other arguments")
            if isinstance(decision, str):
                state.reject(item, rejection_message=decision)
            else:
                state.approve(item)
        return state

    def call(self, arguments: dict[str, Any]) -> Outcome:
        return self.outcome(Runner.run_sync(self.agent, **arguments))

    async def acall(self, arguments: dict[str, Any]) -> Outcome:
        return self.outcome(await Runner.run(self.agent, **arguments))

    async def stream(self, arguments: dict[str, Any]) -> Outcome:
        result = Runner.run_streamed(self.agent, **arguments)
        raw = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
        pieces = [data.delta for data in raw if data.type == "response.output_text.delta"]
        outcome = self.outcome(result)
        outcome.pieces = pieces
        return outcome

    def outcome(self, result: Any) -> Outcome:
        """Read a result."""
        used = result.context_wrapper.usage
        usage = (used.requests, used.input_tokens, used.output_tokens)
        if result.interruptions:
            self.waiting = result.to_state().to_string()
            return Outcome(waiting=[str(item.name) for item in result.interruptions], usage=usage)
        if self.first is None:
            self.first = result.to_input_list()
        mark = str([getattr(response, "output", "") for response in result.raw_responses[-1:]])
        return Outcome(answer=str(result.final_output), usage=usage, mark=mark)

    def reload(self) -> None:
        session = self.session  # a database
        waiting = self.waiting
        self.prepare()
        self.session = session
        self.waiting = waiting
