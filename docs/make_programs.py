"""Write the programs of examples/ into the pages that show them, so that a page is whole on GitHub too.

A page has the comment `<!-- program: examples/x.py -->`, the file's code as a block, and `<!-- /program -->`.
Run it with `python3 tasks.py site --write`.
"""  # noqa: INP001  (a script)

import re
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).resolve().parent
SHOWN = re.compile(
    r"<!-- program: (?P<path>\S+) -->\n(?:<!-- fmt: off -->.*?<!-- /program -->\n)?", re.DOTALL
)
LANGUAGES = {".py": "python", ".html": "html", ".jsx": "jsx"}


def page(text: str) -> str:
    """Return a page with its programs as they are."""
    return SHOWN.sub(_program, text)


def pages() -> list[Path]:
    """Return the pages that show a program."""
    return [path for path in sorted(DOCS.rglob("*.md")) if SHOWN.search(path.read_text(encoding="utf-8"))]


def _program(shown: re.Match[str]) -> str:
    path = DOCS.parent / shown["path"]
    code = path.read_text(encoding="utf-8")
    language = LANGUAGES[path.suffix]
    return (
        f"<!-- program: {shown['path']} -->\n"
        "<!-- fmt: off -->\n\n"  # the file is formatted already
        f'```{language} title="{shown["path"]}"\n{code}```\n\n'
        "<!-- fmt: on -->\n"
        "<!-- /program -->\n"
    )


def write(path: Path, text: str) -> None:
    """Write a page."""
    path.write_text(text, encoding="utf-8")


def main(write: Callable[[Path, str], object] = write) -> None:
    """Write each page that shows a program."""
    for path in pages():
        write(path, page(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
