"""Functions that say too little of themselves to be a tool."""

import functools
from typing import Any

import dspy
import pytest

from sigadapt import ToolDecl, ToolDecls
from sigadapt.errors import InvalidToolDecl

UNTYPED = '''
def bare(*args, **kwargs):
    """Do."""

def logged(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

class Thing:
    """Do."""
    def __call__(self, *args, **kwargs):
        """Do."""

find = lambda q, *, limit=3: q
'''
# As text, because it has no types, which this repository requires.
WRITTEN: dict[str, Any] = {"__name__": "written_by_a_user"}
exec(UNTYPED, WRITTEN)  # noqa: S102  (our own text)
bare, logged, Thing, find = (WRITTEN[name] for name in ("bare", "logged", "Thing", "find"))


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_what_says_something_is_taken():
    """tool-declarations: A function that declares nothing is refused by name."""
    assert ToolDecl.of(functools.wraps(add)(logged(add))).parameters["required"] == ["a", "b"]
    assert ToolDecl.of(bare, parameters={"type": "object"}).name == "bare"
    assert ToolDecl.of(functools.partial(add, a=1, b=2)).parameters["properties"] == {}


@pytest.mark.parametrize("tool", [find, dspy.Tool(find)], ids=["lambda", "Tool"])
def test_a_lambda_is_an_error_that_says_which(tool: Any):
    """tool-declarations: A lambda is refused with what it takes and where it stands."""
    with pytest.raises(
        InvalidToolDecl, match=r"the lambda of \(q, limit\) at line \d+ of written_by"
    ) as caught:
        ToolDecls([add, tool])
    assert caught.value.code == "missing_name"
    assert ToolDecl.of(tool, name="find").name == "find"
