"""What an adapter says of a signature: each thing once, compiled once, and the question as DSPy writes it."""

from collections.abc import Iterator
from typing import Any, Optional

import dspy
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import plan_of, prompt_of, question

import sigadapt
from sigadapt import ToolCalls, ToolDecls

CHAT, JSON, XML, BAML = (
    sigadapt.ChatAdapter(),
    sigadapt.JSONAdapter(),
    sigadapt.adapters.XMLAdapter(),
    sigadapt.adapters.BAMLAdapter(),
)


class Ask(dspy.Signature):
    """Ask."""

    question: str = dspy.InputField()
    context: str = dspy.InputField()
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


class Go(dspy.Signature):
    """Go."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls = dspy.OutputField()


@pytest.fixture(autouse=True)
def under_sigadapt() -> Iterator[None]:
    """`ToolDecls` asks DSPy's settings whose adapter is at work."""
    with dspy.context(adapter=CHAT):
        yield


def asked(adapter: Any, signature: Any, inputs: dict[str, Any]) -> str:
    return question(adapter, signature, prompt_of(adapter, signature), inputs)


def rest_of(signature: Any) -> Any:
    plan = plan_of(signature)
    assert plan is not None
    return plan.text_signature


def system_of(adapter: Any, signature: Any) -> str:
    return prompt_of(adapter, rest_of(signature)).system


texts = st.text() | st.sampled_from(
    ["", " ", "\n x \n", "[[ ## context ## ]]", "<b>", "\ue000", "{x}", "%s", "%"]
)


@pytest.mark.parametrize("adapter", [CHAT, JSON, XML, BAML])
@given(inputs=st.fixed_dictionaries({}, optional={"question": texts, "context": texts | st.lists(texts)}))
def test_the_template_is_dspys_text(adapter: Any, inputs: dict[str, Any]) -> None:
    """request-shaping: The values are shown as DSPy shows them."""
    said = asked(adapter, Ask, inputs).removesuffix(adapter.text_reminder(Ask)).rstrip()
    assert said == adapter.format_user_message_content(Ask, dict(inputs)).rstrip()


def test_a_method_of_the_users_own_is_asked_each_time() -> None:
    """request-shaping: The values are shown as DSPy shows them."""

    class Counting(sigadapt.ChatAdapter):
        def format_user_message_content(self, signature: Any, inputs: Any, *rest: Any, **more: Any) -> str:
            return f"{len(inputs['question'])} letters"

    assert asked(Counting(), Ask, {"question": "abc"}) == "3 letters"
    assert asked(Counting(), Ask, {"question": "abcd"}) == "4 letters"


@pytest.mark.parametrize("adapter", [CHAT, JSON, XML])
def test_descriptions_and_constraints_are_said_once(adapter: Any) -> None:
    """request-shaping: Descriptions and constraints are said once."""
    system, user = system_of(adapter, Told), asked(adapter, Told, {"question": "q", "hint": "h", "days": [1]})
    for fact in ("Count the people.", "may be wrong", "maximum length: 80", "list[int]", "in French", ": 9"):
        assert (system.count(fact), user.count(fact)) == (1, 0), fact
    assert system.endswith("\n\nTools: what there is to call\nTool calls: the calls")
    assert "`question`" not in system, "a text with a name has nothing to say"


def test_a_text_input_with_nothing_to_say_is_not_listed() -> None:
    """request-shaping: Descriptions and constraints are said once."""
    assert system_of(CHAT, Go) == "Go."


@pytest.mark.parametrize(
    ("adapter", "form"),
    [(CHAT, '"people": {"type": "integer"'), (JSON, "people"), (XML, "<people>"), (BAML, "people: int")],
)
def test_the_form_of_a_type_is_shown(adapter: Any, form: str) -> None:
    """request-shaping: The text outputs keep their format."""
    assert form in system_of(adapter, Typed)


@pytest.mark.parametrize(
    ("adapter", "form"), [(CHAT, "[[ ## note ## ]]"), (JSON, "JSON object"), (XML, "<note>")]
)
def test_the_form_of_texts_is_said_once(adapter: Any, form: str) -> None:
    """request-shaping: The text outputs keep their format."""
    assert system_of(adapter, Told).count(form) == 1
    assert not prompt_of(adapter, Told).reminds


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
        words = system_of(adapter, signature) + asked(adapter, rest_of(signature), {"question": "q"})
        if adapter is not BAML or not told:  # which writes `int or null`
            assert words.count("Union[int, NoneType]") <= told + 1
        assert "Union[str, NoneType]" not in words
        assert '"type": "string"}, {"type": "null"}' not in words
    assert rest_of(texts_alone).output_fields["answer"].annotation == str | None


def test_an_adapter_with_words_of_its_own_says_them() -> None:
    """request-shaping: An adapter with words of its own says them."""

    class Mine(sigadapt.ChatAdapter):
        def format_task_description(self, signature: Any) -> str:
            return "Hear, hear."

        def user_message_output_requirements(self, signature: Any) -> str:
            return "Answer in rhyme."

    assert "Hear, hear.\n\nTools: what there is to call" in system_of(Mine(), Told)
    assert asked(Mine(), Told, {"question": "q"}).endswith("Tool calls aside, answer in rhyme.")
    assert system_of(Mine(), Go) == "Hear, hear."


def test_a_system_message_of_its_own_is_sent() -> None:
    """request-shaping: An adapter with words of its own says them."""

    class Polite(sigadapt.ChatAdapter):
        def format_system_message(self, signature: Any) -> str:
            return f"Be polite.\n{super().format_system_message(signature)}"

    for signature in (Told, Go):
        assert system_of(Polite(), signature).startswith("Be polite.\nYour input fields are:")
    assert "Tools: what there is to call" in system_of(Polite(), Told)
    assert "Tool calls aside, respond" in asked(Polite(), Told, {"question": "q"})


def test_a_form_of_its_own_is_the_form_asked_for() -> None:
    """request-shaping: An adapter with words of its own says them."""

    class Marked(sigadapt.ChatAdapter):
        def format_field_with_value(self, fields_with_values: Any) -> str:
            return "\n".join(f"### {field.name}\n{value}" for field, value in fields_with_values.items())

    assert "### note\n{note}" in system_of(Marked(), Told)


def test_words_that_change_are_said_as_they_are_now() -> None:
    """request-shaping: An adapter with words of its own says them."""

    class Speaking(sigadapt.ChatAdapter):
        language = "French"

        def format_task_description(self, signature: Any) -> str:
            return f"Think in {self.language}."

        def user_message_output_requirements(self, signature: Any) -> str:
            return f"Answer in {self.language}."

    adapter: Any = Speaking()
    assert "Think in French." in system_of(adapter, Told)
    adapter.language = "German"
    assert "Think in German." in system_of(adapter, Told)
    assert asked(adapter, Told, {"question": "q"}).endswith("answer in German.")
    plain: Any = sigadapt.ChatAdapter()
    plain.format_task_description = lambda signature: "On the instance."  # pyright: ignore[reportUnknownLambdaType]
    assert "On the instance." in system_of(plain, Told)


def test_a_prompt_is_compiled_once_an_adapter() -> None:
    """call-cost: What does not change from call to call is compiled once."""
    rest = rest_of(Told)
    assert prompt_of(CHAT, rest) is prompt_of(CHAT, rest)
    assert prompt_of(JSON, rest) != prompt_of(CHAT, rest)
