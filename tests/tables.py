"""Tables of cases that are data: `<test file>.json` beside a test, one member a table."""

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def table(test_file: str, name: str) -> Any:
    """A table of the file beside a test, which gives its own `__file__`."""
    return _read(Path(test_file).with_suffix(".json"))[name]
