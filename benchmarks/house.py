"""The measures of the structure: `python -m benchmarks.house [path of a package]`, or `tasks.py house`.

Everything but the warm call is read off the source, so an older checkout can be measured beside this one.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

PROVIDERS = re.compile(
    r"anthropic|claude|gemini|ollama|bedrock|cohere|deepseek|moonshot|mistral", re.IGNORECASE
)
BOUNDARY = re.compile(r"dspy\.(clients|streaming|lm15)\b|litellm\b")
CACHES = re.compile(
    r"= ?(?:WeakKeyDictionary|Memo|Bounded|WeakCache|BoundedCache)\b[\[(]|WeakKeyDictionary\[.*\] = "
    r"|return Memo\(|@(?:functools\.)?(?:cache|lru_cache|cached_property)\b"
)


class Measure(NamedTuple):
    """One row of the table."""

    what: str
    value: str


def measures(package: Path) -> Iterator[Measure]:
    """Every measure that can be read off the source."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))}
    folders = Counter(path.parent for path in trees)
    folder, most = folders.most_common(1)[0]
    yield Measure("files in the largest folder", f"{most} ({folder.relative_to(package.parent)})")
    graphs = [edges(trees, package, kinds) for kinds in (1, 2, 3)]
    circles = [list(circles_in(graph)) for graph in graphs]
    sizes = " and ".join(str(sum(map(len, found))) for found in circles)
    counts = " / ".join(str(len(found)) for found in circles)
    yield Measure("import circles: at load / in functions too / types too", f"{counts} ({sizes} files)")
    named = [p for p in trees if not outside(p, package) and names_provider(trees[p])]
    yield Measure("files that name a provider outside of its own", f"{len(named)}")
    touching = [p for p in trees if any(BOUNDARY.match(name) for name in imported(trees[p]))]
    homes = Counter(str(p.parent.relative_to(package)) for p in touching if "testing" not in p.parts)
    yield Measure("files that import DSPy's clients, streaming, lm15 or LiteLLM", str(dict(homes)))
    core = [
        p
        for p in trees
        if p.relative_to(package).parts[0] not in ("testing", "commands", "demo.py", "cli.py")
    ]
    lines = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in core)
    yield Measure("core lines / files", f"{lines} / {len(core)}")
    longest = max(
        (node.end_lineno - node.lineno + 1 - doc_lines(node), node.name)
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno
    )
    yield Measure("longest function, its docstring aside", f"{longest[0]} lines ({longest[1]})")
    text = "\n".join(p.read_text(encoding="utf-8") for p in trees if "testing" not in p.parts)
    yield Measure("caches", str(len(CACHES.findall(text))))
    casts = len(re.findall(r"\bcast\(", text))
    ignored = len(re.findall(r"pyright: ignore|# noqa", text))
    yield Measure("`cast` / `pyright: ignore` and `noqa`", f"{casts} / {ignored}")


def outside(path: Path, package: Path) -> bool:
    """Whether a file may name providers: their own, the loopback provider's, the shapes of dicts."""
    parts = path.relative_to(package).parts
    return (
        parts[0] in ("testing", "providers")
        or "readers" in parts
        or parts[-1] in ("dicts.py", "wire_shapes.py")
    )


def names_provider(tree: ast.Module) -> bool:
    """Whether any text in the code, docstrings aside, holds a provider's name."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return any(PROVIDERS.search(node.value) for node in texts if id(node) not in docs)


def doc_lines(node: Any) -> int:
    """How many lines a function's docstring takes."""
    first = node.body[0]
    is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return first.end_lineno - first.lineno + 1 if is_doc else 0


def imported(tree: ast.Module) -> Iterator[str]:
    """Full names of all that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name != "BaseLM")


def edges(trees: dict[Path, ast.Module], package: Path, kinds: int) -> dict[Path, set[Path]]:
    """Which file imports which: 1 at load, 2 in functions too, 3 for types too."""
    graph: dict[Path, set[Path]] = {}
    for path, tree in trees.items():
        names: list[str] = []
        pending: list[tuple[ast.AST, bool, bool]] = [(tree, False, False)]
        while pending:
            node, inside, typed = pending.pop()
            inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            if (inside and kinds < 2) or (typed and kinds < 3):
                continue
            if isinstance(node, ast.ImportFrom):
                names += [f"{node.module}.{alias.name}" for alias in node.names]
            is_check = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for child in ast.iter_child_nodes(node):
                orelse = is_check and child in node.orelse  # type: ignore[attr-defined]
                pending.append((child, inside, typed or (is_check and not orelse)))
        found = (home_of(name, package) for name in names)
        graph[path] = {home for home in found if home and home != path}
    return graph


def home_of(name: str, package: Path) -> Path | None:
    """The file that a full name is in."""
    root, *rest = name.split(".")
    if root != package.name:
        return None
    for length in range(len(rest), -1, -1):
        place = package.joinpath(*rest[:length])
        if place.with_suffix(".py").is_file() and length:
            return place.with_suffix(".py")
        if (place / "__init__.py").is_file():
            return place / "__init__.py"
    return None


def circles_in(graph: dict[Path, set[Path]]) -> Iterator[list[Path]]:
    """Groups of files that import each other."""
    reach = {node: reachable(node, graph) for node in graph}
    seen: set[Path] = set()
    for node in graph:
        circle = [other for other in reach[node] if node in reach[other]]
        if node in reach[node] and node not in seen:
            seen.update(circle)
            yield circle


def reachable(start: Path, graph: dict[Path, set[Path]]) -> set[Path]:
    """What a file imports, and what that imports."""
    found: set[Path] = set()
    pending: list[Path] = list(graph[start])
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending.extend(graph[node])
    return found


def warm_call() -> Measure:
    """What one call of a compiled signature enters, the model answering at once."""
    import dspy  # noqa: PLC0415
    from dspy.lm15 import Message, Response, ToolCallPart, Usage  # noqa: PLC0415

    import sigadapt  # noqa: PLC0415

    called = {"function": {"name": "now", "arguments": "{}"}, "id": "call_1"}
    body = {"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [called]}}]}

    class Free:
        supports_function_calling, supports_response_schema = True, False
        supported_params = ("tools", "tool_choice")

        def complete(self, request: Any) -> Any:
            part = ToolCallPart(id="call_1", name="now", input={})
            return Response(
                id="r",
                model=request.model,
                message=Message.assistant((part,)),
                finish_reason="tool_call",
                usage=Usage(),
                provider_data=body,
            )

    class Ask(dspy.Signature):
        """Answer."""

        question: str = dspy.InputField()
        tools: sigadapt.ToolDecls = dspy.InputField()
        calls: sigadapt.ToolCalls = dspy.OutputField()

    package = str(Path(sigadapt.__file__).parent)
    entered: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(package):
            entered.append(frame.f_code.co_filename)

    lm: Any = dspy.LM("openai/x", engine=Free(), cache=False)
    decls = sigadapt.ToolDecls([{"name": "now"}])
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
        predict: Any = dspy.Predict(Ask)
        predict(question="q", tools=decls)
        sys.setprofile(note)
        predict(question="q", tools=decls)
        sys.setprofile(None)
    moves = sum(a != b for a, b in pairwise(entered))
    return Measure(
        "one warm call: functions / files / moves", f"{len(entered)} / {len(set(entered))} / {moves}"
    )


def table(rows: Iterable[Measure]) -> str:
    """The measures as a Markdown table."""
    return "\n".join(["| measure | now |", "|---|---|", *(f"| {row.what} | {row.value} |" for row in rows)])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(table(measures(Path(sys.argv[1]).resolve())))
    else:
        root = Path(__file__).resolve().parent.parent / "sigadapt"
        print(table([*measures(root), warm_call()]))
