"""Fetch the official JSON Schema Test Suite for the tests, or say why they go without it.

It is in the source distribution of `jsonschema`, not in its wheel; constraints.txt pins the version.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from environments import ROOT, say


@contextmanager
def schema_suite() -> Generator[None]:
    """Let SIGADAPT_SCHEMA_SUITE name the archive while the tests run."""
    with tempfile.TemporaryDirectory() as folder:
        if not os.environ.get("SIGADAPT_SCHEMA_SUITE"):
            os.environ["SIGADAPT_SCHEMA_SUITE"] = fetched(Path(folder))
        yield


def fetched(folder: Path) -> str:
    """Return the path of the archive; an empty text if pip cannot get it."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries", "1", "--timeout", "30")
    download = ("download", "-qq", "--no-deps", "--no-binary", "jsonschema", "--dest", folder)
    wanted = ("--constraint", ROOT / "constraints.txt", "jsonschema")
    done = subprocess.run((*pip, *download, *wanted), capture_output=True, text=True, check=False)
    archive = next(folder.glob("jsonschema-*.tar.gz"), None)
    if done.returncode == 0 and archive is not None:
        return str(archive)
    errors = (line for line in done.stderr.splitlines() if line.startswith("ERROR:"))
    say(f"the official JSON Schema suite: skipped, pip says {next(errors, 'nothing')}")
    return ""
