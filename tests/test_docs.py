"""The pages and sections that programs write are what the programs write today."""

import importlib.util
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


def cells(page: str) -> list[list[str]]:
    return [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]


def test_the_section_of_faulty_answers_is_what_its_recipe_writes() -> None:
    """tool-call-outputs: No faulty answer is taken for a good one."""
    arrives: Any = pytest.importorskip("benchmarks.arrives")
    measured: Any = pytest.importorskip("benchmarks.measured")
    ends = arrives.endings()
    now, committed = arrives.section(arrives.rows(), ends), measured.section("arrives")
    assert [row[1] for row in cells(now) if row[0].startswith("| **")] == ["**0**"]
    assert ends[-1][1] == "**0**"
    # another version of DSPy or LiteLLM may do otherwise; sigadapt may not
    assert [row[:2] for row in cells(committed)] == [row[:2] for row in cells(now)]


def test_the_page_of_text_formats_shows_every_format() -> None:
    """text-calls: Every format of the table is read."""
    formats: Any = script("make_text_formats")
    page = formats.page()
    assert [each.name for each in FORMATS if f"## {each.name}\n" not in page] == []
    assert [*formats.SERVERS_AND_MODELS] == [each.name for each in FORMATS]
    assert all(servers and models for servers, models in formats.SERVERS_AND_MODELS.values())
