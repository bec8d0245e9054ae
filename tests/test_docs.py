"""The pages of docs/ that scripts write are what the scripts write today."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from internals import FORMATS

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parent.parent / "docs"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_of(module: Any) -> str:
    """Return the one page that a script writes."""
    written: list[str] = []
    module.main(written.append)
    (page,) = written
    return page


def cells(page: str) -> list[list[str]]:
    return [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]


def test_the_page_of_faults_is_what_its_script_writes() -> None:
    """tool-call-outputs: No faulty answer is taken for a good one."""
    faults: Any = script("make_faults")
    page, committed = page_of(faults), faults.PAGE.read_text(encoding="utf-8")
    sums = [row for row in cells(page) if row[0].startswith("| **")]
    assert [row[1] for row in sums] == ["**0**", "**0**"]
    if f"Measured with {faults.versions()}." in committed:
        assert committed == page
    else:  # another version of DSPy or LiteLLM may do otherwise; sigadapt may not
        assert [row[:2] for row in cells(committed)] == [row[:2] for row in cells(page)]


def test_the_page_of_text_formats_shows_every_format() -> None:
    """text-calls: Every format of the table is read."""
    formats: Any = script("make_text_formats")
    page = page_of(formats)
    assert [each.name for each in FORMATS if f"## {each.name}\n" not in page] == []
    assert [*formats.SERVERS_AND_MODELS] == [each.name for each in FORMATS]
    assert all(servers and models for servers, models in formats.SERVERS_AND_MODELS.values())
    assert page == formats.PAGE.read_text(encoding="utf-8")


@pytest.mark.skipif("SIGADAPT_CORPUS" not in os.environ, reason="the questions are those of the corpus")
def test_the_page_of_the_prompt_is_what_its_script_writes() -> None:
    """request-shaping: Descriptions and constraints are said once."""
    prompt: Any = script("make_prompt")
    page = page_of(prompt)
    assert page == prompt.PAGE.read_text(encoding="utf-8")
    for lines in cells(page)[2:6], cells(page)[8:12], cells(page)[14:18]:
        *others, chosen = [[float(cell.strip(" |").replace(",", "")) for cell in line[1:]] for line in lines]
        assert all(ours <= theirs + 1 for row in others for ours, theirs in zip(chosen, row, strict=True))


@pytest.mark.skipif("SIGADAPT_CORPUS" not in os.environ, reason="the answers are those of the corpus")
def test_what_a_real_model_sent_is_what_the_corpus_holds() -> None:
    """documentation: Recorded answers of real models are on a page."""
    real: Any = script("make_real_answers")
    assert page_of(real) == real.PAGE.read_text(encoding="utf-8")
