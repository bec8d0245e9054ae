"""The files of an adopted log are replaced only by whole new ones."""

from pathlib import Path

import pytest

from sigadapt.logs.adoption.folder import write_files


def test_all_files_or_none(tmp_path: Path) -> None:
    """logs: A bad line costs itself, and no earlier file"""
    write_files(tmp_path / "out", {"a.jsonl": "1\n", "b.jsonl": "2\n"})
    with pytest.raises(UnicodeEncodeError):
        write_files(tmp_path / "out", {"a.jsonl": "3\n", "b.jsonl": "\ud800"})
    files = {path.name: path.read_text("utf-8") for path in (tmp_path / "out").iterdir()}
    assert files == {"a.jsonl": "1\n", "b.jsonl": "2\n"}
