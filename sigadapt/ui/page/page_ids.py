"""Give each call of a chat an id of its own on the page, whatever ids the model or a server gives them.

Some servers number calls from 0 in each answer, and prompted models write what they like. On a page, two
calls of one id are one part, so the second would take the result and the approval of the first. Here the
first call with the id `x1` is `x1`, the second is `x1-2`, in the order of the chat.
"""


class PageIds:
    """The ids of the calls on a page.

    Example:
        >>> ids = PageIds()
        >>> ids.begin("x1"), ids.end("x1"), ids.begin("x1"), ids.waiting("x1")
        ('x1', 'x1', 'x1-2', 'x1-2')
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}  # by the id of the call
        self._open: dict[str, list[str]] = {}  # ids on the page, of calls without a result

    def begin(self, call_id: str) -> str:
        """Return the id on the page of a call that comes next."""
        number = self._counts.get(call_id, 0) + 1
        page_id = call_id if number == 1 else f"{call_id}-{number}"
        while page_id in self._taken:  # another call has that very id
            number += 1
            page_id = f"{call_id}-{number}"
        self._counts[call_id] = number
        self._taken.add(page_id)
        self._open.setdefault(call_id, []).append(page_id)
        return page_id

    def go_on(self, call_id: str, page_id: str) -> None:
        """Take over a call that waits, which the page shows under an id already."""
        self.take(call_id, page_id)
        self._open.setdefault(call_id, []).append(page_id)

    def take(self, call_id: str, page_id: str) -> None:
        """Count a call that is over, which the page shows under an id already."""
        self._taken.add(page_id)
        self._counts[call_id] = self._counts.get(call_id, 0) + 1

    def give_up(self, call_id: str, page_id: str) -> None:
        """Count a call as answered that nothing else answers, such as a bad one."""
        page_ids = self._open.get(call_id, [])
        if page_id in page_ids:
            page_ids.remove(page_id)

    def waiting(self, call_id: str) -> str | None:
        """Return the id on the page of the earliest call of this id that has no result."""
        page_ids = self._open.get(call_id)
        return page_ids[0] if page_ids else None

    def end(self, call_id: str) -> str | None:
        """Return the same, and count the call as answered."""
        page_ids = self._open.get(call_id)
        return page_ids.pop(0) if page_ids else None
