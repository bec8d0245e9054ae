"""A hook of mkdocs that adds what is made from the code, so that none of it is stale.

Some pages are written by a script beside them, `make_<page>.py`. On the others, the comment
`<!-- program: examples/x.py -->` becomes that file.
"""  # noqa: INP001  (a script)

import importlib.util
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

PAGES = ("wires", "text_formats")
GUIDES = ("guides/", "programs/", "start", "first_agent", "sources", "prompted", "tutorial", "symptoms")
DOCS = Path(__file__).resolve().parent.parent


def on_files(files: Files, config: Any) -> Files:
    """Add the pages to those of the folder."""
    for page in PAGES:
        files.append(File.generated(config, f"{page}.md", content=content_of(page)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the programs in, and let the search find guides before pages about the project."""
    if not page.file.src_uri.startswith(GUIDES):
        page.meta.setdefault("search", {"boost": 0.5})
    return re.sub(r"<!-- program: (.+?) -->", _program, markdown)


def _program(named: re.Match[str]) -> str:
    path = DOCS.parent / named[1]
    language = path.suffix.lstrip(".").replace("py", "python")
    return f'```{language} title="{named[1]}"\n{path.read_text(encoding="utf-8")}```'


def content_of(page: str) -> str:
    """Return what the script of a page writes."""
    spec = importlib.util.spec_from_file_location(f"make_{page}", DOCS / f"make_{page}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"docs/make_{page}.py cannot be loaded")
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    texts: list[str] = []
    script.main(texts.append)
    return texts[0]
