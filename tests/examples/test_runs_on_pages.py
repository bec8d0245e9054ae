"""A page of an example while its agent runs: reloaded, stopped, in a second tab, in a real browser."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from example_pages import Model, example_page, notebook, picture
from processes import HANGS

pytestmark = pytest.mark.slow
NAMES = ("use_chat", "ag_ui", "chat_endpoint")
SLOWLY = "What do I have? Think slowly. {}"
NUMBERS = itertools.count(1)  # else DSPy has the answer in its cache
END = "text=You have 620 EUR."


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module", params=NAMES)
def address(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, model: Model
) -> Iterator[str]:
    """The address of an example with its page."""
    with example_page(request.param, tmp_path_factory.mktemp("page"), model) as url:
        yield url


@pytest.fixture
def tab(address: str, model: Model) -> Iterator[Any]:
    """The page, in a browser, in the middle of a run."""
    model.waits.clear()
    model.may_go_on.clear()
    with notebook.browsing("") as tab:
        tab.goto(address)
        tab.fill("#question", SLOWLY.format(next(NUMBERS)))
        tab.click("text=Send")
        assert model.waits.wait(HANGS)
        tab.wait_for_selector(".call:has-text('620 EUR')")
        try:
            yield tab
        finally:
            model.may_go_on.set()


def test_a_page_that_was_reloaded_reads_on(tab: Any, model: Model) -> None:
    """chats: A page joins a run"""
    tab.reload()
    tab.wait_for_selector(".call:has-text('620 EUR')")
    tab.wait_for_selector("text=Stop")
    picture(tab, "under_way")
    model.may_go_on.set()
    tab.wait_for_selector(END)
    tab.wait_for_selector("text=Send")
    assert tab.locator("text=Let me look at your account.").count() == 1
    assert tab.locator(".call").count() == 2


def test_a_second_tab_reads_along(tab: Any, model: Model) -> None:
    """chats: A page joins a run"""
    other = tab.context.browser.new_page()
    other.goto(tab.url)
    other.wait_for_selector(".call:has-text('620 EUR')")
    model.may_go_on.set()
    for each in (tab, other):
        each.wait_for_selector(END)
        assert each.locator(".call").count() == 2


def test_a_run_is_stopped(tab: Any, model: Model) -> None:
    """chats: A person stops a run"""
    tab.click("text=Stop")
    tab.wait_for_timeout(300)
    model.may_go_on.set()
    tab.wait_for_selector("text=Stopped.")
    assert not tab.locator(END).count()
    tab.wait_for_selector("text=Send")
    tab.fill("#question", "Pay Ada 120 EUR.")
    tab.click("text=Send")
    tab.wait_for_selector("text=Approve")


def test_a_slow_network_and_a_phone(tab: Any, model: Model) -> None:
    """chats: A page joins a run"""
    tab.emulate_media(color_scheme="dark")
    tab.set_viewport_size({"width": 375, "height": 600})
    session = tab.context.new_cdp_session(tab)
    slow = {"offline": False, "latency": 300, "downloadThroughput": 20_000, "uploadThroughput": 20_000}
    session.send("Network.emulateNetworkConditions", slow)
    model.may_go_on.set()
    tab.wait_for_selector(END)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture(tab, "slow_phone")
