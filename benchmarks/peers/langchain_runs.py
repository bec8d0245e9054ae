"""LangChain: `create_agent` with a checkpointer and its middleware."""

import uuid
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ToolCallLimitMiddleware,
    ToolErrorMiddleware,
)
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from benchmarks.peers.library import Cannot, Library, Outcome, Setup
from benchmarks.peers.shop import Shop

MARKS = ("finish_reason", "stop_reason", "status", "incomplete_details")


def tell_model(error: Exception, request: Any) -> str:
    """Tell the model that a tool failed."""
    return f"{type(error).__name__}: {error}"


def model_of(wire: str, url: str) -> Any:
    """Return the model of a wire, whose client points at the loopback provider."""
    if wire == "anthropic":
        return ChatAnthropic(model="claude-sonnet-4-5", base_url=url, api_key="x", max_retries=0)
    if wire == "gemini":
        return ChatGoogleGenerativeAI(model="gemini-2.5-flash", base_url=url, api_key="x", max_retries=1)
    return ChatOpenAI(
        model="gpt-4o",
        base_url=f"{url}/v1",
        api_key="x",
        max_retries=0,
        use_responses_api=wire == "responses",
    )


class Runs(Library):
    """LangChain's programs."""

    def __init__(self, setup: Setup, shop: Shop) -> None:
        self.checkpointer = InMemorySaver()
        super().__init__(setup, shop)

    def prepare(self) -> None:
        setup = self.setup
        missing = {"total_tokens", "seconds"} & setup.limits.keys()
        if missing:
            raise Cannot(f"no middleware limits {', '.join(sorted(missing))}")
        if setup.timeouts:
            raise Cannot("no time limit for a tool")
        if setup.sequential:
            raise Cannot("no sequential tools")
        middleware: list[Any] = [ToolErrorMiddleware(tell_model)]
        if "requests" in setup.limits:
            limit = int(setup.limits["requests"])
            middleware.append(ModelCallLimitMiddleware(run_limit=limit, exit_behavior="error"))
        if "tool_calls" in setup.limits:
            limit = int(setup.limits["tool_calls"])
            middleware.append(ToolCallLimitMiddleware(run_limit=limit, exit_behavior="error"))
        if setup.confirm:
            middleware.append(HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(setup.confirm, True)))
        self.agent: Any = create_agent(
            model_of(setup.wire, setup.url),
            tools=self.shop.functions(setup.tools),
            middleware=middleware,
            checkpointer=self.checkpointer,
        )
        self.config: Any = {"configurable": {"thread_id": str(uuid.uuid4())}}
        self.first: Any = None

    def arguments(self, step: str, value: Any) -> dict[str, Any]:
        if step == "go_on":
            return {"input": None, "config": self.config}
        if step == "decide":
            requests = self.interrupts()
            decisions = [decision_of(value[name]) for name in requests]
            for decision, name in zip(decisions, requests, strict=True):
                if decision["type"] == "edit":
                    decision["edited_action"]["name"] = name
            return {"input": Command(resume={"decisions": decisions}), "config": self.config}
        message = {"messages": [{"role": "user", "content": value}]}
        return {"input": message, "config": self.first if step == "branch" else self.config}

    def interrupts(self) -> list[str]:
        """Return the names of the calls that wait."""
        state = self.agent.get_state(self.config)
        return [
            action["name"] for interrupt in state.interrupts for action in interrupt.value["action_requests"]
        ]

    def call(self, arguments: dict[str, Any]) -> Outcome:
        return self.outcome(self.agent.invoke(**arguments))

    async def acall(self, arguments: dict[str, Any]) -> Outcome:
        return self.outcome(await self.agent.ainvoke(**arguments))

    async def stream(self, arguments: dict[str, Any]) -> Outcome:
        pieces: list[str] = []
        async for chunk, _ in self.agent.astream(**arguments, stream_mode="messages"):
            if isinstance(chunk, AIMessageChunk) and chunk.text:
                pieces.append(str(chunk.text))
        outcome = self.outcome(self.agent.get_state(self.config).values)
        outcome.pieces = pieces
        return outcome

    def outcome(self, result: Any) -> Outcome:
        """Read a result."""
        answers = [message for message in result["messages"] if isinstance(message, AIMessage)]
        last = answers[-1]
        counts = [message.usage_metadata or {} for message in answers]
        usage = (
            len(answers),
            sum(count.get("input_tokens", 0) for count in counts),
            sum(count.get("output_tokens", 0) for count in counts),
        )
        waiting = self.interrupts()
        if waiting:
            return Outcome(waiting=waiting, usage=usage)
        if self.first is None:
            self.first = self.agent.get_state(self.config).config
        mark = " ".join(str(last.response_metadata.get(name, "")) for name in MARKS)
        if last.additional_kwargs.get("refusal") or "'type': 'refusal'" in str(last.content):
            mark += " refusal"
        if last.invalid_tool_calls:
            mark += " invalid"
        return Outcome(answer=str(last.text), usage=usage, mark=mark)

    def reload(self) -> None:
        config = self.config
        first = self.first
        self.prepare()  # a new agent on the same checkpointer, which would be a database
        self.config = config
        self.first = first


def decision_of(value: Any) -> dict[str, Any]:
    """Return a decision as the middleware takes it."""
    if isinstance(value, str):
        return {"type": "reject", "message": value}
    if isinstance(value, dict):
        return {"type": "edit", "edited_action": {"name": "", "args": value}}
    return {"type": "approve"}
