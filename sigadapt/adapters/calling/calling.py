"""Calling: how one request offers tools to the model, and where the answer holds the calls.

Native calling changes neither the Request nor the Reading. Prompted calling writes tools, calls and results
into the messages, and reads calls from the answer's text (`passes/prompts.py`). `auto` decides for each
language model:

 a. prompted, for a text-completion model, for a model known to have no function calling, for an engine that
    does not say it has, and where DSPy's own switch `use_native_function_calling=False` says so;
 b. native, where DSPy knows that the model supports function calling;
 c. native first, if DSPy does not know the model. If the endpoint refuses tools, the same request is sent
    once more as a prompt, and the model is prompted from then on.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dspy import BaseLM

from sigadapt.adapters.lm.routes import (
    ModelFacts,
    calls_functions,
    is_completion,
    is_known_without_functions,
    model_of,
)
from sigadapt.adapters.options import Options
from sigadapt.errors import InvalidOption
from sigadapt.schemas.caches import WeakCache
from sigadapt.text.calls_field import NO_LAYOUT, Layout


@dataclass(frozen=True, slots=True)
class Calling:
    """One way of calling tools."""

    mode: str = "native"  # or `prompted`, for tools and calls in the messages' text
    call_format: str = "hermes"  # the text format of prompted calls
    reads_text: bool = False  # whether calls may be read from an answer's text
    is_tentative: bool = False  # whether a refusal of tools changes the mode, `because` of it
    layout: Layout = NO_LAYOUT  # how the answer's text marks its fields
    because: str = ""  # why the endpoint is prompted
    formats: Sequence[Any] | None = None  # the text formats to read; None for all

    @property
    def reads(self) -> dict[str, Any]:
        """How calls are looked for in an answer's text: arguments of `read_text`."""
        how: dict[str, Any] = {} if self.formats is None else {"formats": self.formats}
        if self.mode == "prompted":
            how |= {"undeclared": True, "call_format": self.call_format, "layout": self.layout}
        return how


NATIVE = Calling()
_RECOVERING = Calling(reads_text=True)
_REFUSED: WeakCache[str] = WeakCache()  # by language model: its name when its endpoint refused tools

_TOOLS = r"(?:tools?|tool use|tool calling|tool calls|function calling|functions)"
_REFUSALS = (
    r"--enable-auto-tool-choice"  # vLLM
    r"|tools param requires --jinja|unsupported param: tools"  # llama.cpp
    r"|no endpoints found that support tool use"  # OpenRouter
    # Ollama, TGI, Bedrock, gateways. `tool_choice`, parallel calls and streaming are other matters.
    rf"|(?:not|n't) support (?:native )?{_TOOLS}(?! use| call| in streaming)(?![\w-])"
    r"|not support parameters: \[[^\[\]]*'tools'"  # LiteLLM, of a model of its table
    rf"|\b{_TOOLS}[`'\"]? (?:is|are) not (?:supported|enabled|available)"
)
_STATUSES = frozenset((400, 404, 405, 422, 500, 501))


def calling_of(
    lm: BaseLM, settings: Mapping[str, Any], facts: ModelFacts, options: Options, layout: Layout
) -> Calling:
    """Return the way in which one call offers tools."""
    mode = options.tool_calling
    completes = is_completion(lm)
    mode = mode if isinstance(mode, str) else mode.get(model_of(lm), "auto")
    if mode == "native" and completes:
        raise InvalidOption(
            f"{lm.model} is a text-completion model, which cannot be sent tools",
            field="tool_calling",
            fix="Use tool_calling='prompted' or 'auto', or construct the LM with model_type='chat'.",
        )
    if mode == "native" or (mode == "auto" and not completes and calls_functions(lm, facts)):
        recovering = (
            _RECOVERING if options.formats is None else Calling(reads_text=True, formats=options.formats)
        )
        return recovering if options.recover else NATIVE
    by_prompt = Calling(
        "prompted", options.call_format, reads_text=True, layout=layout, formats=options.formats
    )
    if mode == "prompted" or completes or _REFUSED.get(lm) == model_of(lm):
        return by_prompt
    is_own = not isinstance(getattr(lm, "engine", None), str)  # an engine that the user made
    if is_own or is_known_without_functions(lm, settings, facts):
        return by_prompt
    return replace(by_prompt, mode="native", reads_text=options.recover, is_tentative=True)


def refuses_tools(error: BaseException) -> bool:
    """Return whether an endpoint's error says that it takes no tools at all."""
    status = getattr(error, "status", None) or getattr(error, "status_code", None)
    says_so = re.search(_REFUSALS, str(error), re.IGNORECASE) is not None
    return says_so and (status is None or status in _STATUSES)


def prompted_after(calling: Calling, lm: BaseLM, error: BaseException) -> Calling:
    """Return the calling to go on with after an endpoint refused tools, and remember it for the model."""
    reason = str(error).splitlines()[0][:200]
    _REFUSED.put(lm, model_of(lm))
    because = f"the endpoint refused tools ({reason}); the prompt describes them, now and in later calls"
    return replace(calling, mode="prompted", reads_text=True, is_tentative=False, because=because)
