"""Have the official clients of web pages read what `sigadapt.ui` writes; `python3 tasks.py ui` runs this."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from environments import VENV, command, run

# The npm packages that read what sigadapt.ui writes, and what builds the page of examples/use_chat.py.
CLIENTS = (
    "ai@6",
    "@ag-ui/core@1",
    "@ag-ui/client@1",
    "@ai-sdk/react@3",
    "react@19",
    "react-dom@19",
    "esbuild@0.28",
)
TESTS = (
    "tests/ui/test_writers.py",
    "tests/examples/test_use_chat.py",
    "tests/examples/test_runs_on_pages.py",
)
# The independent checks that have the clients read along, with their groups.
CHECKS = {"runs.py": "ui", "chats.py": "rules,official"}


def main() -> None:
    """Install the clients, and run the tests and the checks with them."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("npm is missing")
    python = command(VENV, "python")
    with tempfile.TemporaryDirectory() as folder:
        run(npm, "install", "--no-audit", "--no-fund", "--prefix", folder, *CLIENTS)
        os.environ["SIGADAPT_NPM"] = folder
        run(python, "-m", "pytest", "-n", "0", "-m", "slow or not slow", *TESTS)
        checks = os.environ.get("SIGADAPT_CHECKS")
        if checks:
            for script, groups in CHECKS.items():
                run(python, Path(checks, script), "--only", groups, "--npm", folder)


if __name__ == "__main__":
    main()
