"""The ids of calls on a page: no two calls have one, and a result goes to its call."""

from hypothesis import given
from hypothesis import strategies as st

from sigadapt.ui.page.page_ids import PageIds


@given(ids=st.lists(st.sampled_from(["x", "x-2", "x-3", "y"])))
def test_no_two_calls_have_one_id(ids: list[str]) -> None:
    """watching-runs: Each call has an id of its own on a page"""
    page_ids = PageIds()
    shown = [page_ids.begin(call_id) for call_id in ids]
    assert len({*shown}) == len(shown)
    again = PageIds()
    assert [again.begin(call_id) for call_id in ids] == shown


def test_a_result_goes_to_the_first_call_without_one() -> None:
    """watching-runs: Each call has an id of its own on a page"""
    ids = PageIds()
    assert [ids.begin("x"), ids.begin("x")] == ["x", "x-2"]
    assert [ids.end("x"), ids.waiting("x"), ids.end("x"), ids.end("x")] == ["x", "x-2", "x-2", None]
