"""The conventions of CONTRIBUTING.md, each as a test that fails where it is broken."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sigadapt

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "sigadapt"
SPECS = {path.parent.name: path for path in sorted((ROOT / "openspec" / "specs").glob("*/spec.md"))}
SOURCES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted([*(ROOT / "tests").rglob("*.py"), *ROOT.glob("benchmarks/check.py")])

# The title, lines on what it leaves open, and the file of its test.
SCENARIO = re.compile(r"(?m)^#### Scenario: (.+)\n(?:(?!- (?:tests|benchmarks)/).+\n)*(?:- (.+)\n)?")


def scenarios() -> Iterator[tuple[str, str]]:
    """Every scenario as tests name it, `<capability>: <title>`, with the file that its spec names."""
    for capability, path in SPECS.items():
        for title, file in SCENARIO.findall(path.read_text(encoding="utf-8")):
            yield f"{capability}: {title}", file


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Every node of a file, which is parsed once for all tests."""
    return [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]


@cache
def named() -> frozenset[tuple[str, str]]:
    """Every scenario that a docstring of a test function, class or module names, with its file."""
    scenario = re.compile(rf"^\s*((?:{'|'.join(SPECS)}): .+?)\.?$", re.MULTILINE)
    found: set[tuple[str, str]] = set()
    for path in TESTS:
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                docstring = ast.get_docstring(node) or ""
                found.update((each, relative(path)) for each in scenario.findall(docstring))
    return frozenset(found)


@cache
def imports(path: Path) -> list[str]:
    """The full name of every module or member a file imports, wherever in the file and for types too."""
    names: list[str] = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked() -> list[Path]:
    """The files of the repository, those not yet committed included."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [path for name in done.stdout.splitlines() if (path := ROOT / name).is_file()]


def test_every_scenario_names_a_file_whose_test_names_it() -> None:
    untested = sorted(set(scenarios()) - named())
    assert untested == []


def test_every_named_scenario_is_in_a_spec() -> None:
    unknown = sorted({title for title, _ in named()} - {title for title, _ in scenarios()})
    assert unknown == []


def test_scenario_titles_are_unique_and_short() -> None:
    titles = [title for title, _ in scenarios()]
    assert [title for title, count in Counter(titles).items() if count > 1] == []
    assert [title for title in titles if title.endswith(".") or len(title) > 100] == []


# A method of a type that a program holds may open what runs it, and that is made of this type. Such a door
# imports inside of the method, or for a type. It is the only way up.
DOORS: dict[str, tuple[str, ...]] = {
    "errors.py": (
        "runs/waiting.py",  # InputNeeded.resume; what errors carry is imported for its types
        "runs/run.py",
        "adapters/response/choice.py",
        "signatures/calls/__init__.py",
        "signatures/tool_results/results.py",
        "signatures/tool_results/tool_result.py",
    ),
    "adapters/tool_adapter.py": ("adapters/dspy_adapters.py",),  # which asks again, as in DSPy
    "signatures/calls/tool_call.py": ("turns/running.py",),  # execute
    "signatures/calls/tool_calls.py": ("turns/running.py", "turns/jobs.py"),  # run
    "signatures/tool_decl.py": ("signatures/tool_functions/agent_tool.py",),  # to_dspy
    "signatures/tool_decls.py": ("signatures/tool_functions/guards.py",),  # confirmed_by
}


def in_package(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def is_door(path: Path, home: Path | None) -> bool:
    return home is not None and in_package(home) in DOORS.get(in_package(path), ())


def test_every_door_opens_inside_of_a_method() -> None:
    for path, homes in DOORS.items():
        source = PACKAGE / path
        at_load = [
            name
            for node in ast.parse(source.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ImportFrom)
            for name in names_in(node)
        ]
        for home in homes:
            assert PACKAGE / home not in map(home_of, at_load)
            assert PACKAGE / home in map(home_of, imports(source))


def names_in(node: ast.ImportFrom) -> list[str]:
    return [f"{node.module}.{alias.name}" for alias in node.names]


def test_no_file_imports_by_a_string() -> None:
    """A string hides an import from the test above; `sigadapt/__init__.py` alone names a file so."""
    module = re.compile(r"""["']sigadapt\.[a-z_.]+["']""")
    hidden = [
        (relative(path), text)
        for path in SOURCES
        if path.name != "__init__.py" and "import_module" in (source := path.read_text(encoding="utf-8"))
        for text in module.findall(source)
    ]
    assert hidden == []


def test_no_files_import_each_other() -> None:
    """A circle, even one inside of functions or for types alone, is two files that are one."""
    graph = {path: set(filter(None, map(home_of, imports(path)))) - {path} for path in SOURCES}
    for path, needs in graph.items():
        needs -= {each for each in needs if is_door(path, each)}
    pending = dict(graph)
    while done := [path for path, needs in pending.items() if needs.isdisjoint(pending)]:
        for path in done:
            del pending[path]
    assert sorted(map(relative, pending)) == []


def home_of(name: str) -> Path | None:
    """The file of the package that a full name is in."""
    root, *rest = name.split(".")
    if root != PACKAGE.name:
        return None
    for length in range(len(rest), -1, -1):
        place = PACKAGE.joinpath(*rest[:length])
        found = [path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()]
        if found:
            return found[0]
    return None


BOUNDARY = re.compile(r"(dspy\.(clients|streaming|lm15)|litellm)\b")


def test_only_lm_knows_how_a_language_model_is_called() -> None:
    """`dspy.BaseLM` is public and allowed; DSPy's clients, its streams, lm15 and LiteLLM are not."""
    rooms = {PACKAGE / "adapters" / "lm", PACKAGE / "dspy_boundary"}
    outside = [path for path in SOURCES if rooms.isdisjoint(path.parents)]
    found = [(relative(path), name) for path in outside for name in imports(path) if BOUNDARY.match(name)]
    assert found == []


CHANGES_WITH_DSPY = re.compile(
    r"\b(CUSTOM_TYPE_\w+|parse_lm_response|legacy_output|lm\.model_type|\w+\.format_demos\()"
)
MAY_CHANGE = (
    "dspy_boundary/",
    "adapters/lm/",
    "signatures/tool_results/tool_output.py",
    "providers/",
    "testing/",
)


def test_what_changes_in_dspy_3_5_is_behind_a_seam() -> None:
    """openspec/changes/dspy-3-5 lists these; `dspy_boundary/contract.py` has both halves of most."""
    found: dict[str, list[str]] = {}
    for path in SOURCES:
        if not path.relative_to(PACKAGE).as_posix().startswith(MAY_CHANGE):
            found[relative(path)] = CHANGES_WITH_DSPY.findall(path.read_text(encoding="utf-8"))
    assert {path: names for path, names in found.items() if names} == {}


PROVIDER_NAMES = re.compile(r"anthropic|claude|gemini|ollama|bedrock|cohere|deepseek|moonshot", re.IGNORECASE)
MAY_NAME_PROVIDERS = ("providers", "testing", "text", "trust/masking.py", "signatures/sources/dicts.py")


def test_a_provider_is_known_in_its_own_file() -> None:
    """Only the places of MAY_NAME_PROVIDERS name a provider in code, docstrings aside."""
    found: list[tuple[str, str]] = []
    for path in SOURCES:
        if path.relative_to(PACKAGE).as_posix().startswith(MAY_NAME_PROVIDERS):
            continue
        nodes = nodes_of(path)
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        texts = [n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        named = {str(node.value) for node in texts if id(node) not in docstrings}
        named = {text for text in named if not text.isupper()}  # the name of a variable
        found += [(relative(path), text) for text in sorted(named) if PROVIDER_NAMES.search(text)]
    assert found == []


def test_no_folder_is_a_crowd() -> None:
    """But for the providers: another one is another file."""
    folders = Counter(path.parent for path in SOURCES if path.parent.name != "providers")
    assert {relative(folder): count for folder, count in folders.items() if count > 15} == {}


def test_no_two_modules_of_tests_share_a_name() -> None:
    """Their folders are on the path, so that an import finds the first of them."""
    names = Counter(path.name for path in TESTS)
    assert [name for name, count in names.items() if count > 1] == []


def test_no_file_bears_the_name_of_a_module_it_imports() -> None:
    found = [
        relative(path)
        for path in [*SOURCES, *TESTS]
        if path.stem in {name.split(".")[0] for name in imports(path)}
    ]
    assert found == []


def test_the_changelog_begins_with_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d[^\]]*)\] - (?:Unreleased|\d{4}-\d\d-\d\d)$", text, re.MULTILINE)
    assert versions[:1] == [sigadapt.__version__]


def test_no_file_holds_a_machines_path_or_a_registrys_address() -> None:
    private = re.compile(
        r"(?<![\w.#/])/(?:work|home|Users|opt)/\w|/root/\."  # a machine's paths
        r"|registry\.npmjs|pypi\.org/simple|files\.pythonhosted|find[-_]links|index[-_]url"
    )
    held = [
        f"{relative(path)}: {match[0]}"
        for path in tracked()
        if (match := private.search(path.read_text(encoding="utf-8", errors="replace")))
    ]
    assert held == []


def test_every_rule_is_cited_by_its_name() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    rules = [title.lower() for title in re.findall(r"^### (.+)$", page, re.MULTILINE)]
    assert len(rules) == 15
    cited = "".join(path.read_text(encoding="utf-8") for path in [*SOURCES, *TESTS])
    citation = r"\((?:[a-z ]+, )*{}(?:, [a-z ]+)*[):;]"
    assert [rule for rule in rules if not re.search(citation.format(rule), cited)] == []
    assert re.findall(r"\([Rr]ules? \d+", cited) == []


def test_rules_are_cited_from_this_repository() -> None:
    """The plan that the package was built from is not part of it; what holds is in docs/design.md."""
    plan = re.compile(r"\bDESIG[N]\b")
    folders = ("sigadapt", "tests", "docs")
    files = [path for path in tracked() if relative(path).startswith(folders)]
    assert [relative(path) for path in files if plan.search(path.read_text("utf-8", errors="replace"))] == []


def requirements(group: str) -> list[str]:
    """The names in `dependencies` or in an extra of pyproject.toml."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(rf"^{group} = \[(.+?)\]$", project, re.MULTILINE | re.DOTALL)
    assert listed
    return re.findall(r'^ *"([\w.-]+)', listed[1], re.MULTILINE)


def test_every_import_is_a_declared_dependency() -> None:
    brings = {"dspy-ai": "dspy", "pydantic": "pydantic pydantic_core", "ray": "ray pyarrow"}
    brings["opentelemetry-api"] = "opentelemetry"
    extras = [name for extra in ("chats", "litellm", "otel", "ray") for name in requirements(extra)]
    named = [*requirements("dependencies"), *extras]
    declared = [brings.get(name, name.replace("-", "_")) for name in named]
    roots = {name.split(".")[0] for path in SOURCES for name in imports(path)}
    assert sorted(roots - set(" ".join(declared).split()) - sys.stdlib_module_names - {"sigadapt"}) == []


def test_every_dependency_is_justified_and_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    pin = re.compile(r'([\w.-]+)==[\w.]+(?: ; python_version >= "3\.\d+")?')
    pinned = {match[1].lower().replace("_", "-") for line in lines if (match := pin.fullmatch(line))}
    assert len(pinned) == len(lines)
    wanted = {n.lower().replace("_", "-") for n in requirements("dependencies") + requirements("dev")}
    assert sorted(wanted - pinned) == []
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [n for n in requirements("dependencies") if f"\n- `{n}`: " not in contributing] == []


def test_contributing_lists_every_recipe() -> None:
    listing = [sys.executable, "tasks.py"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    recipes = re.findall(r"^  (\w+) ", done.stdout, re.MULTILINE)
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)", contributing, re.MULTILINE)) == {*recipes}
    assert len(recipes) <= 16
