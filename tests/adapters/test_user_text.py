"""The template for the user's message gives what DSPy's adapters give, for any texts."""

from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigadapt
from sigadapt.adapters.memo import Memo
from sigadapt.adapters.user_text import user_text


class Ask(dspy.Signature):
    """Ask."""

    question: str = dspy.InputField()
    context: str = dspy.InputField()
    answer: str = dspy.OutputField()


texts = st.text() | st.sampled_from(["", " ", "\n x \n", "[[ ## context ## ]]", "<b>", "\ue000", "{x}"])


@pytest.mark.parametrize(
    "adapter", [sigadapt.ChatAdapter(), sigadapt.JSONAdapter(), sigadapt.XMLAdapter(), sigadapt.BAMLAdapter()]
)
@given(inputs=st.fixed_dictionaries({}, optional={"question": texts, "context": texts | st.lists(texts)}))
def test_the_template_is_dspys_text(adapter: Any, inputs: dict[str, Any]) -> None:
    """request-shaping: The text outputs keep their format."""
    assert user_text(adapter, Ask, inputs) == adapter.format_user_message_content(Ask, dict(inputs))


def test_a_method_of_the_users_own_is_asked_each_time() -> None:
    class Counting(sigadapt.ChatAdapter):
        def format_user_message_content(self, signature: Any, inputs: Any, *rest: Any, **more: Any) -> str:
            return f"{len(inputs['question'])} letters"

    assert user_text(Counting(), Ask, {"question": "abc"}) == "3 letters"
    assert user_text(Counting(), Ask, {"question": "abcd"}) == "4 letters"


def test_a_memo_is_bounded_and_goes_by_identity() -> None:
    made: list[int] = []
    memo = Memo(lambda key: made.append(1) or len(key))
    keys = [[0] * size for size in range(1000)]
    assert [memo(key) for key in keys] == list(range(1000))
    assert len(memo._known) <= 256  # pyright: ignore[reportPrivateUsage]
    same = keys[-1]
    before = len(made)
    assert (memo(same), memo(list(same))) == (999, 999)
    assert len(made) == before + 1
