"""The site of docs/ builds from the checkout alone, and a reader's browser fetches nothing from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sigadapt
from sigadapt import (
    SigadaptError,
    adapters,
    errors,
    events,
    listeners,
    logs,
    response,
    server_tools,
    testing,
    trust,
    ui,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
ASSET = re.compile(r"<(?:script|img|iframe|link|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^\"'> ]+")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    target = tmp_path_factory.mktemp("site")
    # Every proxy leads nowhere, so that a fetch at build time fails at once.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    done = subprocess.run(  # noqa: S603  (our own command)
        command, cwd=ROOT, env=os.environ | nowhere, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_the_site_builds_without_a_warning(site: Path) -> None:
    """The site builds without a warning and without a network."""
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    written = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert {path.with_suffix(".html").as_posix() for path in written} <= pages
    assert not list(site.rglob("*.py"))


def test_the_site_lists_its_pages_for_language_models(site: Path) -> None:
    """The site lists its pages for language models."""
    text = (site / "llms.txt").read_text(encoding="utf-8")
    entries = re.findall(r"^- \[(.+?)\]\((\S+\.html)\): (.+)$", text, re.MULTILINE)
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    pages = [page.replace(".md", ".html") for page in re.findall(r"- (\S+\.md)$", nav, re.MULTILINE)]
    assert sorted(address for _, address, _ in entries) == sorted(pages)
    assert ("Start", "start.html") in [entry[:2] for entry in entries]
    assert all((site / address).is_file() for _, address, _ in entries)


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    """A page of the site fetches nothing from elsewhere."""
    pages = {path.name: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert {name: found for name, text in pages.items() if (found := ASSET.findall(text))} == {}


def test_the_search_works_from_a_folder(site: Path) -> None:
    """The search works from a folder."""
    assert (site / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index = {")
    assert (site / "assets" / "iframe-worker.js").exists()
    assert 'src="../assets/iframe-worker.js"' in (site / "guides" / "tools.html").read_text(encoding="utf-8")


def test_the_reference_has_every_public_name(site: Path) -> None:
    """The reference has every public name."""
    reference = "".join(path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html"))
    names = [f"sigadapt.{name}" for name in sigadapt.__all__]
    for module in (adapters, events, listeners, logs, response, server_tools, testing, trust, ui):
        places = {*module.__all__} - {*sigadapt.__all__}
        names += [f"{module.__name__}.{name}" for name in places]
    raised = {each.__name__ for each in SigadaptError.__subclasses__() if each.__module__ == errors.__name__}
    names += [f"sigadapt.errors.{name}" for name in raised - {*sigadapt.__all__}]
    names += [f"sigadapt.errors.{name}" for name in ("AnswerCode", "EmptyAnswer", "UndeclaredTypeWarning")]
    names += ["sigadapt.metrics.Credit", "sigadapt.runs.WaitingStore"]
    assert [name for name in names if f'id="{name}"' not in reference] == []
    assert "*values" not in re.sub(r"<[^>]+>", "", reference)  # the constructor of a model shows its fields
