"""Declarations and toolsets through pickle: what they hold comes back, or an error says what was lost."""

import pickle
import threading
from typing import Any

import cloudpickle
import pytest

from sigadapt import RequestContext, ToolCall, ToolCalls, ToolDecl, ToolDecls, Toolset
from sigadapt.errors import InvalidToolDecl


def pay(eur: int) -> None:
    """Pay."""


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301  (our own bytes)


def test_a_function_that_nothing_can_pickle_says_so():
    """tool-declarations: A pickled declaration keeps its functions or says that they were lost."""
    lock = threading.Lock()

    def local(eur: int) -> None:
        """Pay."""
        lock.acquire()

    def local_too(args: dict[str, Any]) -> bool:
        return lock.locked()

    decl = ToolDecl.of(local, name="pay", requires_confirmation=local_too)
    decls = again(again(ToolDecls(decl)))
    assert decls.to_openai() == ToolDecls(decl).to_openai()
    call = ToolCall(id="c", name="pay", args={"eur": 5})
    assert ToolCalls(call).validated(decls).invalid == ()
    for use in (lambda: call.bind(decls), lambda: decls["pay"].func(eur=5)):
        with pytest.raises(InvalidToolDecl, match="its func is missing") as caught:
            use()
        assert caught.value.code == "lost_function"
    with pytest.raises(InvalidToolDecl, match="its requires_confirmation is missing") as caught:
        ToolCalls(call).awaiting_confirmation(decls)
    assert caught.value.code == "confirmation_failed"


def test_what_nothing_can_pickle_of_a_toolset_is_named():
    """toolsets: A toolset is pickled, or says why not."""
    lock = threading.Lock()

    def source(context: RequestContext) -> Any:
        return [pay] if not lock.locked() else []

    tools = Toolset("tools", [pay])
    assert [decl.name for decl in again(tools.filtered(lambda _, decl: decl.name == "pay")).resolve()] == [
        "pay"
    ]
    for toolset, what in [
        (tools.filtered(lambda _, decl: not lock.locked()), "what is done to its tools"),
        (Toolset("tools", source), "its source"),
    ]:
        for pickler in (pickle, cloudpickle):
            with pytest.raises(InvalidToolDecl, match="toolset 'tools' cannot be pickled") as caught:
                pickler.dumps(toolset)
            assert (caught.value.code, what in str(caught.value)) == ("not_picklable", True)
