"""A hook of mkdocs that writes the pages which programs make, and lists all in `llms.txt`.

The pages of `WRITERS` exist on the site alone, so no page of docs/ links to one. A page's comment
`<!-- program: examples/x.py -->` becomes that file. What a page says to readers of the repository alone,
between `<!-- not on the site -->` and `<!-- end -->`, is left out.
"""  # noqa: INP001  (a script)

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

GUIDES = ("guides/", "programs/", "start", "first_agent", "prompted", "migration", "symptoms")
DOCS = Path(__file__).resolve().parent.parent
WRITERS = {"wires.md": "make_wires.py", "text_formats.md": "make_text_formats.py"}
READ: dict[str, str] = {}
"""The line of each page in `llms.txt`, by its file."""


def on_files(files: Any, config: Any) -> Any:
    """Write the pages that programs make."""
    for page, script in WRITERS.items():
        command = [sys.executable, DOCS / script]
        done = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, check=True)  # noqa: S603
        files.append(File.generated(config, page, content=done.stdout))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the programs in, and let the search find guides before pages about the project."""
    if not page.file.src_uri.startswith(GUIDES):
        page.meta.setdefault("search", {"boost": 0.5})
    markdown = re.sub(r"<!-- not on the site -->.*?<!-- end -->", "", markdown, flags=re.DOTALL)
    READ[page.file.src_uri] = line_of(markdown, page.url)
    return re.sub(r"<!-- program: (\S+) -->", _program, markdown)


def on_post_build(config: Any) -> None:
    """Write `llms.txt` (https://llmstxt.org): each page, in the site's order, with its first sentence."""
    head = f"# {config['site_name']}\n\n> {config['site_description']}\n"
    text = head + "".join(_listed("Pages", config["nav"]))
    Path(config["site_dir"], "llms.txt").write_text(text, encoding="utf-8")


def _listed(title: str, entries: list[Any]) -> Iterator[str]:
    yield f"\n## {title}\n\n"
    yield from (READ[entry] for entry in entries if isinstance(entry, str))
    for section in (entry for entry in entries if isinstance(entry, dict)):
        ((name, inner),) = section.items()
        yield from _listed(name, inner)


def line_of(markdown: str, url: str) -> str:
    """Return the line that lists a page: its title, its address, and the first sentence of its prose."""
    title = re.search(r"^# (.+)$", markdown, re.MULTILINE)
    flags = re.DOTALL | re.MULTILINE
    plain = re.sub(r"^ *```.*?^ *```$|<svg.*?</svg>|<[^>]+>|!\[[^]]*\]\([^)]*\)", "", markdown, flags=flags)
    prose = re.search(r"^(?=[A-Za-z`*\[]).+?(?=\n\n|\Z)", plain, flags)
    words = " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)|\*\*", r"\1", prose[0]).split()) if prose else ""
    sentence = re.split(r"(?<=[a-z)`\"][.?!])\s", words)[0]
    return f"- [{title[1] if title else url}]({url}){f': {sentence}' if sentence else ''}\n"


def _program(named: re.Match[str]) -> str:
    path = DOCS.parent / named[1]
    language = path.suffix.lstrip(".").replace("py", "python")
    return f'```{language} title="{named[1]}"\n{path.read_text(encoding="utf-8")}```'
