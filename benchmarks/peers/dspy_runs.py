"""DSPy's own agent, `dspy.ReActV2`, under DSPy's own adapter with native tools."""

from typing import Any

import dspy

from benchmarks.peers.library import Cannot, Library, Outcome

MODELS = {
    "openai": "openai/gpt-4o",
    "responses": "openai/gpt-4o",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "gemini/gemini-2.5-flash",
}
SUFFIXES = {"openai": "/v1", "responses": "/v1", "anthropic": "/v1", "gemini": "/v1beta"}


def lm_of(wire: str, url: str) -> Any:
    """Return the language model of a wire, which points at the loopback provider."""
    options: dict[str, Any] = {"model_type": "responses"} if wire == "responses" else {}
    address = url + SUFFIXES[wire]
    return dspy.LM(MODELS[wire], api_base=address, api_key="x", cache=False, num_retries=0, **options)


class Runs(Library):
    """DSPy's programs."""

    def prepare(self) -> None:
        setup = self.setup
        if setup.confirm:
            raise Cannot("no approvals")
        if setup.timeouts or setup.sequential:
            raise Cannot("no settings of a tool")
        if setup.limits.keys() - {"requests"}:
            raise Cannot("no limit but max_iters")
        self.history: Any = None
        self.first: Any = None
        self.make()

    def make(self) -> None:
        """Make the agent."""
        turns = int(self.setup.limits.get("requests", 20))
        self.adapter: Any = dspy.ChatAdapter(use_native_function_calling=True)
        self.lm = lm_of(self.setup.wire, self.setup.url)
        tools = self.shop.functions(self.setup.tools)
        self.agent: Any = dspy.ReActV2("question -> answer", tools=tools, max_iters=turns)

    def arguments(self, step: str, value: Any) -> dict[str, Any]:
        if step == "decide":
            raise Cannot("no approvals")
        if step == "go_on":
            if self.history is None:
                raise Cannot("an error carries no history")
            return {"history": self.history}
        history = self.first if step == "branch" else self.history
        more = {} if history is None else {"history": history}
        return {"question": value, **more}

    def call(self, arguments: dict[str, Any]) -> Outcome:
        with dspy.context(
            lm=self.lm, adapter=self.adapter, track_usage=True, allow_tool_async_sync_conversion=True
        ):
            return self.outcome(self.agent(**arguments))

    async def acall(self, arguments: dict[str, Any]) -> Outcome:
        with dspy.context(lm=self.lm, adapter=self.adapter, track_usage=True):
            return self.outcome(await self.agent.acall(**arguments))

    async def stream(self, arguments: dict[str, Any]) -> Outcome:
        raise Cannot("an agent's answer is an argument of submit, which streamify does not stream")

    def outcome(self, result: Any) -> Outcome:
        """Read a prediction."""
        self.history = result.history
        self.first = self.first or result.history
        usage = None
        used = result.get_lm_usage() or {}
        for counted in used.values():
            usage = (
                len(self.lm.history),
                int(counted.get("prompt_tokens") or counted.get("input_tokens") or 0),
                int(counted.get("completion_tokens") or counted.get("output_tokens") or 0),
            )
        mark = "" if result.termination_reason == "submit" else result.termination_reason
        return Outcome(answer=str(result.answer), usage=usage, mark=mark)

    def reload(self) -> None:
        if self.history is None:
            raise Cannot("an error carries no history")
        text = self.history.model_dump_json()
        self.make()
        self.history = self.first = dspy.History.model_validate_json(text)
