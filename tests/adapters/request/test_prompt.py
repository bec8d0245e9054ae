"""What an adapter says of a signature: each thing once, compiled once, and the question as DSPy writes it."""

from typing import Any, Optional

import dspy
import pydantic
import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from sending import send
from support import Must

import sigadapt
from sigadapt import ToolCalls, ToolDecls
from sigadapt.testing import Answer, Call

CHAT, JSON, XML, BAML = (
    sigadapt.ChatAdapter(),
    sigadapt.JSONAdapter(),
    sigadapt.adapters.XMLAdapter(),
    sigadapt.adapters.BAMLAdapter(),
)


class Ask(dspy.Signature):
    """Ask."""

    question: str = dspy.InputField()
    context: list[str] = dspy.InputField()
    answer: str = dspy.OutputField()


class Place(pydantic.BaseModel):
    people: int


class Told(dspy.Signature):
    """Count the people."""

    question: str = dspy.InputField()
    hint: str = dspy.InputField(desc="may be wrong", max_length=80)
    days: list[int] = dspy.InputField()
    tools: ToolDecls = dspy.InputField(desc="what there is to call")
    note: str = dspy.OutputField(desc="in French", max_length=9)
    calls: ToolCalls | None = dspy.OutputField(desc="the calls")


class Typed(dspy.Signature):
    """Find it."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    place: Place = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


def asked(adapter: Any, signature: Any, **inputs: Any) -> tuple[str, str]:
    """The instructions and the question of a request."""
    answer = Answer(calls=[Call("get_weather", {"city": "Rome"})])
    body = send(answer=answer, signature=signature, adapter=adapter, **inputs).body
    return body["messages"][0]["content"], body["messages"][-1]["content"]


texts = st.text() | st.sampled_from(
    ["", " ", "\n x \n", "[[ ## context ## ]]", "<b>", "\ue000", "{x}", "%s", "%"]
)


class WithTools(Ask):
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls | None = dspy.OutputField()


@pytest.mark.parametrize("adapter", [CHAT, JSON, XML, BAML])
@settings(max_examples=share(60))
@given(inputs=st.fixed_dictionaries({"question": texts, "context": st.lists(texts)}))
def test_the_template_is_dspys_text(adapter: Any, inputs: dict[str, Any]) -> None:
    """request-shaping: The values are shown as DSPy shows them."""
    _, said = asked(adapter, WithTools, **inputs)
    assert said.startswith(adapter.format_user_message_content(Ask, dict(inputs)).rstrip())


@pytest.mark.parametrize("adapter", [CHAT, JSON, XML])
def test_descriptions_and_constraints_are_said_once(adapter: Any) -> None:
    """request-shaping: Descriptions and constraints are said once."""
    system, user = asked(adapter, Told, hint="h", days=[1])
    for fact in ("Count the people.", "may be wrong", "maximum length: 80", "list[int]", "in French", ": 9"):
        assert (system.count(fact), user.count(fact)) == (1, 0), fact
    assert system.endswith("\n\nTools: what there is to call\nTool calls: the calls")
    assert "`question`" not in system, "a text with a name has nothing to say"


@pytest.mark.parametrize(
    ("adapter", "form"),
    [(CHAT, '"people": {"type": "integer"'), (JSON, "people"), (XML, "<people>"), (BAML, "people: int")],
)
def test_the_form_of_a_type_is_shown(adapter: Any, form: str) -> None:
    """request-shaping: The text outputs keep their format."""
    assert form in asked(adapter, Typed)[0]


class Maybe(dspy.Signature):
    """Answer."""

    question: str | None = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    note: Optional[str] = dspy.OutputField(desc="in French")  # noqa: UP045  (both spellings)
    count: int | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


@pytest.mark.parametrize("adapter", [CHAT, JSON, XML, BAML])
def test_an_optional_text_is_told_as_a_text(adapter: Any) -> None:
    """request-shaping: An optional text is told as a text."""
    texts_alone: Any = Maybe.delete("count")
    for signature, told in ((texts_alone, 0), (Maybe, 1)):
        words = "".join(asked(adapter, signature))
        if adapter is not BAML or not told:  # which writes `int or null`
            assert words.count("Union[int, NoneType]") <= told + 1
        assert "Union[str, NoneType]" not in words
        assert '"type": "string"}, {"type": "null"}' not in words


def test_a_system_message_of_its_own_is_sent() -> None:
    """request-shaping: An adapter with words of its own says them."""

    class Polite(sigadapt.ChatAdapter):
        def format_system_message(self, signature: Any) -> str:
            return f"Be polite.\n{super().format_system_message(signature)}"

    for signature in (Told, Must):
        system, question = asked(Polite(), signature, hint="h", days=[1])
        assert system.startswith("Be polite.\nYour input fields are:")
        assert ("Tools: what there is to call" in system) == ("Tool calls aside, respond" in question)
    assert "Tool calls aside, respond" in asked(Polite(), Told, hint="h", days=[1])[1]
