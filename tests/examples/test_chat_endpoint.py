"""The chat of examples/chat_endpoint.py, used in a real browser, offline."""

from collections.abc import Iterator
from typing import Any

import pytest
from example_pages import Model, example_page, notebook, picture

pytestmark = pytest.mark.slow

QUESTION = "Pay Ada 120 EUR if I can afford it."
CALLS = ["get_balance {}\n→ 620 EUR", 'pay {"to":"Ada","eur":120}']


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the running example."""
    with example_page("chat_endpoint", tmp_path_factory.mktemp("page"), Model()) as url:
        yield url


@pytest.fixture
def tab(address: str) -> Iterator[Any]:
    """The page of the example, in a browser, with the question asked."""
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


def test_a_call_shows_while_it_is_written_and_runs_when_a_person_approves(tab: Any) -> None:
    """The chat works in a browser."""
    assert any(text.startswith('pay {"to":"A') for text in tab.evaluate("window.seen"))
    assert tab.locator(".call.whole").all_inner_texts() == CALLS
    picture(tab, "endpoint")
    tab.click("text=Approve")
    tab.wait_for_selector("text=You had 620 EUR. Paid 120 EUR to Ada.")
    assert tab.locator("button.no").count() == 0
    assert "→ Paid 120 EUR to Ada." in tab.locator(".call").last.inner_text()


def test_a_rejected_call_does_not_run(tab: Any) -> None:
    """The chat works in a browser."""
    tab.click("text=Reject")
    tab.wait_for_selector("text=You had 620 EUR. ERROR: The user rejected this call. It was not run.")


def test_the_page_survives_a_reload(tab: Any) -> None:
    """The chat survives a reload."""
    tab.reload()
    tab.wait_for_selector("button.no")
    assert tab.locator(".user").all_inner_texts() == [QUESTION]
    assert tab.locator(".call.whole").all_inner_texts() == CALLS
    tab.click("text=Approve")
    tab.wait_for_selector("text=You had 620 EUR. Paid 120 EUR to Ada.")
    tab.reload()
    tab.wait_for_selector("text=You had 620 EUR. Paid 120 EUR to Ada.")
    assert tab.locator("button.no").count() == 0


def test_a_payment_is_decided_once_in_two_tabs(tab: Any) -> None:
    """A decision counts once in the chat."""
    other = tab.context.browser.new_page()
    other.goto(tab.url)
    other.wait_for_selector("button.no")
    tab.click("text=Approve")
    tab.wait_for_selector("text=You had 620 EUR. Paid 120 EUR to Ada.")
    other.click("text=Reject")
    other.wait_for_selector("text=You had 620 EUR. Paid 120 EUR to Ada.")
    assert other.locator("button.no").count() == 0
    assert other.locator(".result").all_inner_texts() == ["→ 620 EUR", "→ Paid 120 EUR to Ada."]


def test_a_new_question_loses_nothing_that_waits(tab: Any) -> None:
    """A decision counts once in the chat."""
    tab.fill("#question", "What else?")
    tab.click("text=Send")
    tab.wait_for_selector("text=This chat waits for a decision.")
    tab.reload()
    tab.click("text=Approve")
    tab.wait_for_selector("text=You had 620 EUR. Paid 120 EUR to Ada.")
