"""The chat of examples/chat_endpoint.py, used in a real browser, offline."""

import importlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_docs import DOCS, script

import sigadapt

pytestmark = pytest.mark.slow

EXAMPLE = DOCS.parent / "examples" / "chat_endpoint.py"
QUESTION = "Pay Ada 120 EUR if I can afford it."
notebook: Any = script("make_notebook")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of the running example."""
    pytest.importorskip("fastapi", reason="the extra docs is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = {**os.environ, "PORT": str(port), "PYTHONPATH": str(DOCS.parent)}
    with subprocess.Popen([sys.executable, str(EXAMPLE)], env=env) as server:  # noqa: S603  (our own example)
        try:
            yield _listening(port, server)
        finally:
            server.terminate()


def _listening(port: int, server: subprocess.Popen[bytes]) -> str:
    while True:
        assert server.poll() is None
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return f"http://127.0.0.1:{port}"
        time.sleep(0.1)


@pytest.fixture
def tab(address: str) -> Iterator[Any]:
    """The page of the example, in a browser, with the question asked."""
    pytest.importorskip("playwright.sync_api", reason="the extra docs is not installed")
    if notebook.chromium() is None:
        pytest.skip("there is no Chromium")
    with notebook.browsing("") as tab:
        tab.goto(address)
        tab.evaluate(WATCH)
        tab.fill("#question", QUESTION)
        tab.click("text=Send")
        tab.wait_for_selector("button.no")
        yield tab


# The records of changes, not the page: what arrives at once is shown at once, and only they have each step.
WATCH = """() => {
  window.seen = [];
  new MutationObserver(records => {
    for (const record of records) for (const node of record.addedNodes) window.seen.push(node.textContent);
  }).observe(document.body, { childList: true, subtree: true });
}"""


def test_a_call_shows_while_it_is_written_and_runs_when_a_person_approves(tab: Any, tmp_path: Path) -> None:
    """documentation: The chat works in a browser."""
    assert any(text.startswith('pay {"to":"A') for text in tab.evaluate("window.seen"))
    assert tab.locator(".call.whole").all_inner_texts() == [
        "get_balance()\n→ 620 EUR",
        "pay(to='Ada', eur=120)",
    ]
    tab.screenshot(path=os.environ.get("CHAT_PICTURE", tmp_path / "chat.png"))
    tab.click("text=Approve")
    tab.wait_for_selector("text=You had 620 EUR. Paid 120 EUR to Ada.")
    assert tab.locator("button.no").count() == 0
    assert "→ Paid 120 EUR to Ada." in tab.locator(".call").last.inner_text()


def test_a_person_sees_arguments_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """documentation: The chat hides no argument from the person who approves."""
    pytest.importorskip("fastapi", reason="the extra docs is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    chat: Any = importlib.import_module("chat_endpoint")
    args = {"eur": 9000, "note": "a gift " * 50, "to": "Eve\u202e"}
    requests = sigadapt.ToolCalls([{"name": "send", "args": args}]).awaiting_confirmation([])
    [[_, _, shown]] = chat.asked(requests)
    assert "9000" in shown
    assert "'Eve\\u202e'" in shown


def test_a_rejected_call_does_not_run(tab: Any) -> None:
    """documentation: The chat works in a browser."""
    tab.click("text=Reject")
    tab.wait_for_selector("text=You had 620 EUR. ERROR: The user rejected this call. It was not run.")


def test_the_page_survives_a_reload(tab: Any) -> None:
    """documentation: The chat survives a reload."""
    tab.reload()
    tab.wait_for_selector("button.no")
    assert tab.locator(".user").all_inner_texts() == [QUESTION]
    assert tab.locator(".call.whole").all_inner_texts() == [
        "get_balance()\n→ 620 EUR",
        "pay(to='Ada', eur=120)",
    ]
    tab.click("text=Approve")
    tab.wait_for_selector("text=You had 620 EUR. Paid 120 EUR to Ada.")
    tab.reload()
    tab.wait_for_selector("text=You had 620 EUR. Paid 120 EUR to Ada.")
    assert tab.locator("button.no").count() == 0


def test_a_payment_is_decided_once_in_two_tabs(tab: Any) -> None:
    """documentation: A decision counts once in the chat."""
    other = tab.context.browser.new_page()
    other.goto(tab.url)
    other.wait_for_selector("button.no")
    tab.click("text=Approve")
    tab.wait_for_selector("text=You had 620 EUR. Paid 120 EUR to Ada.")
    other.click("text=Approve")
    other.wait_for_selector(".error")
    assert "This was decided" in other.locator(".error").inner_text()
    assert other.locator("text=Paid 120 EUR").count() == 0


def test_an_old_button_decides_nothing_after_a_new_question(tab: Any) -> None:
    """documentation: A decision counts once in the chat."""
    other = tab.context.browser.new_page()
    other.goto(tab.url)
    other.wait_for_selector("button.no")
    tab.fill("#question", QUESTION)
    tab.click("text=Send")
    tab.wait_for_selector("button.no")
    assert tab.locator("button.no").count() == 1
    other.click("text=Approve")
    other.wait_for_selector(".error")
    tab.click("text=Approve")
    tab.wait_for_selector("text=You had 620 EUR. Paid 120 EUR to Ada.")
