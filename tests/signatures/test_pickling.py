"""Declarations and toolsets through pickle: what they hold comes back, or an error says what was lost."""

import copy
import datetime as dt
import pickle
import threading
from typing import Any

import cloudpickle
import pytest

from sigadapt import RequestContext, ToolCall, ToolCalls, ToolDecl, ToolDecls, Toolset
from sigadapt.errors import InvalidToolDecl


def remind(at: dt.time) -> None:
    """Remind."""


def costs_much(args: dict[str, Any]) -> bool:
    return args["eur"] > 10


def pay(eur: int) -> None:
    """Pay."""


def is_not_pay(_: RequestContext, decl: ToolDecl) -> bool:
    return decl.name != "pay"


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301  (our own bytes)


def test_a_pickled_declaration_keeps_its_functions():
    """tool-declarations: A pickled declaration keeps its functions or says that they were lost."""
    decls = again(ToolDecls([remind, ToolDecl.of(pay, requires_confirmation=costs_much)]))
    assert decls["remind"].func is remind
    call = ToolCall(id="c", name="remind", args={"at": "07:30:00"})
    assert call.bind(decls) == {"at": dt.time(7, 30)}
    calls = ToolCalls([{"name": "pay", "args": {"eur": eur}} for eur in (5, 50)])
    assert len(calls.awaiting_confirmation(decls)) == 1


@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=lambda each: each.__name__)
def test_functions_made_in_functions_come_back(pickler: Any):
    """tool-declarations: A pickled declaration keeps its functions or says that they were lost."""

    def local(eur: int) -> str:
        """Pay."""
        return f"paid {eur}"

    def is_much(args: dict[str, Any]) -> bool:
        return args["eur"] > 10

    decl = ToolDecl.of(local, name="pay", requires_confirmation=is_much)
    back = pickle.loads(pickler.dumps(decl))  # noqa: S301
    assert back.requires_confirmation({"eur": 11})
    assert back.func(eur=5) == "paid 5"
    assert copy.copy(decl) is decl, "a copy is no pickle"


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


def test_a_toolset_comes_back():
    """toolsets: A toolset is pickled, or says why not."""
    tools = Toolset("tools", [remind, pay])
    made = [
        tools.prefixed("t_"),
        tools.renamed({"pay": "give"}),
        tools.named("pay"),
        tools.filtered(is_not_pay),
        tools.prefixed("t_").renamed({"t_pay": "give"}).combined(Toolset("more", [{"name": "now"}])),
    ]
    for toolset in made:
        back = again(toolset)
        assert back.name == toolset.name
        assert back.resolve() == toolset.resolve()
        assert copy.deepcopy(toolset) is copy.copy(toolset) is toolset


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
