"""A memo goes by identity and is bounded."""

from sigadapt.adapters.memo import Memo


def test_a_memo_is_bounded_and_goes_by_identity() -> None:
    """call-cost: Caches are bounded and weak."""
    made: list[int] = []
    memo = Memo(lambda key: made.append(1) or len(key))
    keys = [[0] * size for size in range(1000)]
    assert [memo(key) for key in keys] == list(range(1000))
    assert len(memo._known) <= 256  # pyright: ignore[reportPrivateUsage]
    same = keys[-1]
    before = len(made)
    assert (memo(same), memo(list(same))) == (999, 999)
    assert len(made) == before + 1
