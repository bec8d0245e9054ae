"""Mutation: which small changes of the code no test notices. `python3 tasks.py mutate [file ...]`.

mutmut changes the code in one place at a time and runs the tests that enter the function. A mutant survives
if they all pass. Each file of `TESTS` is tried with the tests that are about it, in a copy of the checkout,
so that the tree stays clean. docs/claims.md says what survives, and why.
"""

import ast
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READ = ("docs", "openspec", "README.md")  # what tests read of the checkout
PARTS = ("sigadapt", "tests", "pyproject.toml", *READ)

# Where a wrong sign does harm without an error, and the tests that say what is right there. More tests cost
# little: of those that enter a changed function, the fastest run first, until one fails.
TESTS: dict[str, tuple[str, ...]] = {
    "signatures/tool_results/pairing.py": ("signatures/test_pairing.py", "signatures/test_results.py"),
    "signatures/turns/decisions.py": (
        "runs/test_decisions.py",
        "runs/test_kept_runs.py",
        "runs/test_waiting.py",
        "signatures/test_confirmation.py",
        "signatures/tool_functions",
        "signatures/turns",
    ),
    "signatures/tool_functions/guards.py": (
        "runs/test_decisions.py",
        "runs/test_waiting.py",
        "signatures/test_confirmation.py",
        "signatures/test_forgotten_adapter.py",
        "signatures/test_function_calls.py",
        "signatures/test_immutable_decls.py",
        "signatures/test_pickling.py",
        "signatures/test_plain_values.py",
        "signatures/test_running.py",
        "signatures/tool_functions",
    ),
    "runs/waiting.py": (
        "runs/test_decisions.py",
        "runs/test_interrupted_resumes.py",
        "runs/test_kept_runs.py",
        "runs/test_waiting.py",
        "runs/stores",
        "signatures/tool_functions",
        "trust/test_golden_marks.py",
        "trust/test_mutated_json.py",
        "trust/test_signed_runs.py",
    ),
    "runs/stores/waiting_runs.py": ("runs/stores", "ui/test_chats.py"),
    "ui/chat.py": ("ui",),
    "ui/page_requests.py": ("ui",),
    "logs/adoption/gold.py": ("logs/adoption", "logs/test_reruns.py"),
    "logs/adoption/threads.py": ("logs/adoption", "logs/test_conversation.py", "logs/test_exchanges.py"),
    "adapters/request/aliases.py": ("adapters/passes/test_aliases.py", "adapters/passes/test_lowering.py"),
    "adapters/passes/order.py": (
        "adapters/passes/test_adapter_search.py",
        "adapters/passes/test_aliases.py",
        "adapters/passes/test_custom_tools.py",
        "adapters/passes/test_lowering.py",
        "adapters/passes/test_order.py",
        "adapters/response/test_typed_calls.py",
        "adapters/test_leaked_tokens.py",
    ),
    "adapters/response/typed_calls.py": (
        "adapters/response/test_typed_calls.py",
        "adapters/response/test_repeated_keys.py",
        "adapters/request/test_continuation.py",
    ),
    "schemas/arguments.py": ("schemas/test_arguments.py", "schemas/test_decoded_arguments.py"),
    "schemas/misfits.py": ("schemas/test_misfits.py", "schemas/test_effort.py"),
}
# Tests that remember something in the process, in which mutmut runs them again, or that start another process
LEFT_OUT = "not by_the_cache and not process_of_its_own"
CONFIG = """[mutmut]
source_paths=sigadapt
only_mutate=sigadapt/{file}
also_copy=
    {read}
pytest_add_cli_args=
    -p
    no:cacheprovider
    --hypothesis-profile=mutants
    -k
    {left_out}
pytest_add_cli_args_test_selection=
    {tests}
timeout_multiplier=4
timeout_constant=2
"""
# `mcp` keeps the standard error that it finds when it is imported. That of a test is closed after its run.
MUTMUT = "import mcp.client.stdio, mutmut.__main__; mutmut.__main__.cli()"
SURVIVED, UNTESTED = 0, 33  # mutmut's marks; every other one says how a test run failed
TIMEOUTS = (24, -24, 36, 152, 255)  # took too long: an endless loop, or a machine that was busy


def main(arguments: Sequence[str]) -> int:
    """Try the mutants of the named files, or of all. Print the survivors and a table for docs/claims.md."""
    unknown = [name for name in arguments if not any(name in file for file in TESTS)]
    if unknown:
        sys.exit(f"mutate: no tests are listed for {', '.join(unknown)}; the files are {', '.join(TESTS)}")
    rows = [
        "| file | mutants | killed | untested | string-only | survived |",
        "|---|---|---|---|---|---|",
    ]
    for file in TESTS:
        if not arguments or any(name in file for name in arguments):
            with tempfile.TemporaryDirectory(prefix="sigadapt-mutants-") as name:
                rows.append(tried(file, Path(name)))
    print("", *rows, sep="\n")
    return 0


def tried(file: str, folder: Path) -> str:
    """Try the mutants of one file in a folder, print those that survived, and return the file's row."""
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, folder / part)
    tests = "\n    ".join(f"tests/{test}" for test in TESTS[file])
    config = CONFIG.format(file=file, tests=tests, read="\n    ".join(READ), left_out=LEFT_OUT)
    (folder / "setup.cfg").write_text(config, encoding="utf-8")
    # Named, mutmut first asks for each test by its id alone. What it could not find would count as a failure.
    names = f"sigadapt.{file.removesuffix('.py').replace('/', '.')}.*"
    run = (sys.executable, "-c", MUTMUT, "run", "--max-children", str(os.cpu_count() or 1), names)
    env = {key: value for key, value in os.environ.items() if key != "SIGADAPT_CORPUS"}  # it takes minutes
    with (folder / "log").open("wb") as log:  # thousands of lines of progress, of use only if it fails
        done = subprocess.run(run, cwd=folder, env=env, stdout=log, stderr=log, check=False)
    mutated = folder / "mutants" / "sigadapt" / file
    meta = Path(f"{mutated}.meta")
    marks: dict[str, int | None] = json.loads(meta.read_bytes())["exit_code_by_key"] if meta.exists() else {}
    if not marks or None in marks.values():
        last = (folder / "log").read_text(encoding="utf-8", errors="replace")[-4_000:]
        sys.exit(f"mutmut ended with status {done.returncode} on {file}:\n{last}")
    functions = functions_of(mutated.read_text(encoding="utf-8"))
    survivors = [name.rpartition(".")[2] for name, mark in marks.items() if mark == SURVIVED]
    logic = [name for name in survivors if not is_string_only(name, functions)]
    for name in logic:
        print(f"\n{file}: {name}", *changed(name, functions), sep="\n", flush=True)
    late = [name.rpartition(".")[2] for name, mark in marks.items() if mark in TIMEOUTS]
    print(f"\n{file}: {len(late)} of those killed took too long", *late, sep="\n", flush=True)
    untested = sum(mark == UNTESTED for mark in marks.values())
    killed, string_only = len(marks) - len(survivors) - untested, len(survivors) - len(logic)
    return f"| `{file}` | {len(marks)} | {killed} | {untested} | {string_only} | {len(logic)} |"


def functions_of(text: str) -> dict[str, ast.stmt]:
    """Return the functions of a file that mutmut wrote: each mutant, and the original, by name."""
    found = (
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {node.name: node for node in found}


def both(name: str, functions: dict[str, ast.stmt]) -> list[str]:
    """Return the original and the mutant as code, without layout and without their names."""
    original = f"{name.rpartition('__mutmut_')[0]}__mutmut_orig"
    return [ast.unparse(functions[each]).replace(each, "f", 1) for each in (original, name)]


def is_string_only(name: str, functions: dict[str, ast.stmt]) -> bool:
    """Whether a mutant differs only in texts, nearly all of them messages, or in the types of a `cast`."""
    plain: list[str] = []
    for code in both(name, functions):
        tree = ast.parse(code)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                node.value = ""
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast":
                node.args[:1] = []
        plain.append(ast.dump(tree))
    return plain[0] == plain[1]


def changed(name: str, functions: dict[str, ast.stmt]) -> list[str]:
    """Return the lines that a mutant takes away and adds."""
    original, mutant = (code.splitlines() for code in both(name, functions))
    return [line for line in difflib.ndiff(original, mutant) if line[:2] in ("- ", "+ ")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
