"""Run the commands of docs/guides/logs.md on the shipped sample, and make a picture of the report.

It writes docs/guides/report.png where Chromium is. Run it with `python3 tasks.py docs`.
"""  # noqa: INP001  (a script)

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "guides" / "logs.md"
PICTURE = DOCS / "guides" / "report.png"


def run(folder: Path) -> None:
    """Run the page's commands in a folder, which then has the report."""
    page = PAGE.read_text(encoding="utf-8")
    shutil.copy(DOCS.parent / "examples" / "shop_traffic.jsonl", folder)
    [models] = re.findall(r"```python\n# my_models\.py\n(.*?)```", page, re.DOTALL)
    (folder / "my_models.py").write_text(models, encoding="utf-8")
    for command in re.findall(r"```console\n\$ sigadapt (.*?)\n", page):
        words = [sys.executable, "-m", "sigadapt", *shlex.split(command)]
        subprocess.run(words, cwd=folder, check=True)  # noqa: S603  (of our own page)


def picture(report: Path) -> None:
    """Write the picture of a report, if there is a Chromium to do it."""
    spec = importlib.util.spec_from_file_location("make_notebook", DOCS / "make_notebook.py")
    if spec is None or spec.loader is None:
        raise ImportError("docs/make_notebook.py cannot be loaded")
    notebook: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(notebook)
    if notebook.chromium() is None:
        return
    with notebook.browsing(report.read_text(encoding="utf-8")) as tab:
        tab.screenshot(path=PICTURE, full_page=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        run(Path(name))
        picture(Path(name) / "shop" / "report.html")
