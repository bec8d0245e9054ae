"""The page of examples/use_chat.py, built with the real packages and used in a real browser, offline."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_docs import DOCS, script

pytestmark = pytest.mark.slow

NPM = os.environ.get("SIGADAPT_NPM")
"""A folder with the npm packages of the example's first lines; `python3 tasks.py ui` makes one."""

EXAMPLE = DOCS.parent / "examples" / "use_chat.py"
notebook: Any = script("make_notebook")


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Any]:
    """The page, in a browser, with a question asked."""
    if NPM is None:
        pytest.skip("`python3 tasks.py ui` runs this")
    pytest.importorskip("playwright.sync_api", reason="the extra docs is not installed")
    if notebook.chromium() is None:
        pytest.skip("there is no Chromium")
    source = shutil.copy(EXAMPLE.with_name("use_chat_page.jsx"), NPM)
    page = tmp_path / "page.js"
    build = [f"{NPM}/node_modules/.bin/esbuild", source, "--bundle", "--jsx=automatic", f"--outfile={page}"]
    subprocess.run(build, check=True, cwd=NPM)  # noqa: S603  (of the folder that was just made)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = {**os.environ, "PORT": str(port), "PAGE": str(page), "PYTHONPATH": str(DOCS.parent)}
    with subprocess.Popen([sys.executable, str(EXAMPLE)], env=env) as server:  # noqa: S603  (our own example)
        try:
            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert server.poll() is None
                time.sleep(0.1)
            with notebook.browsing("") as tab:
                tab.goto(f"http://127.0.0.1:{port}/")
                tab.fill("#question", "Pay Ada 120 EUR.")
                tab.click("text=Send")
                tab.wait_for_selector("text=Approve")
                yield tab
        finally:
            server.terminate()


def calls(tab: Any) -> list[str]:
    return [call.splitlines()[0] for call in tab.locator(".call").all_inner_texts()]


BALANCE = 'get_balance {} → "620 EUR"'
PAID = 'pay {"to":"Ada","eur":120} → "Paid 120 EUR to Ada."'
SAID = "You had 620 EUR. Paid 120 EUR to Ada."


@pytest.mark.parametrize("reloads", [False, True])
def test_a_run_waits_survives_a_reload_and_goes_on(tab: Any, reloads: bool) -> None:
    """watching-runs: A page of the AI SDK waits for a person."""
    if reloads:
        tab.reload()
        tab.wait_for_selector("text=Approve")
    assert calls(tab) == [BALANCE, 'pay {"to":"Ada","eur":120} ApproveReject']
    tab.click("text=Approve")
    tab.wait_for_selector(f"p:has-text('{SAID}')")
    assert calls(tab) == [BALANCE, PAID]
    assert tab.locator("button").all_inner_texts() == ["Send"]
    tab.reload()
    tab.wait_for_selector(f"p:has-text('{SAID}')")
    assert calls(tab) == [BALANCE, PAID]


def test_a_rejected_call_does_not_run(tab: Any) -> None:
    """watching-runs: A page of the AI SDK waits for a person."""
    tab.click("text=Reject")
    tab.wait_for_selector("text=The user rejected this call. It was not run.")
    assert not any("Paid 120" in call for call in calls(tab)[:2])
