"""Check that this checkout can be released; `python3 tasks.py release` runs it. Nothing is uploaded.

In order: the version and its changelog, the address, the measured pages, the wheel and the source
distribution, what they hold, their metadata, and a fresh install of each on every Python there is, at the
versions of constraints.txt and at the newest of everything.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from environments import ROOT, command, output, run, say
from try_wheel import missing_of_demo

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
MOST_BYTES = 2_000_000  # of a distribution; the recorded answers alone are more
SOURCES = (
    "sigadapt",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "hatch_build.py",
    "pyproject.toml",
)
MADE = ("PKG-INFO", ".gitignore")  # hatchling adds them
UNRELEASED = "Unreleased"  # in the place of the date of a changelog's entry
PLACEHOLDER = "example.invalid"  # of [project.urls] in pyproject.toml, until there is an address
MEASURED = ("docs/measured.md",)  # its sections say on which tree of sigadapt/ (benchmarks/tree.py)
ENTRY = re.compile(r"^## \[(.+?)\] - (.+)\n([\s\S]*?)(?=^## \[|\Z)", re.MULTILINE)  # of CHANGELOG.md
DATA = re.compile(r"\.(gz|jsonl|zip|db|parquet|ipynb_checkpoints|pyc)$|(^|/)(\.venv|corpus|__pycache__)/")


def faults_of_version(package: str, changelog: str, tags: Iterable[str]) -> Iterator[str]:
    """Say what is wrong with the version.

    Args:
        package: the text of `sigadapt/__init__.py`.
        changelog: the text of CHANGELOG.md.
        tags: git's tags.
    """
    version = re.search(r'^__version__ = "(.+)"$', package, re.MULTILINE)
    entry = ENTRY.search(changelog)
    if version is None or entry is None:
        yield "sigadapt/__init__.py has no __version__, or CHANGELOG.md no entry `## [version] - date`"
        return
    if version[1] != entry[1]:
        yield f"the version is {version[1]}, and the first entry of CHANGELOG.md is {entry[1]}"
    if entry[2] != UNRELEASED and not re.fullmatch(r"\d{4}-\d\d-\d\d", entry[2]):
        yield f"the entry of {entry[1]} in CHANGELOG.md has no date, but {entry[2]!r}"
    if "\n- " not in entry[3]:
        yield f"the entry of {entry[1]} in CHANGELOG.md says nothing"
    if f"v{version[1]}" in tags:
        yield f"the tag v{version[1]} is there already"


def last_steps(changelog: str, pages: Mapping[str, str]) -> Iterator[str]:
    """Say what is left to do just before a release: faults of a release, but not of a rehearsal.

    Args:
        changelog: the text of CHANGELOG.md.
        pages: the texts of the files that may have the placeholder of the address, by name.
    """
    entry = ENTRY.search(changelog)
    if entry is not None and entry[2] == UNRELEASED:
        yield f"the entry of {entry[1]} in CHANGELOG.md has no date, but {UNRELEASED!r}"
    for name, text in pages.items():
        lines = [str(n) for n, line in enumerate(text.splitlines(), 1) if f"://{PLACEHOLDER}/" in line]
        if lines:
            yield f"{name} has the placeholder of an address, line {', '.join(lines)}: [project.urls] has it"


def faults_of_pages(pages: Mapping[str, str], changes: Callable[[str], str | None]) -> Iterator[str]:
    """Say which measured pages were measured on another `sigadapt/` than the one to be released.

    Args:
        pages: the texts of `MEASURED`, by name.
        changes: from a tree to what differs from HEAD's, the line of `__version__` aside; None without it.
    """
    for name, text in pages.items():
        trees = dict.fromkeys(re.findall(r"on tree `(\w+)` of `sigadapt/`", text))
        if not trees:
            yield f"{name} does not say on which tree of sigadapt/ it was measured"
        for tree in trees:
            if (changed := changes(tree)) is None:
                yield f"{name} was measured on {tree}, which is no tree of this repository"
            elif changed:
                yield f"{name} was measured on another sigadapt/ ({tree}): measure it again"


def changes_since(tree: str) -> str | None:
    """Return what differs between a tree of sigadapt/ and HEAD's, the line of `__version__` aside."""
    command = ["git", "diff", "--ignore-matching-lines=^__version__ = ", tree, "HEAD:sigadapt"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout


def faults_of_wheel(names: Iterable[str], tracked: Iterable[str]) -> Iterator[str]:
    """Say what is wrong with the files in a wheel: it holds the package as git does, and nothing else."""
    held = {name for name in names if ".dist-info/" not in name}
    wanted = {name for name in tracked if name.startswith("sigadapt/")}
    yield from (f"the wheel lacks {name}" for name in sorted(wanted - held))
    yield from (f"the wheel has {name}" for name in sorted(held - wanted))
    for part in ("licenses/LICENSE", "entry_points.txt"):
        if not any(name.endswith(f".dist-info/{part}") for name in names):
            yield f"the wheel's metadata lacks {part}"


def faults_of_sdist(names: Iterable[str], tracked: Iterable[str]) -> Iterator[str]:
    """Say what is wrong with the files in a source distribution, given without its first folder."""
    held, known = set(names) - set(MADE), set(tracked)
    for name in sorted(held - known):
        yield f"the source distribution has {name}, which git does not"
    for name in sorted(held & known):
        if name.split("/")[0] not in SOURCES or DATA.search(name):
            yield f"the source distribution has {name}, which does not belong there"
    wanted = {name for name in known if name.startswith("sigadapt/")} | {
        "LICENSE",
        "README.md",
        "pyproject.toml",
    }
    yield from (f"the source distribution lacks {name}" for name in sorted(wanted - held))


def built(folder: Path) -> tuple[Path, Path]:
    """Build both distributions, check their metadata, and return the wheel and the source distribution."""
    run(sys.executable, "-m", "venv", folder / "tools")
    python = command(folder / "tools", "python")
    run(python, "-m", "pip", "--disable-pip-version-check", "install", "-qq", "build", "twine")
    run(python, "-m", "build", "--outdir", folder / "dist", ROOT)
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    run(python, "-m", "twine", "check", "--strict", wheel, sdist)
    return wheel, sdist


def contents(wheel: Path, sdist: Path) -> Iterator[str]:
    """Say what is wrong with what the distributions hold."""
    tracked = git("ls-files")
    with zipfile.ZipFile(wheel) as held:
        yield from faults_of_wheel(held.namelist(), tracked)
    with tarfile.open(sdist) as held:
        yield from faults_of_sdist(
            [m.name.partition("/")[2] for m in held.getmembers() if m.isfile()], tracked
        )
    for path in (wheel, sdist):
        if path.stat().st_size > MOST_BYTES:
            yield f"{path.name} has {path.stat().st_size:,} bytes, more than {MOST_BYTES:,}"


def pythons() -> Iterator[tuple[str, str | None]]:
    """Yield each supported version of Python, and its command; None where it is not on this machine."""
    for version in PYTHONS:
        yield version, next(filter(partial(is_python, version), candidates(version)), None)


def candidates(version: str) -> Iterator[str]:
    """Yield where a version of Python may be: this one, one on the PATH, pyenv's, or uv's."""
    yield sys.executable
    yield shutil.which(f"python{version}") or ""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python")))
    if shutil.which("uv"):
        asked = ["uv", "python", "find", "--no-python-downloads", version]
        yield subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def is_python(version: str, python: str) -> bool:
    """Whether a command is this version; a shim of pyenv may stand for one that is switched off."""
    if not python:
        return False
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version


def fault_of_install(python: str, artefact: Path, folder: Path, *, pinned: bool) -> str | None:
    """Install a distribution in a fresh environment, and run the demo outside of the checkout."""
    venv = folder / "venv"
    shutil.rmtree(venv, ignore_errors=True)
    pins = ("--constraint", ROOT / "constraints.txt") if pinned else ()
    try:
        run(python, "-m", "venv", venv)
        run(
            command(venv, "python"),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "-qq",
            *pins,
            artefact,
        )
        run(command(venv, "python"), "-m", "pip", "check")
        shown = output(command(venv, "sigadapt"), "demo", cwd=folder)
    except SystemExit as error:
        return str(error)
    missing = missing_of_demo(shown)
    return f"the demo does not show {missing}" if missing else None


def installs(wheel: Path, sdist: Path, folder: Path) -> Iterator[str]:
    """Say what is wrong with installing, on every Python there is."""
    for version, python in pythons():
        if python is None:
            say(f"Python {version}: NOT CHECKED, it is not on this machine")
            continue
        for artefact in (wheel, sdist):
            for pinned in (True, False):
                versions = "constraints.txt" if pinned else "newest of everything"
                what = f"Python {version}, {artefact.name}, {versions}"
                fault = fault_of_install(python, artefact, folder, pinned=pinned)
                say(f"{what}: {'fails' if fault else 'installs, and the demo runs'}")
                if fault:
                    yield f"{what}: {fault}"


def git(*arguments: str) -> list[str]:
    """The lines that git prints."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main(arguments: list[str]) -> int:
    """Make every check, whatever fails, and say at the end what did."""
    texts = {name: (ROOT / name).read_text("utf-8", errors="replace") for name in git("ls-files")}
    faults = list(faults_of_version(texts["sigadapt/__init__.py"], texts["CHANGELOG.md"], git("tag")))
    addressed = {name: texts[name] for name in texts if name.endswith((".md", ".toml", ".yml", ".cff"))}
    to_do = list(last_steps(texts["CHANGELOG.md"], addressed))
    if "--rehearsal" not in arguments:
        faults += to_do
        to_do = []
    faults += faults_of_pages({name: texts[name] for name in MEASURED}, changes_since)
    if git("status", "--porcelain"):
        faults.append("there are changes that are not committed")
    with tempfile.TemporaryDirectory() as name:
        wheel, sdist = built(Path(name))
        faults += contents(wheel, sdist)
        faults += installs(wheel, sdist, Path(name))
    say(verdict(faults, to_do))
    return 1 if faults else 0


def verdict(faults: list[str], to_do: list[str]) -> str:
    """Return the last lines: what a rehearsal leaves to do, and whether the checkout is ready."""
    lines = ["", "To do before the release:", *to_do] if to_do else []
    if faults:
        return "\n".join([*lines, "", "Not ready to be released:", *faults])
    ready = "Ready to be released, once that is done." if to_do else "Ready to be released."
    return "\n".join([*lines, "", ready])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
