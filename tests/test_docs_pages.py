"""Every page of docs/ runs: its Python blocks top to bottom in one namespace, without a key or a network.

An `output` block must be what the Python block before it prints. A block that cannot run has the comment
`<!-- not run: reason -->` before it. In the place of a comment `<!-- no key -->`, the next part of the file
of tests/pages/ with the page's name runs: it puts a scripted model in the place of a real one.
"""

import ast
import difflib
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import dspy
import pytest

import sigadapt
from sigadapt import SigadaptError, adapters, errors, testing

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NOT_RUN = {"guides/production.md": ["changes DSPy for the whole process"]}
"""The reasons of the blocks that do not run, by page. Keep it short."""

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
REASON = re.compile(r"<!-- not run: (.+?) -->\s*$")


SCRIPTED = "<!-- no key -->"


class Block(NamedTuple):
    """A fenced block of a page, with the reason why it does not run."""

    language: str
    code: str
    line: int
    reason: str | None


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page alone, as a reader sees them."""
    return blocks_of(page.read_text(encoding="utf-8"))


def whole(page: Path) -> str:
    """The text of a page with its scripted models."""
    text = page.read_text(encoding="utf-8")
    if SCRIPTED not in text:
        return text
    parts = scripted(page).split("\n---\n")
    assert text.count(SCRIPTED) == len(parts), name(page)
    first, *others = text.split(SCRIPTED)
    return first + "".join(part + other for part, other in zip(parts, others, strict=True))


def scripted(page: Path) -> str:
    """The scripted models of a page."""
    file = DOCS.parent / "tests" / "pages" / name(page).replace("/", "_")
    return file.read_text(encoding="utf-8")


def blocks_of(text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        before = text[: match.start()]
        reason = REASON.search(before)
        code = textwrap.dedent(match["code"])
        yield Block(match["language"], code, before.count("\n") + 2, reason[1] if reason else None)


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


RUN = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


@pytest.mark.parametrize("page", RUN, ids=name)
def test_a_page_runs_and_prints_what_it_shows(
    page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every example runs."""
    monkeypatch.chdir(tmp_path)
    before: dict[str, Any] = {key: getattr(dspy.settings, key) for key in ("lm", "adapter", "callbacks")}
    namespace: dict[str, Any] = {"__name__": "page"}
    printed = ""
    try:
        for block in blocks_of(whole(page)):
            if block.language == "output":
                assert printed == block.code, f"{name(page)}, line {block.line}"
            elif block.language == "python" and block.reason is None:
                placed = "\n" * (block.line - 1) + block.code  # so that an error names the page's line
                exec(compile(placed, str(page), "exec"), namespace)  # noqa: S102  (our own page)
                printed = capsys.readouterr().out
    finally:
        dspy.configure(**before)


def test_few_blocks_do_not_run() -> None:
    """What does not run is listed."""
    found = {name(page): [block.reason for block in blocks(page) if block.reason] for page in PAGES}
    assert {page: reasons for page, reasons in found.items() if reasons} == NOT_RUN


GUIDES = ("guides/", "start.md", "migration.md", "prompted.md")


def explained() -> set[str]:
    """Every word that a guide writes as code, in a block or in a sentence."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES if name(page).startswith(GUIDES)]
    code = [match["code"] for text in texts for match in FENCE.finditer(text)]
    code += [span for text in texts for span in re.findall(r"`([^`\n]+)`", FENCE.sub("", text))]
    return {word for part in code for word in re.findall(r"\w+", part)}


ADAPTERS = ("ChatAdapter", "JSONAdapter", "XMLAdapter", "BAMLAdapter", "TwoStepAdapter")
OPTIONS = {o for each in ADAPTERS for o in inspect.signature(getattr(adapters, each)).parameters} - {
    "unknown"
}
EXPORTING = ("adapters", "events", "listeners", "logs", "response", "server_tools", "tracing", "trust")
EXPORTED = {name for each in EXPORTING for name in importlib.import_module(f"sigadapt.{each}").__all__}
ERRORS = {each.__name__ for each in SigadaptError.__subclasses__() if each.__module__ == errors.__name__}


@pytest.mark.parametrize(
    "names",
    [
        {*sigadapt.__all__},
        EXPORTED,
        ERRORS,
        {*testing.__all__},
        {"compare", "ExactMatch", "SubsetMatch", "F1"},
        OPTIONS,
    ],
    ids=["sigadapt", "modules", "errors", "testing", "metrics", "options"],
)
def test_a_guide_has_every_public_name_and_option(names: set[str]) -> None:
    """Every public name and option is in a guide."""
    assert sorted(names - explained()) == []


def test_no_two_pages_have_one_title_and_no_page_has_two() -> None:
    """A page has one title of its own."""
    titles = [page.read_text(encoding="utf-8").splitlines()[0] for page in PAGES]
    assert sorted(title for title in set(titles) if titles.count(title) > 1) == []
    assert [title for title in titles if not title.startswith("# ")] == []
    nav = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert re.findall(r"^ *- [^\n]+: \S+\.md$", nav, re.MULTILINE) == []


def test_no_page_links_to_one_that_the_site_alone_has() -> None:
    """On GitHub, such a link would lead nowhere."""
    hook = (DOCS / "assets" / "generated_pages.py").read_text(encoding="utf-8")
    made = re.findall(r"\"(\w+\.md)\": \"make_", hook)
    assert len(made) >= 2
    links = re.compile(rf"\]\([^)]*({'|'.join(made)})")
    assert [name(page) for page in PAGES if links.search(page.read_text(encoding="utf-8"))] == []


MOST_FOR_USERS, MOST_PAGES = 25, 32
NOT_FOR_USERS = ("The API", "Inside", "Measured")


def test_the_menu_is_short() -> None:
    """A reader of the menu finds the guides."""
    nav = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    sections = re.split(r"^  - (?=[\w ]+:$)", nav, flags=re.MULTILINE)
    listed = {
        section.partition(":")[0]: re.findall(r"- (\S+\.md)$", section, re.MULTILINE) for section in sections
    }
    users = [page for title, pages in listed.items() if title not in NOT_FOR_USERS for page in pages]
    assert len(users) <= MOST_FOR_USERS
    assert sum(map(len, listed.values())) <= MOST_PAGES


def codes() -> set[tuple[str, str]]:
    """The class and the code of every error that the package makes."""
    package = Path(sigadapt.__file__).parent
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    found = {(each.__name__, each.code) for each in classes if issubclass(each, SigadaptError)}
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                given = [
                    k.value.value
                    for k in node.keywords
                    if k.arg == "code" and isinstance(k.value, ast.Constant)
                ]
                found |= {(node.func.id, str(code)) for code in given}
    return found


def test_the_page_of_errors_has_every_code() -> None:
    """Every code of an error is on the page of errors."""
    page = (DOCS / "guides" / "errors.md").read_text(encoding="utf-8")
    assert [code for code in get_args(errors.CallCode) if f"| `{code}` |" not in page] == []
    listed: dict[str, set[str]] = {}
    current = ""
    for row in re.findall(r"^\| (.*?)\|(.*?)\|", page, re.MULTILINE):
        current = row[0].strip(" `") or current
        listed.setdefault(current, set()).update(re.findall(r"`(\w+)`", row[1]))
    before = ("InvalidToolDecl", "InvalidSignature", "InvalidOption", "InvalidHistory")
    assert (
        sorted((error, code) for error, code in codes() if error in before and code not in listed[error])
        == []
    )


def test_the_diff_of_the_tutorial_is_the_one_between_its_programs() -> None:
    """The tutorial's diff is true."""
    _, before, after, *_ = [b.code for b in blocks(DOCS / "migration.md") if b.language == "python"]
    [shown] = [block.code for block in blocks(DOCS / "migration.md") if block.language == "diff"]
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    changed = [
        line for line in lines if line[0] in "+-" and line[1:].strip() and line[:3] not in ("---", "+++")
    ]
    assert shown.splitlines() == changed


def names(code: str) -> tuple[set[str], set[str]]:
    """The names that a block binds at its top level, and those that it uses."""
    tree = ast.parse(code)
    bound = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    bound |= {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        bound |= {
            each.id
            for each in ast.walk(node)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
    used = {
        each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
    return bound, used


@pytest.mark.parametrize("page", [page for page in PAGES if SCRIPTED in page.read_text("utf-8")], ids=name)
def test_a_page_runs_with_a_key(page: Path) -> None:
    """No block uses a name that only a scripted model binds."""
    hidden = set[str]().union(*(names(block.code)[0] for block in blocks_of(scripted(page))))
    visible = set[str]()
    for block in blocks(page):
        if block.language == "python":
            bound, used = names(block.code)
            assert not used & (hidden - visible - bound), f"{name(page)}, line {block.line}"
            visible |= bound
