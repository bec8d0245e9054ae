"""What a person sees in a notebook, in a real browser, on light and dark; no script runs."""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_docs import DOCS, script

from sigadapt import Choice, ToolCallParseError, ToolDecls, choice_from_response

pytestmark = pytest.mark.slow

notebook: Any = script("make_notebook")
HOSTILE = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"


@pytest.fixture(scope="module", autouse=True)
def _browser() -> None:
    pytest.importorskip("playwright.sync_api", reason="the extra docs is not installed")
    if notebook.chromium() is None:
        pytest.skip("there is no Chromium")


def hostile() -> list[Any]:
    call = {"id": HOSTILE, "function": {"name": HOSTILE, "arguments": f'{{"{HOSTILE[:8]}": 1,}}'}}
    message = {"content": HOSTILE, "tool_calls": [call]}
    choice = choice_from_response({"choices": [{"message": message, "finish_reason": HOSTILE}]})
    declared: Any = {"name": HOSTILE, "description": HOSTILE, "parameters": {"properties": {HOSTILE: {}}}}
    error = ToolCallParseError(HOSTILE, choice=choice)
    return [choice, choice.tool_calls, error, ToolDecls([declared]), Choice(HOSTILE)]


def test_a_person_sees_the_calls_and_what_is_wrong_with_them() -> None:
    """rendering: A browser shows what is wrong with a call."""
    with notebook.browsing(notebook.page(notebook.shown())) as tab:
        for theme in notebook.THEMES:
            text = re.sub(r"\s+", " ", tab.inner_text(f"#{theme}"))
            assert "ToolDecls: 2 tools" in text
            assert "get_weather Weather forecast for a city. city: string, days?: integer" in text
            assert 'schema_mismatch get_weather {"city":42} at /city call_2' in text
            assert 'truncated get_weather {"city":"Os call_3' in text
            marks = tab.locator(f"#{theme} span[style*='#ffd54f'], #{theme} span[style*='255, 213, 79']")
            assert marks.all_inner_texts() == ["42"]
            assert marks.nth(0).is_visible()


def test_nothing_that_a_model_wrote_runs() -> None:
    """rendering: Everything that somebody else wrote is escaped."""
    with notebook.browsing(notebook.page(hostile())) as tab:
        tab.wait_for_timeout(100)
        assert tab.title() == ""
        assert tab.locator("script, img").count() == 0
        assert tab.inner_text("#light").count("<script>document.title='run'</script>") >= 8


def contrasts(tab: Any, theme: str) -> Iterator[tuple[str, float]]:
    """Each visible text, and the contrast with what is behind it, as WCAG computes it."""
    yield from tab.evaluate(CONTRASTS, f"#{theme}")


CONTRASTS = """
root => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const over = (top, under) => {
    const a = top.length > 3 ? top[3] : 1;
    return [0, 1, 2].map(i => top[i] * a + under[i] * (1 - a));
  };
  const light = c => {
    const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const found = [];
  const walk = (node, back, opacity) => {
    const style = getComputedStyle(node);
    const own = parse(style.backgroundColor);
    if (own.length && (own.length < 4 || own[3] > 0)) back = over(own, back);
    opacity *= Number(style.opacity);
    for (const child of node.childNodes) {
      if (child.nodeType === 1) walk(child, back, opacity);
      else if (child.textContent.trim()) {
        const fore = parse(style.color);
        fore[3] = (fore.length > 3 ? fore[3] : 1) * opacity;
        const [a, b] = [light(over(fore, back)), light(back)].sort((x, y) => y - x);
        found.push([child.textContent, (a + .05) / (b + .05)]);
      }
    }
  };
  walk(document.querySelector(root), [255, 255, 255], 1);
  return found;
}
"""


@pytest.mark.parametrize("theme", list(notebook.THEMES))
def test_it_can_be_read_on_light_and_dark(theme: str) -> None:
    """rendering: It can be read on light and dark."""
    with notebook.browsing(notebook.page([*notebook.shown(), *hostile()])) as tab:
        found = list(contrasts(tab, theme))
    assert len(found) > 30
    assert [(text, ratio) for text, ratio in found if ratio < 4.5] == []


def test_the_guides_picture_is_taken_by_the_browser(tmp_path: Path) -> None:
    """rendering: A browser shows what is wrong with a call."""
    notebook.picture(tmp_path / "now.png")
    assert "notebook.png" in (DOCS / "guides" / "command.md").read_text("utf-8")
    now, committed = (size_of(path) for path in (tmp_path / "now.png", notebook.IMAGE))
    assert now[0] == committed[0]
    assert abs(now[1] - committed[1]) < 80  # another machine has other fonts
    assert notebook.IMAGE.stat().st_size < 150_000


def size_of(picture: Path) -> tuple[int, int]:
    return struct.unpack(">II", picture.read_bytes()[16:24])
