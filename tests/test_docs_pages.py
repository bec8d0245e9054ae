"""Every page of docs/ runs: its Python blocks top to bottom in one namespace, without a key or a network.

An `output` block must be what the Python block before it prints. A block that cannot run has the comment
`<!-- not run: reason -->` before it.
"""

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dspy
import pytest

import sigadapt
from sigadapt import metrics, testing
from sigadapt.adapters.options import Options

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
OWN_TESTS = ("sources.md", "symptoms.md")  # test_docs_sources.py and test_docs_symptoms.py run each block alone
NOT_RUN: dict[str, list[str]] = {}
"""The blocks that do not run: the reasons by page."""

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
REASON = re.compile(r"<!-- not run: (.+?) -->\s*$")


class Block(NamedTuple):
    """A fenced block of a page, with the reason why it does not run."""

    language: str
    code: str
    line: int
    reason: str | None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        before = text[: match.start()]
        reason = REASON.search(before)
        code = textwrap.dedent(match["code"])
        yield Block(match["language"], code, before.count("\n") + 2, reason[1] if reason else None)


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


RUN = [
    page
    for page in PAGES
    if name(page) not in OWN_TESTS and any(block.language == "python" for block in blocks(page))
]


@pytest.mark.parametrize("page", RUN, ids=name)
def test_a_page_runs_and_prints_what_it_shows(
    page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """documentation: Every example runs."""
    monkeypatch.chdir(tmp_path)
    before: dict[str, Any] = {key: getattr(dspy.settings, key) for key in ("lm", "adapter", "callbacks")}
    namespace: dict[str, Any] = {"__name__": "page"}
    printed = ""
    try:
        for block in blocks(page):
            if block.language == "output":
                assert printed == block.code, f"{name(page)}, line {block.line}"
            elif block.language == "python" and block.reason is None:
                placed = "\n" * (block.line - 1) + block.code  # so that an error names the page's line
                exec(compile(placed, str(page), "exec"), namespace)  # noqa: S102  (our own page)
                printed = capsys.readouterr().out
    finally:
        dspy.configure(**before)


def test_few_blocks_do_not_run() -> None:
    """documentation: What does not run is listed."""
    found = {name(page): [block.reason for block in blocks(page) if block.reason] for page in PAGES}
    assert {page: reasons for page, reasons in found.items() if reasons} == NOT_RUN


GUIDES = [
    page for page in PAGES if name(page).startswith(("guides/", "start", "tutorial", "sources", "prompted"))
]
EXPLAINED = set(re.findall(r"\w+", " ".join(re.findall(r"```.*?```|`[^`]+`", "\n".join(page.read_text(encoding="utf-8") for page in GUIDES), re.DOTALL))))


def of_adapters() -> set[str]:
    adapters = (sigadapt.ChatAdapter, sigadapt.JSONAdapter, sigadapt.XMLAdapter, sigadapt.TwoStepAdapter)
    named = {each for adapter in adapters for each in inspect.signature(adapter).parameters}
    return named - {"unknown"}


@pytest.mark.parametrize(
    "names",
    [set(sigadapt.__all__), set(testing.__all__), {"compare", "ExactMatch", "SubsetMatch", "F1"}, of_adapters()],
    ids=["sigadapt", "testing", "metrics", "options"],
)
def test_every_public_name_is_in_a_guide(names: set[str]) -> None:
    """documentation: Every public name and option is in a guide."""
    assert sorted(names - EXPLAINED) == []
