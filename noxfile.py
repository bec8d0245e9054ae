"""The tests on other versions than those of constraints.txt: `nox --list` names the sessions.

`python3 tasks.py test --dspy X`, `nightly` and `release` install nox for themselves. To run a session by
hand, install it anywhere: `pipx run nox --session lowest`. What stands behind `--` goes to pytest.
"""

from pathlib import Path

import nox

PYTHONS = ("3.10", "3.11", "3.12", "3.13")

nox.options.sessions = ["pythons"]


@nox.session(python=PYTHONS)
def pythons(session: nox.Session) -> None:
    """Run the tests on each Python that is on the machine, at the versions of constraints.txt."""
    session.install("--constraint", "constraints.txt", "--editable", ".[dev]")
    session.run("python", "-m", "pytest", "-n", "2", *session.posargs)


@nox.session
def lowest(session: nox.Session) -> None:
    """Run the tests on the lowest versions that pyproject.toml allows.

    LiteLLM, which is DSPy's dependency, is the one of constraints.txt; `sdks` tries the newest.
    """
    bounds = Path(session.create_tmp(), "lowest.txt")
    session.install("uv")
    uv = ("python", "-m", "uv", "pip")
    direct = ("--resolution", "lowest-direct", "--constraint", pinned(session, "litellm="))
    session.run(*uv, "compile", "-q", *direct, "pyproject.toml", "-o", str(bounds))
    session.run(*uv, "install", "-q", "--constraint", str(bounds), "--editable", ".")
    session.run(*uv, "install", "-q", "--editable", ".[dev]")  # leaves what is installed
    session.run("python", "-m", "pytest", "-n", "2", "-m", "not slow", *session.posargs)


@nox.session
def sdks(session: nox.Session) -> None:
    """Run the tests on the newest LiteLLM, mcp and SDKs, with DSPy as it's pinned."""
    session.install("--constraint", pinned(session, "dspy"), "--editable", ".[dev]")
    session.run("python", "-m", "pip", "freeze")
    session.run("python", "-m", "pytest", "-n", "2", *session.posargs)


@nox.session
def dspy(session: nox.Session) -> None:
    """Run the tests on another DSPy, the cap of pyproject.toml aside: `newest`, or what pip installs.

    What fails, and why, is one screen at the end.
    """
    version, *arguments = session.posargs or ["newest"]
    wanted = "dspy-ai" if version == "newest" else version
    session.install("--editable", ".[dev]")
    session.install("--upgrade", "--pre", wanted)
    session.run("python", "-m", "pip", "show", "dspy")
    report = Path(session.create_tmp(), "tests.xml").resolve()
    options = ("-q", "--tb=short", "--show-capture=no", "--junitxml", str(report))
    how = ("-n", "2", "--continue-on-collection-errors", *options)
    session.run("python", "-m", "pytest", *how, *arguments, success_codes=range(6), log=False, silent=True)
    session.run("python", ".ci/causes.py", str(report))


@nox.session
def no_litellm(session: nox.Session) -> None:
    """Run the tests without LiteLLM, as DSPy 3.5 is installed; those of the other engine are skipped."""
    session.install("--constraint", "constraints.txt", "--editable", ".[dev]")
    session.run("python", "-m", "pip", "uninstall", "-qy", "litellm")
    session.run("python", "-m", "pytest", "-n", "2", *session.posargs)


@nox.session
def pins(session: nox.Session) -> None:
    """Write constraints.txt anew: what a fresh environment with everything gets today."""
    session.install("--editable", ".[dev,docs,ray]")
    session.run("python", ".ci/pins.py")


def pinned(session: nox.Session, prefix: str) -> str:
    """Write the constraints of the packages whose lines begin so to a file, and return its path."""
    lines = Path("constraints.txt").read_text(encoding="utf-8").splitlines()
    file = Path(session.create_tmp(), "pinned.txt")
    file.write_text("\n".join(line for line in lines if line.startswith(prefix)), encoding="utf-8")
    return str(file)
