"""A loopback provider for tests and demonstrations: real HTTP, real clients, scripted answers, no network.

It speaks OpenAI chat and responses, Anthropic, Gemini and Ollama (`WIRES`), whole and streamed, to any client
that accepts a base URL.

    >>> import dspy
    >>> from sigadapt.testing import Answer, Call, LoopbackProvider
    >>> with LoopbackProvider(
    ...     [Answer(text="Sunny.", calls=[Call("get_weather", {"city": "Paris"})])]
    ... ) as provider:
    ...     lm = dspy.LM(**provider.lm_options("openai", engine="litellm"))
    ...     response = lm(dspy.lm15.Request(model=lm.model, messages=(dspy.lm15.Message.user("Weather?"),)))
    >>> response.tool_calls[0].input
    {'city': 'Paris'}
    >>> provider.received[0].body["messages"]
    [{'role': 'user', 'content': 'Weather?'}]

DSPy and LiteLLM each download a table of models once in a process. To make both use the table they ship, set
the environment variable `LITELLM_LOCAL_MODEL_COST_MAP=True` before importing either.
"""

from sigadapt.testing.answers import Answer, Call, Failure, LoopbackError, Received, Reply, Script
from sigadapt.testing.chat_stores import check_chat_store
from sigadapt.testing.provider import LoopbackProvider
from sigadapt.testing.recording import Exchange, exchanges_in, forwarding
from sigadapt.testing.wires import WIRES
from sigadapt.testing.wires.wire import Wire

__all__ = [
    "WIRES",
    "Answer",
    "Call",
    "Exchange",
    "Failure",
    "LoopbackError",
    "LoopbackProvider",
    "Received",
    "Reply",
    "Script",
    "Wire",
    "check_chat_store",
    "exchanges_in",
    "forwarding",
]
