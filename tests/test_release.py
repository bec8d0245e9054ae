"""The checks of `tasks.py release`, on what is right and on what is wrong."""

import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(name="release")
def _release(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PACKAGE = '__version__ = "1.2.0"\n'
CHANGELOG = "# Changelog\n\n## [1.2.0] - 2026-11-21\n\n### Added\n\n- More.\n\n## [1.1.0] - 2026-10-01\n"


@pytest.mark.parametrize(
    ("package", "changelog", "tags", "reasons"),
    [
        (PACKAGE, CHANGELOG, [], []),
        (PACKAGE, CHANGELOG.replace("2026-11-21", "soon"), [], ["no date"]),
        (PACKAGE.replace("1.2.0", "1.3.0"), CHANGELOG, [], ["1.3.0, and the first entry"]),
        (PACKAGE, CHANGELOG.replace("### Added\n\n- More.\n\n", ""), [], ["says nothing"]),
        (PACKAGE, CHANGELOG.replace("### Added", "The first one.\n\n### Added"), [], []),
        (PACKAGE, CHANGELOG, ["v1.1.0", "v1.2.0"], ["v1.2.0 is there already"]),
        ("", CHANGELOG, [], ["no __version__"]),
    ],
)
def test_a_wrong_version_is_found(
    release: Any, package: str, changelog: str, tags: list[str], reasons: list[str]
) -> None:
    """A wrong version or changelog is found."""
    faults = list(release.faults_of_version(package, changelog, tags))
    assert len(faults) == len(reasons)
    assert all(reason in fault for reason, fault in zip(reasons, faults, strict=True))


def test_a_date_and_an_address_are_the_last_steps(release: Any) -> None:
    """A rehearsal lists what is left to do."""
    undated = CHANGELOG.replace("2026-11-21", "Unreleased")
    pages = {"pyproject.toml": 'Repository = "https://example.invalid/s"\n', "docs/index.md": "a page\n"}
    date, address = release.last_steps(undated, pages)
    readme = {
        "README.md": "# s\n\n`git clone https://example.invalid/s`\n",
        "docs/index.md": "https://x.test/s\n",
    }
    (fault,) = release.last_steps(CHANGELOG, readme)
    assert fault.startswith("README.md has the placeholder of an address, line 3")
    assert date == "the entry of 1.2.0 in CHANGELOG.md has no date, but 'Unreleased'"
    assert address.startswith("pyproject.toml has the placeholder of an address, line 1")
    assert list(release.last_steps(CHANGELOG, {"docs/index.md": "a page\n"})) == []
    older = CHANGELOG.replace("2026-10-01", "Unreleased")
    assert list(release.last_steps(older, {})) == []  # only the first entry is released
    assert release.verdict([], [date, address]).splitlines() == [
        "",
        "To do before the release:",
        date,
        address,
        "",
        "Ready to be released, once that is done.",
    ]
    assert release.verdict(["a fault"], [date]).endswith("\nNot ready to be released:\na fault")
    assert release.verdict([], []) == "\nReady to be released."


def tracked() -> list[str]:
    command = ["git", "ls-files"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    if listing.returncode:
        pytest.skip("not a git checkout")
    return listing.stdout.splitlines()


INFO = "sigadapt-1.2.0.dist-info"


RECORDED = "tests/corpus/wire/openai.jsonl.gz"
LICENCE = f"{INFO}/licenses/LICENSE"
SHIPPED: list[tuple[str, str, str, list[str]]] = [  # of what, without what, with what, and what is said
    ("wheel", "", "", []),
    ("wheel", "", "tests/support.py", ["the wheel has tests/support.py"]),
    ("wheel", "sigadapt/py.typed", "", ["the wheel lacks sigadapt/py.typed"]),
    ("wheel", LICENCE, "", ["the wheel's metadata lacks licenses/LICENSE"]),
    ("sdist", "", "", []),
    (
        "sdist",
        "",
        "tests/support.py",
        ["the source distribution has tests/support.py, which does not belong there"],
    ),
    ("sdist", "", RECORDED, [f"the source distribution has {RECORDED}, which git does not"]),
    ("sdist", "", "tasks.py", ["the source distribution has tasks.py, which does not belong there"]),
    ("sdist", "sigadapt/errors.py", "", ["the source distribution lacks sigadapt/errors.py"]),
]


@pytest.mark.parametrize(("kind", "without", "beside", "said"), SHIPPED)
def test_what_a_distribution_must_not_hold_is_found(
    release: Any, kind: str, without: str, beside: str, said: list[str]
) -> None:
    """What does not belong into a distribution is found."""
    known = tracked()
    package = [name for name in known if name.startswith("sigadapt/")]
    around = {
        "wheel": [LICENCE, f"{INFO}/entry_points.txt", f"{INFO}/METADATA"],
        "sdist": ["LICENSE", "README.md", "pyproject.toml", "hatch_build.py", "PKG-INFO", ".gitignore"],
    }
    names = [name for name in [*package, *around[kind], beside] if name not in ("", without)]
    find = release.faults_of_wheel if kind == "wheel" else release.faults_of_sdist
    assert list(find(names, known)) == said
    if beside == RECORDED:
        [fault] = find(names, [*known, RECORDED])
        assert fault.endswith("which does not belong there")


def test_no_page_repeats_the_placeholder_of_the_address() -> None:
    """A placeholder of the address is found."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (address,) = re.findall(r'^Repository = "(.+)"$', project, re.MULTILINE)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    assert [page.name for page in pages if address in page.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize(
    ("text", "changed", "said"),
    [
        ("Measured on 2026-11-23, on tree `abc` of `sigadapt/`, with", "", None),
        (
            "Measured on 2026-11-23, on tree `abc` of `sigadapt/`, with",
            "-a\n+b",
            "on another sigadapt/ (abc)",
        ),
        ("Measured on 2026-11-23, on tree `abc` of `sigadapt/`, with", None, "no tree of this repository"),
        ("Measured last week.", "", "does not say on which tree"),
    ],
)
def test_a_measured_page_of_another_tree_is_found(
    release: Any, text: str, changed: str | None, said: str | None
) -> None:
    """A measured page of another tree is found."""

    def changes(tree: str) -> str | None:
        return changed

    faults = list(release.faults_of_pages({"docs/measured.md": text}, changes))
    assert len(faults) == (said is not None)
    assert said is None or said in faults[0]


def test_the_line_of_the_version_is_no_change(
    release: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A measured page of another tree is found."""

    def git(*command: str) -> str:
        line = ["git", "-c", "user.name=x", "-c", "user.email=x@x.test", *command]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S603
        return done.stdout.strip()

    def tree(init: str, body: str) -> str:
        (tmp_path / "sigadapt" / "__init__.py").write_text(init, encoding="utf-8")
        (tmp_path / "sigadapt" / "a.py").write_text(body, encoding="utf-8")
        git("add", "-A")
        git("commit", "-qm", "x")
        return git("rev-parse", "HEAD:sigadapt")

    (tmp_path / "sigadapt").mkdir()
    git("init", "-q")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    first = tree('"""S."""\n\n__version__ = "1.0"\n', "a = 1\n")
    tree('"""S."""\n\n__version__ = "1.1"\n', "a = 1\n")
    assert release.changes_since(first) == ""
    tree('"""S."""\n\n__version__ = "1.1"\n', "a = 2\n")
    assert "+a = 2" in release.changes_since(first)
    assert release.changes_since("uncommitted") is None


def test_the_readme_of_a_distribution_has_absolute_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of an index has absolute links."""
    monkeypatch.setitem(
        sys.modules, "hatchling.metadata.plugin.interface", SimpleNamespace(MetadataHookInterface=object)
    )
    hook: Any = runpy.run_path(str(ROOT / "hatch_build.py"))
    readme = hook["absolute"]((ROOT / "README.md").read_text(encoding="utf-8"), "https://x.test/s")
    assert "](https://x.test/s/blob/main/docs/start.md)" in readme
    assert (
        hook["absolute"]("![Flow](a.svg)", "https://x.test/s") == "![Flow](https://x.test/s/raw/main/a.svg)"
    )
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", readme) == []


def test_a_python_is_asked_for_its_version(release: Any) -> None:
    """Each Python that is there is tried."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert dict(release.pythons())[here] == sys.executable
    assert list(dict(release.pythons())) == ["3.10", "3.11", "3.12", "3.13"]
    assert release.is_python(here, sys.executable)
    assert not release.is_python("3.9", sys.executable)
    assert not release.is_python(here, "")
    assert next(release.candidates("2.0")) == sys.executable
