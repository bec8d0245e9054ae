"""The figures of the README stand on the page of what is measured."""

import re
from pathlib import Path

import pytest
from internals import FORMATS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_formats_are_counted() -> None:
    """Figures stand on a page."""
    assert {int(number) for number in re.findall(r"(\d+) (?:text )?formats", README)} <= {len(FORMATS)}


def test_the_readme_s_figures_stand_on_a_page() -> None:
    """Figures stand on a page."""
    assert not re.search(r"\d µs|times sigadapt's", README), "the README names no cost"
    measured = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    figures = set(re.findall(r"\d\d,\d{3}|\d,\d{3}", README))
    assert {number for number in figures if not re.search(number.replace(",", ",?"), measured)} == set()
    for faulty, passed in re.findall(r"Of (\d+) faulty answers.*?returns (\d+)", README, re.DOTALL):
        assert f"returned as good ones, of {faulty}** | **0** | **{passed}** |" in measured


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_is_installed_from_an_index(path: Path) -> None:
    """Nobody is told to install what no index has."""
    assert not re.search(r"pip install (-\w+ )*['\"]?sigadapt", path.read_text(encoding="utf-8"))
