"""The page on logs shows what the commands print today."""

import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from internals import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guides" / "logs.md").read_text("utf-8")
SHOWN = re.findall(r"```console\n\$ (sigadapt .*?)\n(.*?)```", PAGE, re.DOTALL)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """logs: The program of a log runs."""
    shutil.copy(ROOT / "examples" / "shop_traffic.jsonl", tmp_path)
    code = re.search(r"```python\n# my_models\.py\n(.*?)```", PAGE, re.DOTALL)
    assert code
    (tmp_path / "my_models.py").write_text(code[1], "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delitem(sys.modules, "my_models", raising=False)
    assert len(SHOWN) == 4
    for words, printed in SHOWN:
        assert main(shlex.split(words)[1:]) == 0
        assert lines(capsys.readouterr().out) == lines(printed)
