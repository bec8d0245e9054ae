"""What a type checker finds in a user's program, which is tests/pages/types.md."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "tests" / "pages" / "types.md"


def test_pyright_finds_nine_planted_mistakes_and_nothing_else(tmp_path: Path) -> None:
    """A type checker finds the mistakes of the page on types."""
    page = PAGE.read_text(encoding="utf-8")
    (planted,) = re.findall(r"<!-- not run: [^>]+ -->\n\n```python\n(.*?)```", page, re.DOTALL)
    program = "\n\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    settings = {"pythonVersion": "3.10", "typeCheckingMode": "basic", "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", "program.py"]
    done = subprocess.run(  # noqa: S603  (our own command)
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["generalDiagnostics"]
    lines = program.splitlines()
    wrong = [line for line in planted.splitlines() if "  # " in line]
    assert len(wrong) == 9
    marked = [lines[int(each["range"]["start"]["line"])] for each in found]
    assert sorted(marked) == sorted(wrong)
    (said,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert {each["message"].splitlines()[0] for each in found} == set(said.splitlines())
