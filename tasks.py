"""The project's recipes, the same ones locally and in CI: `python3 tasks.py <recipe> [arguments]`.

Needs Python 3.10 or newer with the pip it came with. The first recipe that needs it makes `.venv` and
installs the package there at the versions of constraints.txt; later ones install again only when
pyproject.toml or constraints.txt has changed. `python3 tasks.py <recipe> --help` says what a recipe does.

SIGADAPT_CORPUS names the folder of the recordings, which `corpus` builds, and SIGADAPT_CHECKS a folder of
independent checks. A recipe that cannot do without one says so in one line.
"""

import inspect
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

if sys.version_info < (3, 10):  # noqa: UP036  (an older Python gets a sentence, not a traceback)
    sys.exit(f"sigadapt needs Python 3.10 or newer; this is {sys.version.split()[0]}.")

ROOT = Path(__file__).resolve().parent
SCRIPTS = ROOT / ".ci"
sys.path.insert(0, str(SCRIPTS))

from environments import (  # noqa: E402
    EVERYTHING,
    PACKAGE,
    TESTS,
    VENV,
    command,
    install,
    nox,
    pytest,
    python_of_peers,
    run,
    say,
    try_all,
    try_beside,
)
from schema_suite import schema_suite  # noqa: E402

OPENSPEC = "@fission-ai/openspec@1.13.2"
# The parts of `evidence`, each a module of benchmarks/, with the folder of the recordings that it reads.
EVIDENCE = {
    "answers": "answers",
    "arrives": None,
    "board": "wire",
    "faults": None,
    "peers": None,
    "outcomes": None,
}
BESIDE_PEERS = ("board", "peers")  # they run other libraries, in an environment of those libraries' own


def demo(*arguments: str) -> None:
    """Show on one screen what sigadapt is for, on an embedded provider; arguments go to `sigadapt demo`."""
    install(PACKAGE)
    run(command(VENV, "sigadapt"), "demo", *arguments)


def test(*arguments: str) -> None:
    """Run the tests but the slow ones: `test [--all | --coverage | --dspy X] [pytest arguments]`.

    `--all` runs the slow ones too, with a third of what property tests and cuts try. `--coverage` runs all,
    those that take minutes too, with their whole budgets, and checks the threshold of pyproject.toml.
    `--dspy X` runs all in an environment of its own on another DSPy: `newest`, a folder, or anything that
    pip installs; what fails, and why, is one screen at the end.
    """
    option, *others = arguments or ("",)
    if option == "--dspy":
        if not others:
            sys.exit("test: --dspy needs `newest`, a folder, or anything that pip installs")
        nox("dspy", "--", *others)
    elif option == "--coverage":
        os.environ["SIGADAPT_WHOLE"] = "1"
        pytest("--cov", *others)
    elif option == "--all":
        pytest(*others)
    else:
        if "-m" not in arguments:
            os.environ["SIGADAPT_FAST"] = "1"  # tests/conftest.py leaves out the slow ones
        pytest(*arguments)


def lint() -> None:
    """Check style and formatting, and that imports point down (`[tool.importlinter]`)."""
    install(TESTS)
    run(command(VENV, "ruff"), "check", ".")
    run(command(VENV, "ruff"), "format", "--check", ".")
    imports = command(VENV, "lint-imports")
    if imports.exists():
        run(imports, "--no-logo", "--no-cache")
    else:
        say("lint: imports are not checked; import-linter needs Python 3.11")


def types() -> None:
    """Check types strictly, over the package, the tests and this file."""
    install(EVERYTHING)
    run(command(VENV, "pyright"))


def specs() -> None:
    """Validate openspec/ with the OpenSpec tool (needs node)."""
    npx = shutil.which("npx")
    if npx:
        run(npx, "--yes", OPENSPEC, "validate", "--all", "--strict", "--no-interactive")
    elif os.environ.get("CI"):
        sys.exit("specs: node is missing, and CI must validate the specs")
    else:
        say("specs: skipped, node is missing")


def site() -> None:
    """Build the site of docs/ into site/, with the pages that programs write; a warning is an error."""
    install(EVERYTHING)
    # Without --quiet, which keeps warnings from being counted.
    run(command(VENV, "python"), "-m", "mkdocs", "build", "--strict", "--site-dir", ROOT / "site")
    say(f"Open {Path('site', 'index.html')}.")


def ui() -> None:
    """Let the npm packages of the AI SDK and AG-UI read what `sigadapt.ui` writes (needs node)."""
    if shutil.which("npm") is None:
        say("ui: skipped, node is missing")
        return
    install(TESTS)
    run(sys.executable, SCRIPTS / "ui.py")


def conformance() -> None:
    """Run the independent checks of the folder that SIGADAPT_CHECKS names; .ci/conformance.py lists them."""
    if not os.environ.get("SIGADAPT_CHECKS"):
        say("conformance: skipped; it needs the independent checks, and SIGADAPT_CHECKS names no folder")
        return
    install(TESTS)
    run(command(VENV, "python"), SCRIPTS / "conformance.py", os.environ["SIGADAPT_CHECKS"])


def wheel() -> None:
    """Build the wheel, install it alone outside the checkout, and run the demo on every wire and engine."""
    run(sys.executable, SCRIPTS / "try_wheel.py")


def ci() -> None:
    """Run every check in order, whatever fails, and say at the end what did."""
    install(EVERYTHING)
    with schema_suite():
        try_all(
            # These wait for npm, pip and a browser; tests and conformance use both cores by themselves.
            checks=partial(try_beside, (lint, types, ui), (specs, site, wheel)),
            test=partial(test, "--all"),
            conformance=conformance,
        )


def nightly() -> None:
    """Run what takes longer than CI should, whatever fails: coverage, benchmarks, loads, other versions."""
    install(EVERYTHING)
    python = command(VENV, "python")
    os.environ["SIGADAPT_TALKS"] = "1000"  # random conversations, of which other runs lead a few
    with schema_suite():
        try_all(
            coverage=partial(test, "--coverage"),
            patterns=partial(run, python, SCRIPTS / "pattern_load.py"),
            benchmarks=partial(run, python, "-m", "pytest", "benchmarks/check.py"),
            users=partial(run, python, "-m", "benchmarks.agent_users"),
            chats=partial(run, python, "-m", "benchmarks.chat_load"),
            sdks=partial(nox, "sdks"),
            no_litellm=partial(nox, "no_litellm"),
            dspy=partial(test, "--dspy", "newest"),
        )


def bench(*parts: str) -> None:
    """Measure what a call costs beside others, for docs/measured.md; with names of parts, print those."""
    install(TESTS)
    run(command(VENV, "python"), "-m", "benchmarks", *parts)


def evidence(*parts: str) -> None:
    """Measure anew: `evidence [answers|arrives|board|faults|outcomes|peers ...]`, each a part of one page.

    The page is docs/measured.md. `answers` and `board` read the recordings; `board` and `peers` install
    other libraries into `.peers`.
    """
    unknown = [part for part in parts if part not in EVIDENCE]
    if unknown:
        sys.exit(f"evidence: no part is named {', '.join(unknown)}; the parts are {', '.join(EVIDENCE)}")
    possible = [part for part in parts or EVIDENCE if has_recordings(part)]
    if not possible:
        sys.exit(1)
    install(TESTS)
    for part in possible:
        peers = [python_of_peers()] if part in BESIDE_PEERS else []
        run(command(VENV, "python"), "-m", f"benchmarks.{part}", *peers)


def corpus(*arguments: str) -> None:
    """Build the recordings that SIGADAPT_CORPUS names: `corpus CLONES OUT`; `--help` says what to clone."""
    install(TESTS)
    run(command(VENV, "python"), "-m", "benchmarks.corpus", *arguments)


def release(*arguments: str) -> None:
    """Check that this checkout can be released; `--rehearsal` lists a missing date or address as to do."""
    nox("lowest")
    run(sys.executable, SCRIPTS / "release.py", *arguments)


def has_recordings(part: str) -> bool:
    """Return whether a part of `evidence` finds the recordings that it reads; say how to get them if not."""
    folder, corpus = EVIDENCE[part], os.environ.get("SIGADAPT_CORPUS", "")
    if folder is None or (corpus and Path(corpus, folder).is_dir()):
        return True
    lacks = f"SIGADAPT_CORPUS ({corpus}) has no {folder}/" if corpus else "SIGADAPT_CORPUS names no folder"
    remedy = "`python3 tasks.py corpus` builds them (docs/measured.md)"
    say(f"{part}: left out, it needs the recordings, and {lacks}: {remedy}")
    return False


RECIPES: dict[str, Callable[..., None]] = {
    recipe.__name__: recipe
    for recipe in (
        *(demo, test, lint, types, specs, site, ui, conformance, wheel, ci),
        *(nightly, bench, evidence, corpus, release),
    )
}


def main(arguments: Sequence[str]) -> int:
    """Run one recipe; without one, list them."""
    if not arguments or arguments[0] not in RECIPES:
        lines = [f"  {name:12} {str(recipe.__doc__).splitlines()[0]}" for name, recipe in RECIPES.items()]
        say("\n".join([str(__doc__), *lines]))
        return 2 if arguments and arguments[0] != "--help" else 0
    name, *given = arguments
    recipe = RECIPES[name]
    if recipe is not corpus and {"-h", "--help"} & {*given}:  # whose program explains what to clone
        say(f"{name}: {inspect.getdoc(recipe)}")
        return 0
    os.environ.update(OPENSPEC_TELEMETRY="0", PYRIGHT_PYTHON_IGNORE_WARNINGS="1")
    os.environ.pop("PYTHONPATH", None)  # only what is installed may be imported
    try:
        inspect.signature(recipe).bind(*given)
    except TypeError:
        say(f"{name}: takes no such arguments: {' '.join(given)}\n{inspect.getdoc(recipe)}")
        return 2
    recipe(*given)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
