"""The docstring describes the tool and its parameters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from sigadapt import ToolDecl

GOOGLE = """Book a room.

    For one night: or two.

    Args:
        room (int): Its number: as on the door,
            or on the key.
        note: A note.
        *rest: More.

    Returns:
        Whether it was free.

    Raises:
        ValueError: never
    """
NUMPY = """Book a room.

    For one night: or two.

    Parameters
    ----------
    room : int
        Its number: as on the door,
        or on the key.
    note : str, optional
        A note.

    Returns
    -------
    bool
        Whether it was free.
    """
SPHINX = """Book a room.

    For one night: or two.

    :param int room: Its number: as on the door,
        or on the key.
    :param note: A note.
    :type note: str
    :returns: Whether it was free.
    :raises ValueError: never
    """


def declared(text: str | None) -> ToolDecl:
    def f(room: int, note: str, a: int) -> bool: ...

    f.__doc__ = text
    return ToolDecl.of(f)


def descriptions(decl: ToolDecl) -> dict[str, str]:
    """The parameters that the docstring describes, and what it says of the result."""
    parts = {**decl.parameters["properties"], "returns": decl.returns or {}}
    return {name: part["description"] for name, part in parts.items() if "description" in part}


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_three_styles_say_the_same(text: str):
    """tool-declarations: The docstring describes the tool and its parameters."""
    decl = declared(text)
    assert decl.description == "Book a room.\n\nFor one night: or two."
    assert descriptions(decl) == {
        "room": "Its number: as on the door,\nor on the key.",
        "note": "A note.",
        "returns": "Whether it was free.",
    }


@pytest.mark.parametrize(("text", "description", "parameters"), table(__file__, "NOTES"))
def test_notes_behind_sections_stay(text: str, description: str, parameters: dict[str, str]):
    """tool-declarations: The docstring describes the tool and its parameters."""
    decl = declared(text)
    assert decl.description == description
    assert descriptions(decl) == parameters


@pytest.mark.parametrize("text", table(__file__, "PLAIN"))
def test_a_docstring_without_sections_is_all_description(text: str):
    decl = declared(text)
    assert (decl.description, descriptions(decl)) == (text, {})


HEADS = ["Args:", "Returns:", "Parameters", "----------"]
lines = st.sampled_from([*HEADS, "    a: b", "    a : int", "        b", ":param a: b", "x", ""])


@given(st.lists(lines, max_size=8).map("\n".join))
def test_any_lines_are_a_docstring(text: str):
    decl = declared(text)
    assert isinstance(decl.description, str)
    assert all(isinstance(words, str) for words in descriptions(decl).values())
