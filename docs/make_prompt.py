"""Write docs/prompt.md: the length of three phrasings of the prompt, on the questions of a public benchmark.

`SIGADAPT_CORPUS` names the folder of the questions. Run it with `python3 tasks.py site --write`.
"""  # noqa: INP001  (a script)

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import dspy
import litellm

import sigadapt
from sigadapt.adapters.plan import plan_of
from sigadapt.adapters.request.prompt import describe, form_of, prompt_of, without_optional_texts

PAGE = Path(__file__).with_name("prompt.md")
ADAPTER, DSPYS = sigadapt.ChatAdapter(), dspy.ChatAdapter()
TURNS = 5


class Calls(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: sigadapt.ToolDecls = dspy.InputField()
    calls: sigadapt.ToolCalls = dspy.OutputField()


class Answer(dspy.Signature):
    """Answer, or pick the tools that do."""

    question: str = dspy.InputField()
    tools: sigadapt.ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: sigadapt.ToolCalls | None = dspy.OutputField()


class Described(dspy.Signature):
    """Answer, or pick the tools that do."""

    question: str = dspy.InputField(desc="what the customer wrote", max_length=2000)
    tools: sigadapt.ToolDecls = dspy.InputField()
    answer: str = dspy.OutputField(desc="for the customer, in their language", max_length=400)
    urgency: int = dspy.OutputField(desc="how soon a person should look", ge=1, le=5)
    calls: sigadapt.ToolCalls | None = dspy.OutputField()


SIGNATURES = {
    "calls alone": Calls,
    "an answer in words, or calls": Answer,
    "described fields, a number among them": Described,
}


class Words(NamedTuple):
    """The words on a signature: in the system text, and at the end of each question or of the last one."""

    system: str
    reminder: str = ""
    last: str = ""


def dspys_own(rest: Any) -> Words:
    """Return the words of DSPy's adapter on the signature without its tool fields, as DSPy calls it."""
    return Words(DSPYS.format_system_message(rest), last=DSPYS.user_message_output_requirements(rest))


def made_true(rest: Any) -> Words:
    """Return DSPy's words, corrected for tools and without empty lists of fields."""
    if not rest.output_fields:
        fields = dspy.adapters.utils.get_field_description_string(rest.input_fields)
        return Words(f"{rest.instructions}\n\nYour input fields are:\n{fields}")
    parts = (DSPYS.format_field_description, DSPYS.format_field_structure, DSPYS.format_task_description)
    description, structure, task = (part(rest) for part in parts)
    return Words(
        f"{description}\n{aside(structure)}\n{task}", aside(DSPYS.user_message_output_requirements(rest))
    )


def form_with_each_question(rest: Any) -> Words:
    """Return each thing once in the system text, except the form, which ends each question."""
    rest = without_optional_texts(rest)
    return Words(describe(rest), aside(form_of(ADAPTER, rest)) if rest.output_fields else "")


def each_once(rest: Any) -> Words:
    """Return each thing once in the system text, as sigadapt sends it."""
    return Words(prompt_of(ADAPTER, rest).system)


PHRASINGS: dict[str, Callable[[Any], Words]] = {
    "DSPy 3.4.1, for comparison": dspys_own,
    "1. DSPy's words, corrected for tools": made_true,
    "2. each thing once, the form with each question": form_with_each_question,
    "**3. each thing once, in the system text**": each_once,
}


def aside(words: str) -> str:
    """Return the words on a form, for use beside tools."""
    return f"Tool calls aside, {words[:1].lower()}{words[1:]}"


def questions() -> Iterator[str]:
    """Yield the first question of each case of the benchmark."""
    for page in sorted((Path(os.environ["SIGADAPT_CORPUS"]) / "bfcl").glob("*.json")):
        for line in page.read_text(encoding="utf-8").splitlines():
            messages = json.loads(line)["question"][0]
            yield "\n".join(message["content"] for message in messages)


def prompts(words: Words, asked: Sequence[str], turns: int) -> Iterator[str]:
    """Yield the prompt of the last request of each conversation: system text and all questions."""
    for start in range(0, len(asked) - turns + 1, turns):
        said = asked[start : start + turns]
        shown = [f"[[ ## question ## ]]\n{text}" for text in said]
        ends = [words.reminder] * (turns - 1) + [words.reminder or words.last]
        yield "\n".join(
            [words.system, *(f"{text}\n\n{end}".strip() for text, end in zip(shown, ends, strict=True))]
        )


def size(texts: Sequence[str]) -> tuple[float, float]:
    """Return the mean length of texts, in characters and in tokens of GPT-4o."""
    tokens = sum(len(litellm.encode(model="gpt-4o", text=text)) for text in texts)
    return sum(map(len, texts)) / len(texts), tokens / len(texts)


def table(asked: Sequence[str], signature: Any) -> list[list[str]]:
    """Return one row for each phrasing: characters and tokens for one question and for a conversation."""
    plan = plan_of(signature)
    assert plan is not None  # noqa: S101  (each of the signatures here has tool fields)
    rows: list[list[str]] = []
    for name, phrasing in PHRASINGS.items():
        words = phrasing(plan.text_signature)
        one, many = (size(list(prompts(words, asked, turns))) for turns in (1, TURNS))
        rows.append([name, *(f"{number:,.0f}" for number in (*one, *many))])
    return rows


def page(asked: Sequence[str]) -> str:
    """Return the whole page."""
    alone = size(list(asked))
    head = ["phrasing", "characters", "tokens", f"characters, {TURNS} turns", f"tokens, {TURNS} turns"]
    tables: list[str] = []
    for title, signature in SIGNATURES.items():
        lines = [head, ["---", *["---:"] * 4], *table(asked, signature)]
        tables.append(
            f"## {title.capitalize()}\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines)
        )
    numbers = {"count": f"{len(asked):,}", "characters": f"{alone[0]:.0f}", "tokens": f"{alone[1]:.0f}"}
    plan = plan_of(Described)
    shown = "" if plan is None else prompt_of(ADAPTER, plan.text_signature).system
    quoted = "\n".join(f"    {line}".rstrip() for line in shown.splitlines())
    return INTRODUCTION.format(**numbers) + "\n\n".join(tables) + NOTES + quoted + "\n"


INTRODUCTION = """\
# What the prompt says

With native tool calling, tools travel in their own field. The prompt holds the rest: instructions,
fields, constraints, and the form of text outputs. This page compares three ways to phrase it, with three
signatures under `ChatAdapter`, on {count} questions of the Berkeley Function-Calling Leaderboard v4. The mean
question has {characters} characters or {tokens} tokens. The figures are means over all of a request's text
except its tools, with GPT-4o's tokenizer. In a conversation, each request repeats all earlier questions.
`python3 tasks.py site --write` writes the page.

"""

NOTES = """

## Which phrasing sigadapt sends

The third. In every column it's the shortest, or one token longer than the shortest. It says each thing
once: the instructions, each description, each constraint, each type other than text, and the form. It leaves
out empty lists of fields, text fields with nothing but a name (the name is above the value anyway), repeated
forms, and the sentence that calls the instructions the objective.

The second is as long for one question, but repeats the form with each turn. The first states the form twice
for one question, and once more for each turn. The third also lets a provider's prompt cache keep the system
text while the questions change. What speaks for the other two: the model reads the form again with each
question, as with DSPy. A reminder with only the last question would defeat the cache, because the next
request would begin differently.

An adapter with its own words for fields or forms (`BAMLAdapter`, or your own subclass) sends them all,
where DSPy has them. Here's the third phrasing of the third signature:

"""


def main(write: Callable[[str], object] = lambda text: PAGE.write_text(text, encoding="utf-8")) -> None:
    """Measure and write the page, if there is a corpus."""
    if not os.environ.get("SIGADAPT_CORPUS"):
        print("docs/prompt.md: left as it is, SIGADAPT_CORPUS names no recordings (docs/corpus.md)")  # noqa: T201
        return
    write(page(list(questions())))


if __name__ == "__main__":
    main()
