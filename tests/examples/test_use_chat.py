"""The pages of examples/use_chat.py and ag_ui.py, built with the real packages and used in a real browser."""

from collections.abc import Iterator
from typing import Any

import pytest
from example_pages import SAID, Model, example_page, notebook, picture

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["use_chat", "ag_ui"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an example with its page."""
    with example_page(request.param, tmp_path_factory.mktemp("page"), Model()) as url:
        yield url


@pytest.fixture
def tab(address: str) -> Iterator[Any]:
    """The page, in a browser, with a question asked."""
    with notebook.browsing("") as tab:
        tab.goto(address)
        tab.fill("#question", "Pay Ada 120 EUR.")
        tab.click("text=Send")
        tab.wait_for_selector("text=Approve")
        yield tab


def calls(tab: Any) -> list[str]:
    return [
        call.splitlines()[0].replace('"620 EUR"', "620 EUR")
        for call in tab.locator(".call").all_inner_texts()
    ]


BALANCE = "get_balance {} → 620 EUR"


@pytest.mark.parametrize("reloads", [False, True])
def test_a_run_that_waits_survives_a_reload_and_goes_on(tab: Any, reloads: bool) -> None:
    """chats: A page waits for a person"""
    if reloads:
        tab.reload()
        tab.wait_for_selector("text=Approve")
    first, second = calls(tab)
    assert first == BALANCE
    assert second.startswith('pay {"to":"Ada","eur":120}')
    picture(tab, "approval")
    tab.click("text=Approve")
    tab.wait_for_selector(f"p:has-text('{SAID}')")
    assert [call.startswith("pay") and "Paid 120 EUR to Ada." in call for call in calls(tab)] == [False, True]
    tab.wait_for_selector("text=Send")
    assert tab.locator("button").all_inner_texts() == ["Send"]
    picture(tab, "answer")
    tab.reload()
    tab.wait_for_selector(f"p:has-text('{SAID}')")
    assert len(calls(tab)) == 2
    tab.emulate_media(color_scheme="dark")
    tab.set_viewport_size({"width": 375, "height": 600})
    picture(tab, "dark_phone")


def test_a_rejected_call_does_not_run(tab: Any) -> None:
    """chats: A page waits for a person"""
    tab.click("text=Reject")
    tab.wait_for_selector("p:has-text('The user rejected this call. It was not run.')")
    assert not any("Paid 120" in call for call in calls(tab))


def test_two_tabs_decide_once(tab: Any) -> None:
    """chats: A decision counts once"""
    other = tab.context.browser.new_page()
    other.goto(tab.url)
    other.wait_for_selector("text=Approve")
    tab.click("text=Approve")
    tab.wait_for_selector(f"p:has-text('{SAID}')")
    other.click("text=Reject")
    other.wait_for_selector(f"p:has-text('{SAID}')")
    assert sum("Paid 120 EUR to Ada." in call for call in calls(other)) == 1
    assert not other.locator("text=Approve").count()


def test_a_new_question_loses_nothing_that_waits(tab: Any) -> None:
    """chats: A message to a chat that waits is refused"""
    tab.fill("#question", "What else?")
    tab.click("text=Send")
    tab.wait_for_selector(".error")
    tab.reload()
    tab.wait_for_selector("text=Approve")
    tab.click("text=Approve")
    tab.wait_for_selector(f"p:has-text('{SAID}')")


def test_a_slow_network_loses_nothing(tab: Any) -> None:
    """chats: A page waits for a person"""
    session = tab.context.new_cdp_session(tab)
    slow = {"offline": False, "latency": 400, "downloadThroughput": 4000, "uploadThroughput": 4000}
    session.send("Network.emulateNetworkConditions", slow)
    tab.click("text=Approve")
    tab.wait_for_selector(f"p:has-text('{SAID}')")
    assert sum("Paid 120 EUR to Ada." in call for call in calls(tab)) == 1


def test_a_page_that_is_left_in_the_middle_finds_the_end(tab: Any) -> None:
    """chats: A page leaves"""
    url = tab.url

    def is_decision(request: Any) -> bool:
        return request.method == "POST"

    with tab.expect_request(is_decision):
        tab.click("text=Approve")
    tab.goto("about:blank")
    tab.goto(url)
    tab.wait_for_selector(f"p:has-text('{SAID}')")
    assert tab.locator(f"p:has-text('{SAID}')").count() == 1
    assert sum("Paid 120 EUR to Ada." in call for call in calls(tab)) == 1
