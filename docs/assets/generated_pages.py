"""A hook of mkdocs that adds the pages that are made from tables of the code, so that none of them is stale.

Each is written by its script beside the pages, `make_<page>.py`.
"""  # noqa: INP001  (a script)

import importlib.util
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

PAGES = ("wires", "text_formats")
DOCS = Path(__file__).resolve().parent.parent


def on_files(files: Files, config: Any) -> Files:
    """Add the pages to those of the folder."""
    for page in PAGES:
        files.append(File.generated(config, f"{page}.md", content=content_of(page)))
    return files


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
