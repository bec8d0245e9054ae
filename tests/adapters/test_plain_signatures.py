"""A signature without tool fields: byte for byte DSPy's request and parse, whatever the inputs (opt-in)."""

from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigadapt
from sigadapt.testing import Answer, LoopbackProvider

PAIRS: list[tuple[Any, Any, str]] = [
    (sigadapt.ChatAdapter, dspy.ChatAdapter, "[[ ## answer ## ]]\nx\n\n[[ ## completed ## ]]"),
    (sigadapt.JSONAdapter, dspy.JSONAdapter, '{"answer": "x"}'),
    (sigadapt.adapters.XMLAdapter, dspy.XMLAdapter, "<answer>x</answer>"),
]


class Plain(dspy.Signature):
    """Say something."""

    question: str = dspy.InputField()
    history: dspy.History | None = dspy.InputField(default=None)
    answer: str = dspy.OutputField()


@pytest.mark.parametrize(("ours", "theirs", "text"), PAIRS)
@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("reply", ["good", "unparsable"])
def test_request_and_parse_are_dspys(ours: Any, theirs: Any, text: str, engine: str, reply: str) -> None:
    """adapter-plug-in: A signature without tool fields sends DSPy's request.

    adapter-plug-in: A signature without tool fields is parsed as DSPy parses.
    """
    seen: list[Any] = []
    for adapter in (ours, theirs):
        with LoopbackProvider([Answer(text=text if reply == "good" else "nothing like it")]) as provider:
            lm = dspy.LM(**provider.lm_options("openai", engine=engine))
            with dspy.context(lm=lm, adapter=adapter()):
                try:
                    out: Any = dspy.Predict(Plain)(question="q", config={"temperature": 0.3})
                    outcome = str(out.toDict())
                except dspy.utils.exceptions.AdapterParseError as error:
                    outcome = str(error)
        seen.append((outcome, [(sent.path, sent.body) for sent in provider.received]))
    assert seen[0] == seen[1]


@given(
    st.text(),
    st.lists(st.fixed_dictionaries({"question": st.text(), "answer": st.text()}), max_size=2),
    st.sampled_from(PAIRS),
)
def test_any_prompt_is_dspys(question: str, demos: list[dict[str, str]], pair: tuple[Any, Any, str]) -> None:
    """adapter-plug-in: A signature without tool fields sends DSPy's request.

    adapter-plug-in: A signature without tool fields is parsed as DSPy parses.
    """
    ours, theirs, _ = pair
    inputs = {"question": question}
    assert ours().format(Plain, demos, inputs) == theirs().format(Plain, demos, inputs)
