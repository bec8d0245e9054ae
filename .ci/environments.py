"""The environments that recipes run in, and how they run a command. The standard library is enough."""

import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PEERS = ROOT / ".peers"
# What can be installed, each holding the one before: the package, its tests, and all that CI checks.
PACKAGE, TESTS, EVERYTHING = TARGETS = (".", ".[dev]", ".[dev,docs,ray]")

_LANE = threading.local()  # `is_open` in a thread of `try_beside`


def install(target: str) -> None:
    """Make `.venv` hold one of TARGETS, or more."""
    stamp, state = VENV / "sigadapt-installed", hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        state.update((ROOT / name).read_bytes())
    held = stamp.read_text(encoding="utf-8").split() if stamp.exists() else ["", PACKAGE]
    if held[0] == state.hexdigest() and TARGETS.index(held[1]) >= TARGETS.index(target):
        return
    say(f"installing {target} into .venv (once; a minute or two)")
    if not command(VENV, "python").exists():
        run(sys.executable, "-m", "venv", VENV)
    pip = (command(VENV, "python"), "-m", "pip", "--disable-pip-version-check")
    with ticking():
        run(*pip, "install", "-qq", "--constraint", "constraints.txt", "--editable", target)
    stamp.write_text(f"{state.hexdigest()} {target}\n", encoding="utf-8")


@contextmanager
def ticking() -> Generator[None]:
    """Print every ten seconds how long something takes, so that it doesn't seem to hang."""
    began, done = time.monotonic(), threading.Event()

    def tick() -> None:
        while not done.wait(10):
            say(f"... {time.monotonic() - began:.0f} s")

    threading.Thread(target=tick, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def python_of_peers() -> Path:
    """Make the environment of the other libraries and return its Python."""
    python = command(PEERS, "python")
    if not python.exists():
        run(sys.executable, "-m", "venv", PEERS)
    versions = ROOT / "benchmarks" / "peers" / "versions.txt"
    run(python, "-m", "pip", "--disable-pip-version-check", "install", "-qq", "--requirement", versions)
    return python


def pytest(*arguments: str) -> None:
    """Run tests, two at a time."""
    install(TESTS)
    run(command(VENV, "python"), "-m", "pytest", "-n", "2", "--dist", "worksteal", *arguments)


def nox(session: str, *arguments: str) -> None:
    """Run a session of noxfile.py, with a nox of its own."""
    with tempfile.TemporaryDirectory() as name:
        run(sys.executable, "-m", "venv", name)
        run(command(Path(name), "python"), "-m", "pip", "install", "-qq", "nox")
        run(command(Path(name), "nox"), "--session", session, *arguments)


def command(venv: Path, name: str) -> Path:
    """Where a virtual environment keeps a command."""
    return venv / "Scripts" / f"{name}.exe" if os.name == "nt" else venv / "bin" / name


def run(*arguments: str | Path, cwd: Path = ROOT) -> None:
    """Run a command from the root, saying which; its failure ends the recipe."""
    line = " ".join(str(a) for a in arguments).replace(f"{ROOT}{os.sep}", "")
    in_lane = getattr(_LANE, "is_open", False)
    if not in_lane:
        say(f"$ {line}")
    done = subprocess.run(arguments, cwd=cwd, capture_output=in_lane, text=True, check=False)
    if in_lane:
        say(f"$ {line}\n{done.stdout}{done.stderr}")
    if done.returncode:
        sys.exit(f"exit status {done.returncode} of: {line}")


def output(*arguments: str | Path, cwd: Path) -> str:
    """Run a command and return what it prints; its failure ends the recipe."""
    say(f"$ {' '.join(str(a) for a in arguments)}".replace(f"{cwd}{os.sep}", ""))
    done = subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"exit status {done.returncode} of the command above:\n{done.stdout}{done.stderr}")
    return done.stdout


def try_all(**steps: Callable[[], None]) -> None:
    """Run each step, whatever fails; print what each took, and end with the names of those that failed."""
    _end_with(_failed_of(steps))


def try_beside(*lanes: Sequence[Callable[[], None]]) -> None:
    """Do the same with lanes of recipes, one lane beside the other; each command prints when it has ended."""

    def failed_of_lane(recipes: Sequence[Callable[[], None]]) -> list[str]:
        _LANE.is_open = True
        return _failed_of({recipe.__name__: recipe for recipe in recipes})

    with ThreadPoolExecutor(len(lanes)) as pool:
        _end_with([name for names in pool.map(failed_of_lane, lanes) for name in names])


def _failed_of(steps: Mapping[str, Callable[[], None]]) -> list[str]:
    failed: list[str] = []
    for name, step in steps.items():
        began = time.monotonic()
        try:
            step()
        except SystemExit as verdict:
            failed.append(name)
            say(str(verdict))
        say(f"{name}: {time.monotonic() - began:.0f} s")
    return failed


def _end_with(failed: list[str]) -> None:
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def say(text: str) -> None:
    """Print at once, so that lines keep their place among those of the commands."""
    print(text, flush=True)
