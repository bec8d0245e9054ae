"""Make docs/guides/notebook.png: what a notebook shows, light and dark, as a real browser renders it.

It needs the extra `docs` (playwright) and Chromium. Run it as a script.
"""  # noqa: INP001  (a script)

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sigadapt
from sigadapt import ToolDecls, choice_from_response

IMAGE = Path(__file__).parent / "guides" / "notebook.png"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# The colours of JupyterLab's light and dark themes.
THEMES = {"light": ("#ffffff", "rgba(0,0,0,.87)"), "dark": ("#111111", "rgba(255,255,255,.87)")}


def get_weather(city: str, days: int = 1) -> str:
    """Weather forecast for a city."""
    raise NotImplementedError


def shown() -> list[Any]:
    """Return what the picture shows: tools, an error with good and bad calls, results, one tool, a change."""
    decls = ToolDecls([get_weather, {"name": "now", "description": "The time.", "strict": True}])
    sent = ('{"city":"Paris","days":2}', '{"city":42}', '{"city":"Os')
    calls = [
        {"id": f"call_{number}", "type": "function", "function": {"name": "get_weather", "arguments": text}}
        for number, text in enumerate(sent, 1)
    ]
    message = {"role": "assistant", "content": "Let me look.", "tool_calls": calls}
    choice = choice_from_response({"choices": [{"finish_reason": "length", "message": message}]})
    made = choice.tool_calls
    assert made is not None  # noqa: S101  (pyright cannot know)
    checked = sigadapt.Choice(choice.text, made.validated(decls), None, choice.finish_reason)
    error = sigadapt.ToolCallParseError("2 of 3 tool calls cannot be used", choice=checked)
    results = sigadapt.ToolResults.of(sigadapt.ToolCalls(made[0]), ["Sunny for 2 days."])
    change = sigadapt.Change("/tools/0/strict", "dropped", "this route has no strict mode")
    return [decls, error, results, decls["get_weather"], change]


def page(objects: list[Any]) -> str:
    """Return a page with the objects as a notebook has them, once on each theme's background."""
    html = "".join(f'<div style="margin:0 0 10px">{each._repr_html_()}</div>' for each in objects)
    halves = "".join(
        f'<div id="{name}" style="padding:12px;font:13px sans-serif;background:{back};color:{fore}">'
        f"{html}</div>"
        for name, (back, fore) in THEMES.items()
    )
    return f'<!doctype html><meta charset="utf-8"><body style="margin:0;width:960px">{halves}</body>'


def chromium() -> str | None:
    """Return where Chromium is; None where it is not installed."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browsing(html: str) -> Generator[Any]:
    """Open a page in Chromium, and close it."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (only with the extra `docs`)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            tab = browser.new_page(viewport={"width": 960, "height": 400})
            tab.set_content(html)
            yield tab
        finally:
            browser.close()


def picture(path: Path) -> None:
    """Write the picture."""
    with browsing(page(shown())) as tab:
        tab.screenshot(path=path, full_page=True)


def main() -> None:
    """Write the picture; leave it as it is where there is no browser."""
    try:
        import playwright.sync_api  # noqa: F401, PLC0415
    except ImportError:
        print("docs/guides/notebook.png is left as it is: the extra docs is not installed")  # noqa: T201
        return
    if chromium() is None:
        print("docs/guides/notebook.png is left as it is: there is no Chromium")  # noqa: T201
        return
    picture(IMAGE)


if __name__ == "__main__":
    main()
