"""The formats of an adapter: which calls it reads from text, whole and streamed."""

from typing import Any

import dspy
import pytest
from support import May, get_weather

import sigadapt
from sigadapt.errors import InvalidOption
from sigadapt.response import ResponseTemplate
from sigadapt.testing import Answer, LoopbackProvider

CALLS = {"open": "<do>", "close": "</do>", "content": "json", "transform": {"function": "{content}"}}
TEMPLATE = ResponseTemplate({"start_anchor": "<assistant>", "fields": {"tool_calls": CALLS}})
CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
OWN = f"<do>{CALL}</do>"
HERMES = f"<tool_call>{CALL}</tool_call>"
# What the model writes, the formats that are read, and whether a call is read.
TEXTS: list[tuple[str, list[Any] | None, bool]] = [
    (OWN, [TEMPLATE], True),
    (OWN, ["hermes", TEMPLATE], True),
    (HERMES, ["hermes"], True),
    (HERMES, None, True),
    (HERMES, ["kimi-k2"], False),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "options", [{"recover": True}, {"tool_calling": "prompted"}], ids=["recover", "prompted"]
)
@pytest.mark.parametrize(("text", "formats", "is_call"), TEXTS)
def test_an_adapter_reads_the_formats_that_it_is_given(
    text: str, formats: list[Any] | None, options: dict[str, Any], *, is_call: bool, stream: bool
) -> None:
    """text-calls: A model's own template is a format"""
    with LoopbackProvider([Answer(text=text)]) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(formats=formats, **options)):
            program: Any = dspy.Predict(May)
            inputs: dict[str, Any] = {"question": "?", "tools": [get_weather]}
            out: Any
            if stream:
                last: Any = list(sigadapt.stream_sync(program, **inputs))[-1]
                out = last.prediction
            else:
                out = program(**inputs)
    calls = [(call.name, call.args) for call in out.calls or ()]
    assert calls == ([("get_weather", {"city": "Paris"})] if is_call else [])
    assert is_call or out.answer == text


def test_formats_that_nothing_reads_are_refused() -> None:
    """adapter-plug-in: A value that an option does not take is refused."""
    with pytest.raises(InvalidOption, match="recover=True"):
        sigadapt.ChatAdapter(formats=["hermes"], tool_calling="native")
    with pytest.raises(InvalidOption, match="hermes"):
        sigadapt.ChatAdapter(formats=["hermess"])
