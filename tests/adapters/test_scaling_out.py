"""Programs that leave their process: what a worker needs is pickled, what cannot be is refused by name."""

import copy
import pickle
from typing import Any

import cloudpickle
import dspy
import pytest
from support import ADAPTERS, May, get_weather

import sigadapt
from sigadapt import (
    ChatAdapter,
    Confirmation,
    RequestContext,
    ToolCallParseError,
    ToolCalls,
    ToolDecls,
    ToolResults,
    choice_from_response,
)
from sigadapt.errors import InvalidOption
from sigadapt.listeners import CallListener

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


def test_a_listener_says_why_it_cannot_be_pickled():
    """adapter-plug-in: What cannot be pickled is named."""
    for pickler in (pickle, cloudpickle):
        with pytest.raises(InvalidOption, match="'calls' cannot be pickled") as caught:
            pickler.dumps(CallListener("calls"))
        assert caught.value.code == "not_picklable"
