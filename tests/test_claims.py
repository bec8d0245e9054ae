"""What the README and the docs claim is shown by a command, and their figures stand on a page."""

import ast
import re
from pathlib import Path

import pytest
from internals import FORMATS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CLAIMS = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_every_command_of_the_claims_is_there() -> None:
    """Every claim names the command that shows it."""
    rows = [row for row in CLAIMS.splitlines() if row.startswith("| ") and "Shown by" not in row]
    recipes = set(
        re.findall(r"^\| `(\w+)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    for row in rows:
        (command,) = re.findall(r"`((?:pytest|python3) [^`]+)` \|$", row)
        if command.startswith("python3 -m "):
            assert (ROOT / f"{command.split()[2].replace('.', '/')}.py").exists()
            continue
        if command.startswith("python3 tasks.py "):
            assert command.split()[2] in recipes
            continue
        for place in command.split()[1:]:
            path, _, name = place.partition("::")
            assert (ROOT / path).exists(), place
            if name:
                tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
                assert name in {getattr(node, "name", None) for node in ast.walk(tree)}, place


def test_every_bold_claim_of_the_readme_is_in_the_table() -> None:
    """Every claim names the command that shows it."""
    for claim in re.findall(r"^- \*\*([^*]+)\.\*\*", README, re.MULTILINE):
        assert f"**{claim}" in CLAIMS


@pytest.mark.parametrize("text", [README, CLAIMS], ids=["README", "claims"])
def test_formats_are_counted(text: str) -> None:
    """Figures stand on a page."""
    assert {int(number) for number in re.findall(r"(\d+) (?:text )?formats", text)} == {len(FORMATS)}


def test_the_readme_s_figures_stand_on_a_page() -> None:
    """Figures stand on a page."""
    assert not re.search(r"\d µs|times sigadapt's", README), (
        "a figure of the costs stands on docs/benchmarks.md alone, with its date"
    )
    figures = set(re.findall(r"\d\d,\d{3}|\d,\d{3}", README)) - {"20,000", "4,800"}
    measured = page("answers.md") + page("evidence.md")
    assert {number for number in figures if not re.search(number.replace(",", ",?"), measured)} == set()
    faulty, passed, litellm = re.findall(
        r"Of (\d+) faulty answers.*?returned (\d+) as good calls \((\d+)", README, re.DOTALL
    )[0]
    assert f"returned as good ones, of {faulty}** | **0** | **{passed}** | **{litellm}**" in page("faults.md")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_is_installed_from_an_index(path: Path) -> None:
    """Nobody is told to install what no index has."""
    assert not re.search(r"pip install (-\w+ )*['\"]?sigadapt", path.read_text(encoding="utf-8"))
