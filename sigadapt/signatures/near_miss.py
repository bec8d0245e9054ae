"""What a misspelt word was probably meant to be, for the messages of errors."""

from collections.abc import Iterable

_LONGEST = 200


def near_miss(word: str, known: Iterable[str]) -> str | None:
    """The known word nearest to the given one, or None where none is near.

    Example:
        >>> near_miss("serach", ["search", "fetch"])
        'search'
        >>> near_miss("x", ["search", "fetch"])
    """
    import difflib  # noqa: PLC0415  (only errors need it, and it costs every import a millisecond)

    return next(iter(difflib.get_close_matches(word[:_LONGEST], known, n=1)), None)
