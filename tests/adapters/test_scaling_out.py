"""Programs that leave their process: what a worker needs is pickled, what cannot be is refused by name."""

import copy
import importlib.util
import json
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import dspy
import pytest
from processes import run_python
from support import ADAPTERS, May, get_weather, lm_of

import sigadapt
from sigadapt import (
    ChatAdapter,
    Confirmation,
    RequestContext,
    ToolCallParseError,
    ToolCalls,
    ToolDecl,
    ToolDecls,
    ToolResults,
    Toolset,
    choice_from_response,
    errors,
)
from sigadapt.errors import InvalidOption, InvalidToolDecl, UnboundToolCall
from sigadapt.listeners import CallListener
from sigadapt.testing import Answer, Call, LoopbackProvider

pytestmark = pytest.mark.slow

GOOD = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'},
}
BAD = {"id": "call_2", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Par'}}
BODY: dict[str, Any] = {
    "choices": [{"finish_reason": "length", "message": {"content": "Hm.", "tool_calls": [GOOD, BAD]}}]
}


class Recorder:
    """A hook of a module's top level."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def after_choice(self, choice: Any, context: Any) -> None:
        self.seen.append(context.model)


def local_signature() -> Any:
    class Local(dspy.Signature):
        question: str = dspy.InputField()
        tools: ToolDecls = dspy.InputField()
        calls: ToolCalls | None = dspy.OutputField()

    return Local


def local_hook() -> Any:
    class Local(Recorder):
        pass

    return Local()


def options_of(adapter: Any) -> dict[str, Any]:
    return {name: getattr(adapter.options, name) for name in adapter.options.__slots__}


CHANGED: dict[str, Any] = {
    "tool_calling": {"openai/x": "prompted"},
    "tool_choice": ["get_weather"],
    "parallel_tool_calls": False,
    "on_invalid": "reask",
    "max_reasks": 3,
    "validate_args": False,
    "repair": True,
    "unwrap": True,
    "strict": True,
    "recover": True,
    "call_format": "llama3-json",
}


@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=lambda each: each.__name__)
@pytest.mark.parametrize("kind", [*ADAPTERS, sigadapt.adapters.BAMLAdapter, sigadapt.adapters.TwoStepAdapter])
def test_an_adapter_is_pickled_with_its_options_and_hooks(kind: Any, pickler: Any):
    """adapter-plug-in: A program is pickled."""
    extractor: Any = (dspy.LM("openai/x"),) if kind is sigadapt.adapters.TwoStepAdapter else ()
    hook = Recorder()
    hook.seen.append("before")
    adapter = kind(*extractor, hooks=[hook], **CHANGED)
    for back in (pickle.loads(pickler.dumps(adapter)), copy.deepcopy(adapter)):  # noqa: S301
        options = options_of(back)
        (carried,) = options.pop("hooks")
        assert carried.seen == ["before"]
        assert carried is not hook
        assert {name: options[name] for name in CHANGED} == CHANGED
        assert type(back) is kind


def test_a_hook_that_pickle_cannot_take_is_named():
    """adapter-plug-in: What cannot be pickled is named."""
    hook = local_hook()
    adapter = ChatAdapter(hooks=[Recorder(), hook])
    assert type(copy.deepcopy(adapter).options.hooks[1]) is type(hook), "a copy stays in its process"
    for pickler in (pickle, cloudpickle):
        back = pickle.loads(pickler.dumps(adapter))  # noqa: S301
        assert back.options.hooks[1].seen == [], "a class of a function is pickled by value"
    hook.lock = __import__("threading").Lock()
    for pickler in (pickle, cloudpickle):
        with pytest.raises(InvalidOption, match="cannot be pickled") as caught:
            pickler.dumps(adapter)
        assert (caught.value.code, caught.value.field) == ("not_picklable", "hooks")
        assert "Local" in str(caught.value)


def test_a_listener_says_why_it_cannot_be_pickled():
    """adapter-plug-in: What cannot be pickled is named."""
    for pickler in (pickle, cloudpickle):
        with pytest.raises(InvalidOption, match="'calls' cannot be pickled") as caught:
            pickler.dumps(CallListener("calls"))
        assert caught.value.code == "not_picklable"


class Session:
    """As a live MCP session: it holds what belongs to its process."""

    def __init__(self) -> None:
        self.lock = __import__("threading").Lock()

    async def list_tools(self) -> Any: ...

    async def call_tool(self, name: str, arguments: Any) -> Any: ...


@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=lambda each: each.__name__)
def test_a_toolset_of_a_live_session_says_why_it_cannot_be_pickled(pickler: Any):
    """adapter-plug-in: What cannot be pickled is named."""
    both = Toolset("files", Session()).combined(Toolset("clock", [{"name": "now"}]))
    with pytest.raises(InvalidToolDecl, match="toolset 'files' cannot be pickled") as caught:
        pickler.dumps(both)
    assert caught.value.code == "not_picklable"


@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=lambda each: each.__name__)
def test_what_a_call_gives_is_pickled(pickler: Any):
    """adapter-plug-in: A program is pickled."""
    choice = choice_from_response(BODY)
    calls = choice.tool_calls
    assert calls is not None
    context = RequestContext(May, {"question": "why?"}, {"temperature": 0})
    same: list[Any] = [choice, calls, calls[0], calls.invalid[0], Confirmation("sure?"), context]
    same += [
        ToolResults.of(ToolCalls(calls[0]), ["sunny"]),
        ToolDecls([get_weather]),
        May,
        sigadapt.Change("/", "dropped", ""),
    ]
    for value in same:
        back = pickle.loads(pickler.dumps(value))  # noqa: S301
        assert back == value
        assert type(back) is type(value)
    back = pickle.loads(pickler.dumps(calls))  # noqa: S301
    assert (back.invalid, back.text, back[0].arguments) == (calls.invalid, "Hm.", '{"city":"Rome"}')
    with pytest.raises(TypeError):
        pickle.loads(pickler.dumps(context)).inputs["question"] = ""  # noqa: S301


@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=lambda each: each.__name__)
def test_every_error_is_pickled(pickler: Any):
    """adapter-plug-in: An error leaves the process it was raised in."""
    choice = choice_from_response(BODY)
    given: dict[str, Any] = {"code": "c", "field": "f", "tool": "t", "path": "/p", "fix": "Do."}
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.SigadaptError)
    ]
    assert len(kinds) > 8
    for kind in kinds:
        if kind is UnboundToolCall:
            assert choice.tool_calls is not None
            error: Any = kind(choice.tool_calls.invalid[0])
        elif issubclass(kind, ToolCallParseError):
            error = kind("is wrong", choice=choice, signature=local_signature(), **given)
        elif kind is errors.InputNeeded:
            calls = ToolCalls([{"id": "c", "name": "pay", "args": {}}])
            requests = calls.awaiting_confirmation([{"name": "pay", "requires_confirmation": True}])
            error = kind(calls, requests, dspy.History(messages=[]), {}, "calls", None)
        elif kind is errors.LimitExceeded:
            error = kind("requests", 2, 2)
        elif kind is errors.Declined:
            error = kind("It is Friday.")
        elif kind is errors.EmptyAnswer:
            error = kind("is empty", choice=choice, field="f")
        elif kind is errors.UnusableAnswer:
            error = kind("is wrong", choice=choice, code="refused", field="f", fix="Do.")
        else:
            error = kind("is wrong", **given)
        back = pickle.loads(pickler.dumps(error))  # noqa: S301
        assert (type(back), str(back)) == (kind, str(error))
        assert carried(back) == carried(error)


def carried(error: Any) -> dict[str, Any]:
    """What an error holds, but for its signature."""
    held: dict[str, Any] = error.__dict__.copy()
    held.pop("signature", None)
    held.pop("__notes__", None)
    return held


def test_an_error_keeps_its_signature_or_says_that_it_lost_it():
    """adapter-plug-in: An error leaves the process it was raised in."""
    choice = choice_from_response(BODY)
    back = pickle.loads(pickle.dumps(ToolCallParseError("x", choice=choice, signature=May)))  # noqa: S301
    assert (back.signature, getattr(back, "__notes__", [])) == (May, [])
    error = ToolCallParseError("x", choice=choice, signature=local_signature())
    back = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert back.signature is None
    assert back.__notes__ == ["The signature Local did not travel with this error."]
    assert error.signature is not None


def test_a_copy_of_cloudpickle_takes_what_cloudpickle_takes(monkeypatch: pytest.MonkeyPatch):
    """tool-declarations: A pickled declaration keeps its functions or says that they were lost."""
    name = "vendor.cloudpickle"  # Ray, joblib and Spark bring theirs so
    spec = importlib.util.spec_from_file_location(name, cloudpickle.cloudpickle.__file__)
    assert spec is not None
    assert spec.loader is not None
    copied: Any = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "vendor", ModuleType("vendor"))
    monkeypatch.setitem(sys.modules, name, copied)
    spec.loader.exec_module(copied)
    decl = ToolDecl.of(lambda: 42, name="now", parameters={"type": "object"})
    assert pickle.loads(copied.dumps(decl)).func() == 42  # noqa: S301
    tools = Toolset("t", [decl]).filtered(lambda _, each: each.name == "now")
    assert len(pickle.loads(copied.dumps(tools)).resolve()) == 1  # noqa: S301


WORKER = """
import json, pickle, sys
with open(sys.argv[1], "rb") as file:
    program, tools, adapter, lm = pickle.load(file)
import dspy
with dspy.context(lm=lm, adapter=adapter):
    out = program(question="Weather?", tools=tools)
print(json.dumps([[call.name, call.args] for call in out.calls] + [call.code for call in out.calls.invalid]))
"""


def test_a_program_of_one_process_runs_in_another(tmp_path: Path):
    """adapter-plug-in: A program is pickled."""

    def get_time(zone: str) -> str:
        """The time of a zone."""
        raise AssertionError(zone)

    def is_wanted(context: RequestContext, decl: ToolDecl) -> bool:
        return decl.name == "get_time" and context.inputs["question"] == "Weather?"

    class Hook:
        def after_choice(self, choice: Any, context: Any) -> None:
            assert choice.tool_calls

    tools = Toolset("local", [get_time, {"name": "other"}]).filtered(is_wanted)
    calls = [Call("get_time", {"zone": "UTC"}), Call("other", {})]
    with LoopbackProvider([Answer(calls=calls)]) as provider:
        adapter = ChatAdapter(on_invalid="keep", hooks=[Hook()])
        program = dspy.Predict(local_signature())
        path = tmp_path / "program"
        path.write_bytes(cloudpickle.dumps((program, tools, adapter, lm_of(provider))))
        done = run_python("-c", WORKER, path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["get_time", {"zone": "UTC"}], "unknown_tool"]
