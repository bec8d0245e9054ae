"""What instructions have in common, and what each row has besides."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

import inspect
from typing import Any

import dspy
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from logs.made_logs import CITIES, asks, log

from sigadapt.logs import Adopted, adopt
from sigadapt.logs.adoption.prompts import common_prompt, with_context
from sigadapt.testing import Answer, LoopbackProvider

COMMON = "You are a weather desk. Use the tools and be polite.\n\nNever guess."


def rows(*prompts: str | None) -> list[Any]:
    return [{"system": prompt, "conversation": str(number)} for number, prompt in enumerate(prompts)]


def logged(prompts: list[str]) -> Adopted:
    lines: list[Any] = []
    for city, prompt in zip(CITIES, prompts, strict=False):
        lines += log(asks(f"Weather in {city}?", "get_weather", {"city": city}), system=prompt)
    return adopt(lines)


def systems_sent(adopted: Adopted) -> dict[str, str]:
    """The system message that is sent for each question."""
    sent: dict[str, str] = {}
    with LoopbackProvider([Answer(text="ok")]) as provider:
        for row in adopted.rows:
            with dspy.context(lm=dspy.LM(**provider.lm_options("openai"))):
                adopted.program(**row.inputs())
            first = provider.received[-1].body["messages"][0]
            sent[row.question] = first["content"] if first["role"] == "system" else ""
    return sent


def test_what_differs_is_context() -> None:
    """logs: Instructions that most rows have are the docstring"""
    for template in (f"{COMMON}\n\nToday is {{}}.", f"Today is {{}}.\n\n{COMMON}", f"{COMMON} Hi, {{}}!"):
        prompts = [template.format(city) for city in CITIES]
        adopted = logged(prompts)
        assert adopted.prompt.text == COMMON
        assert all(len(row.context) < 20 for row in adopted.rows)
        assert systems_sent(adopted) == {
            f"Weather in {city}?": prompt for city, prompt in zip(CITIES, prompts, strict=True)
        }


def test_another_text_is_the_rows_own() -> None:
    """logs: Instructions that most rows have are the docstring"""
    prompts = [COMMON] * 5 + ["You are a bank.", "", COMMON]
    adopted = logged(prompts)
    assert adopted.prompt.text == COMMON
    assert systems_sent(adopted) == {
        f"Weather in {city}?": prompt for city, prompt in zip(CITIES, prompts, strict=True)
    }


def test_no_instructions() -> None:
    """logs: Instructions that most rows have are the docstring"""
    adopted = logged([""] * 8)
    assert adopted.prompt.text == ""
    assert {*systems_sent(adopted).values()} == {""}
    changed: Any = adopted.program.deepcopy()
    changed.turn.signature = changed.turn.signature.with_instructions("SPEAK DUTCH.")
    adopted.program = changed
    assert {*systems_sent(adopted).values()} == {"SPEAK DUTCH."}


def test_one_conversation_is_no_rule() -> None:
    """logs: Instructions that most rows have are the docstring"""
    assert common_prompt(rows("A. B.", "A. C.", "D.")).text == "A."
    assert common_prompt(rows("A.", None, None)).text == ""
    assert common_prompt(rows("A. B.")).text == "A. B."
    assert common_prompt(rows("A.", "B.", "C.")).text == ""
    assert common_prompt([]).text == ""


WORDS = st.text("ab.\n \t", max_size=30)


@settings(deadline=None, max_examples=share(200))
@given(st.lists(WORDS, min_size=1, max_size=6))
def test_no_word_is_lost(prompts: list[str]) -> None:
    """logs: Instructions that most rows have are the docstring"""
    common = common_prompt(rows(*prompts))
    assert inspect.cleandoc(common.text) == common.text
    for prompt in prompts:
        parts = common.parts_of(prompt)
        text = parts.get("instructions", common.text)
        again = with_context(text, parts.get("context", ""), context_first=common.context_first)
        assert again.strip() == prompt.strip()
