"""The pages show what the programs of examples/ print."""

import re
from pathlib import Path

import pytest
from test_docs import DOCS
from test_examples import printed

pytestmark = pytest.mark.slow

PAGES = sorted(DOCS.rglob("*.md"))
WHOLE = re.compile(r"```py title=\"(examples/.+?)\"\n(.*?)```", re.DOTALL)
SHOWN = re.compile(r"```console\n\$ python examples/(.*?)\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if SHOWN.search(page.read_text("utf-8"))], ids=lambda page: page.stem
)
def test_a_program_prints_what_its_page_shows(page: Path, tmp_path: Path) -> None:
    """A program prints what its page shows."""
    for command, output in SHOWN.findall(page.read_text("utf-8")):
        assert printed(command, tmp_path) == output


def test_every_program_that_a_page_shows_is_there() -> None:
    """A program prints what its page shows."""
    named = [
        path for page in PAGES for path in re.findall(r"<!-- program: (.+?) -->", page.read_text("utf-8"))
    ]
    assert [path for path in named if not (DOCS.parent / path).is_file()] == []


def test_a_page_shows_a_program_as_it_is() -> None:
    """A program prints what its page shows."""
    shown = [found for page in PAGES for found in WHOLE.findall(page.read_text("utf-8"))]
    assert [path for path, code in shown if code != (DOCS.parent / path).read_text("utf-8")] == []
    assert shown
