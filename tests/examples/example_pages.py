"""The example programs with a page: each behind a model that the test holds up where it likes."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from processes import HANGS
from test_docs import DOCS, script

from sigadapt.testing import Answer, Call, LoopbackProvider, Received

NPM = os.environ.get("SIGADAPT_NPM")
"""A folder with the npm packages of the examples' first lines; `python3 tasks.py ui` makes one."""
PICTURES = os.environ.get("PAGE_PICTURES")
"""A folder to write pictures of the pages into."""
EXAMPLES = DOCS.parent / "examples"
SAID = "You had 620 EUR. Paid 120 EUR to Ada."
notebook: Any = script("make_notebook")


class Model:
    """The model of examples/bank.py; one whose question says `slowly` looks twice, and waits between."""

    def __init__(self) -> None:
        self.waits = threading.Event()
        self.may_go_on = threading.Event()

    def __call__(self, received: Received) -> Answer:
        rows = received.body["messages"]
        last = max(number for number, row in enumerate(rows) if row["role"] == "user")
        results = [row["content"] for row in rows[last:] if row["role"] == "tool"]
        if not results:
            return Answer(text="Let me look at your account.", calls=[Call("get_balance")])
        if "slowly" in str(rows[last]["content"]):
            self.waits.set()
            assert self.may_go_on.wait(HANGS)
            if len(results) == 1:
                return Answer(calls=[Call("get_balance")])
            return Answer(calls=[Call("submit", {"answer": f"You have {results[1]}."})], chunk=4)
        if len(results) == 1:
            return Answer(calls=[Call("pay", {"to": "Ada", "eur": 120})])
        return Answer(calls=[Call("submit", {"answer": f"You had {results[0]}. {results[1]}"})])


@contextmanager
def example_page(name: str, folder: Path, model: Any) -> Generator[str]:
    """The address of an example with its page."""
    pytest.importorskip("fastapi", reason="the extra docs is not installed")
    pytest.importorskip("playwright.sync_api", reason="the extra docs is not installed")
    if notebook.chromium() is None:
        pytest.skip("there is no Chromium")
    _build_page(name, folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with LoopbackProvider(model) as net:
        base = net.lm_options("openai")["api_base"]
        own = {"PORT": port, "PAGE": folder, "CHATS": folder / "chats.db", "PYTHONPATH": DOCS.parent}
        provider = {"OPENAI_API_BASE": base, "OPENAI_BASE_URL": base, "OPENAI_API_KEY": "loopback"}
        env = {**os.environ, **provider, "DSPY_CACHEDIR": str(folder / "cache")}
        env |= {key: str(value) for key, value in own.items()}
        command = [sys.executable, str(EXAMPLES / f"{name}.py"), "openai/gpt-4o-mini"]
        with subprocess.Popen(command, env=env) as server:  # noqa: S603  (our own example)
            try:
                while socket.socket().connect_ex(("127.0.0.1", port)):
                    assert server.poll() is None
                    time.sleep(0.1)
                yield f"http://127.0.0.1:{port}/"
            finally:
                server.terminate()


def _build_page(name: str, folder: Path) -> None:
    sources = [*EXAMPLES.glob(f"{name}_page/*.js*")]
    if not sources:
        return
    if NPM is None:
        pytest.skip("`python3 tasks.py ui` runs this")
    [source] = sources
    copy = shutil.copy(source, Path(NPM, f"{name}{source.suffix}"))
    shutil.copy(source.with_name("index.html"), folder)
    options = ["--bundle", "--jsx=automatic", f"--outfile={folder}/page.js"]
    subprocess.run([f"{NPM}/node_modules/.bin/esbuild", copy, *options], check=True, cwd=NPM)  # noqa: S603


def picture(tab: Any, name: str) -> None:
    """Take a picture, if somebody wants one."""
    if PICTURES is not None:
        tab.screenshot(path=f"{PICTURES}/{name}.png")
