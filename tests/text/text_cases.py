"""What the tests of texts share: examples of every format, and a text read and streamed as by an adapter.

This is the room's one door to what no public name reaches: an adapter's ways of reading, and the gate.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from internals import FORMATS, Layout, TextGate, text_read

EXAMPLES = {each.name: each.example for each in FORMATS}
"""By format, a call of `get_weather` in Paris."""
MARKED = {each.name: each.example for each in FORMATS if not each.bare}
"""The examples in which markup says that they are calls."""
WRITERS = {each.name: each.write for each in FORMATS if each.write is not None}
"""What writes calls, given their names and arguments and the schemas of the tools."""
FIELDS = Layout("calls", "[[ ## {} ## ]]", ("answer",))
"""Output fields as `ChatAdapter` has them."""
PARIS: list[tuple[str, Any]] = [("get_weather", {"city": "Paris"})]
CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
TAGGED = f"<tool_call>{CALL}</tool_call>"

read = text_read


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """Declare a tool with parameters of these types, of which the first is required."""
    typed = {key: {"type": kind} for key, kind in properties.items()}
    parameters = {"type": "object", "properties": typed, "required": [*properties][:1]}
    return {"name": name, "parameters": parameters}


def pieces(text: str, sizes: Sequence[int]) -> Iterator[str]:
    """Cut a text into pieces of these sizes by turns."""
    place = turn = 0
    while place < len(text):
        size = sizes[turn % len(sizes)]
        yield text[place : place + size]
        place, turn = place + size, turn + 1


def streamed(
    text: str, schemas: dict[str, Any], *sizes: int, fields: Sequence[str] = ("answer",), **how: Any
) -> tuple[str, str, str | None]:
    """Return what passes while a text streams in pieces, what is shown in the end, and what the text says."""
    gate = TextGate(schemas, fields, **how)
    passed = "".join(map(gate.take, pieces(text, sizes or (1,))))
    said = text_read(text, schemas, **how).text
    return passed, passed + gate.remaining(said), said
