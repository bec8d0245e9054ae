"""pydantic-ai: `Agent`, `UsageLimits`, `capture_run_messages`, deferred tools."""

from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessagesTypeAdapter,
    ModelResponse,
    RunCancelled,
    Tool,
    ToolApproved,
    ToolDenied,
    ToolFailed,
    UsageLimits,
    capture_run_messages,
)
from pydantic_ai.capabilities import Hooks
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.peers.library import Cannot, Library, Outcome

LIMITS = {
    "requests": "request_limit",
    "tool_calls": "tool_calls_limit",
    "total_tokens": "total_tokens_limit",
}


async def tell_model(context: Any, *, call: Any, tool_def: Any, args: Any, error: Exception) -> Any:
    """Tell the model that a tool failed, as the documentation of hooks shows."""
    raise ToolFailed(f"{type(error).__name__}: {error}")


def model_of(wire: str, url: str) -> Any:
    """Return the model of a wire, whose client points at the loopback provider."""
    if wire == "anthropic":
        return AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(base_url=url, api_key="x"))
    if wire == "gemini":
        return GoogleModel("gemini-2.5-flash", provider=GoogleProvider(base_url=url, api_key="x"))
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    if wire == "responses":  # of a reasoning model it sends the reasoning back
        return OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(openai_client=client))
    return OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=client))


class Runs(Library):
    """pydantic-ai's programs."""

    messages: list[Any]
    first: list[Any]

    def prepare(self) -> None:
        setup = self.setup
        tools = [
            Tool(
                function,
                requires_approval=function.__name__ in setup.confirm,
                timeout=setup.timeouts.get(function.__name__),
                sequential=function.__name__ in setup.sequential,
            )
            for function in self.shop.functions(setup.tools)
        ]
        self.agent: Any = Agent(
            model_of(setup.wire, setup.url),
            tools=tools,
            output_type=[str, DeferredToolRequests] if setup.confirm else str,
            capabilities=[Hooks(tool_execute_error=tell_model)],
        )
        self.messages = []
        self.first = []
        self.waiting: Any = None
        self.waiting_messages: list[Any] = []

    def arguments(self, step: str, value: Any) -> dict[str, Any]:
        limits = {LIMITS[name]: most for name, most in self.setup.limits.items() if name in LIMITS}
        arguments: dict[str, Any] = {"message_history": self.messages or None}
        if step in ("ask", "follow", "branch"):
            arguments["user_prompt"] = value
            arguments["usage_limits"] = UsageLimits(**limits)
            arguments["timeout"] = self.setup.limits.get("seconds")
        if step == "branch":
            arguments["message_history"] = self.first
        if step == "go_on":
            if not self.messages:
                raise Cannot("nothing was captured")
            last = self.messages[-1]
            if isinstance(last, ModelResponse) and not last.tool_calls:
                arguments["user_prompt"] = "Go on."  # without one, the answer that failed is taken again
        if step == "decide":
            arguments["message_history"] = self.waiting_messages
            arguments["deferred_tool_results"] = self.decisions(value)
        return arguments

    def decisions(self, value: dict[str, Any]) -> DeferredToolResults:
        """Return the approvals of a decision."""
        results = DeferredToolResults()
        for call in self.waiting.approvals:
            decision = value[call.tool_name]
            if isinstance(decision, str):
                results.approvals[call.tool_call_id] = ToolDenied(decision)
            elif isinstance(decision, dict):
                results.approvals[call.tool_call_id] = ToolApproved(override_args=decision)
            else:
                results.approvals[call.tool_call_id] = decision
        return results

    def call(self, arguments: dict[str, Any]) -> Outcome:
        with capture_run_messages() as messages:
            try:
                return self.outcome(self.agent.run_sync(**arguments))
            except BaseException:
                self.messages = list(messages)
                raise

    async def acall(self, arguments: dict[str, Any]) -> Outcome:
        with capture_run_messages() as messages:
            try:
                return self.outcome(await self.agent.run(**arguments))
            except BaseException:
                self.messages = list(messages)
                raise

    async def stream(self, arguments: dict[str, Any]) -> Outcome:
        prompt = arguments.pop("user_prompt")
        with capture_run_messages() as messages:
            try:
                async with self.agent.run_stream(prompt, **arguments) as result:
                    pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
                self.messages = result.all_messages()
            except BaseException:
                self.messages = list(messages)
                raise
        return Outcome(answer="".join(pieces), pieces=pieces, mark=self.mark())

    def outcome(self, result: Any) -> Outcome:
        """Read a result."""
        self.messages = result.all_messages()
        self.first = self.first or list(self.messages)
        used = result.usage() if callable(result.usage) else result.usage
        usage = (used.requests, used.input_tokens, used.output_tokens)
        if isinstance(result.output, DeferredToolRequests):
            self.waiting = result.output
            self.waiting_messages = self.messages
            names = [call.tool_name for call in result.output.approvals]
            return Outcome(waiting=names, usage=usage, mark=self.mark())
        return Outcome(answer=result.output, usage=usage, mark=self.mark())

    def mark(self) -> str:
        """Return the finish reason of the last answer."""
        return str(getattr(self.messages[-1], "finish_reason", ""))

    def failed(self, error: BaseException) -> None:
        cancelled = RunCancelled.from_cancellation(error)
        if cancelled is not None:
            self.messages = cancelled.all_messages()

    def reload(self) -> None:
        text = ModelMessagesTypeAdapter.dump_json(self.messages)
        waiting = self.waiting
        self.prepare()
        self.messages = ModelMessagesTypeAdapter.validate_json(text)
        self.first = list(self.messages)
        self.waiting = waiting
        self.waiting_messages = self.messages
