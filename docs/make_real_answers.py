"""Write "What a real model sent" in docs/corpus.md: recorded answers of real models, as sigadapt reads them.

`SIGADAPT_CORPUS` names the folder of the recordings. Run it with `python3 tasks.py site --write`.
"""  # noqa: INP001  (a script)

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from sigadapt import ToolDecls, choice_from_response

PAGE = Path(__file__).with_name("corpus.md")
SECTION = re.compile(r"(?<=<!-- recorded -->\n).*(?=<!-- end of what is recorded -->)", re.DOTALL)
LONGEST = 88
"""Characters of a value. A longer one ends in an ellipsis."""


class Recorded(NamedTuple):
    """One answer of the corpus: its file, its id there, and what to notice in it."""

    wire: str
    id: str
    notice: str


RECORDED = (
    Recorded(
        "anthropic",
        "test_anthropic/test_multiple_parallel_tool_calls.yaml#0",
        "a Claude turn with words beside four calls. Both arrive.",
    ),
    Recorded(
        "openai-chat",
        "test_snowflake/test_snowflake_thinking.yaml#0",
        "a Claude turn that thinks, speaks and calls, from a gateway.",
    ),
    Recorded(
        "openai-responses",
        "test_openai_responses/test_openai_responses_thinking_with_tool_calls.yaml#0",
        "a GPT turn with a summary of its reasoning.",
    ),
    Recorded(
        "gemini",
        "test_multimodal_tool_returns/test_multimodal_tool_return_matrix"
        "[direct-binary-document-google_vertex].yaml#0",
        "a Gemini turn with an undeclared argument: `get_file` takes none.",
    ),
)


def lines(exchange: dict[str, Any]) -> Iterator[str]:
    """Yield what sigadapt reads in a recorded answer, checked against the tools of its request."""
    choice = choice_from_response(exchange["response"], dialect=exchange["dialect"])
    for name in "reasoning", "text":
        if said := getattr(choice, name):
            yield f"{name}: {short(said)}"
    calls = choice.tool_calls
    if calls is None:
        raise ValueError(f"{exchange['id']} holds no call")
    calls = calls.validated(ToolDecls(exchange["expected"]["tools"]))
    for call in calls:
        yield f"call: {short(str(call))}"
    for bad in calls.invalid:
        yield f"bad call: {short(f'{bad.name}({bad.arguments})')}"
        yield f"  {bad.code}: {bad.message}"


def short(text: str) -> str:
    """Return a text on one line, cut to the width of the page."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


def source(exchange: dict[str, Any]) -> str:
    """Return the model that answered and, where the recording says so, when."""
    body = exchange["response"]
    model = body.get("model") or body["modelVersion"]
    seconds = body.get("created") or body.get("created_at")
    if seconds is not None:
        return f"`{model}`, {datetime.fromtimestamp(seconds, timezone.utc).date()}"
    return f"`{model}`, {body['createTime'][:10]}" if "createTime" in body else f"`{model}`, undated"


def section() -> str:
    """Return the part of the page that is made from the recordings."""
    blocks: list[str] = []
    for recorded in RECORDED:
        path = Path(os.environ["SIGADAPT_CORPUS"], "wire", f"{recorded.wire}.jsonl.gz")
        rows = (json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines())
        exchange = next(row for row in rows if row["id"] == recorded.id)
        shown = "\n".join(lines(exchange))
        blocks.append(f"{source(exchange)}: {recorded.notice}\n\n```text\n{shown}\n```\n")
    return "\n" + "\n".join(blocks) + "\n"


def main(write: Callable[[str], object] = lambda text: PAGE.write_text(text, encoding="utf-8")) -> None:
    """Write the page with the section made anew."""
    folder = Path(os.environ.get("SIGADAPT_CORPUS", ""), "wire")
    if not folder.is_dir():
        print(f"docs/corpus.md: left as it is, SIGADAPT_CORPUS names no recordings with wire/ ({folder})")  # noqa: T201
        return
    made = section()
    write(SECTION.sub(lambda _: made, PAGE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
