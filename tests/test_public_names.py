"""Each public name has one place: the package, or one of its public modules."""

import re
from importlib import import_module
from pathlib import Path

import pytest
from processes import run_python

import sigadapt

ROOT = Path(__file__).resolve().parent.parent

TOP = (
    "Change ChatAdapter Choice Confirmation Declined Files InputNeeded InvalidToolCall JSONAdapter "
    "LimitExceeded Limits Pending ReAct RequestContext Run SigadaptError Sources ToolCall "
    "ToolCallParseError ToolCalls ToolContext ToolDecl ToolDecls "
    "ToolResult ToolResults ToolTexts Toolset Usage WaitingRuns choice_from_response rounds run_of "
    "stream stream_sync trim_history"
)

MODULES = {
    "adapters": "BAMLAdapter ChatAdapter JSONAdapter TwoStepAdapter XMLAdapter",
    "events": (
        "CallDelta CallReady Confirm Ended Event Failed FileReady Progress ReasoningDelta ResultReady "
        "ServerCall SourceReady TextDelta Used"
    ),
    "listeners": "CallListener PartialCall",
    "logs": "Conversation conversation_from_request",
    "response": (
        "AnswerUsage Choice ResponseTemplate choice_from_response choice_from_stream choice_from_text "
        "choices_from_response"
    ),
    "server_tools": (
        "CodeExecution File FileSearch Files ImageGeneration McpServer ServerToolCall Source Sources "
        "WebFetch WebSearch"
    ),
    "tracing": "Tracing instrument",
    "trust": "Drift drift_of is_signed pinned pins_of sign untrusted_history",
}
"""The modules that only export. `errors`, `metrics`, `testing` and `ui` define what they have."""


def test_the_public_names_are_these() -> None:
    """adapter-plug-in: The package shows its names and its modules."""
    assert sorted(sigadapt.__all__) == sorted(TOP.split())
    assert len(sigadapt.__all__) <= 45
    listed = {name for name in dir(sigadapt) if not re.fullmatch(r"__\w+__", name)}
    modules = listed - {*sigadapt.__all__}
    assert modules == {*MODULES, "errors", "metrics", "testing", "ui"}
    assert [name for name in listed if not hasattr(sigadapt, name)] == []


def test_the_public_modules_have_these_names() -> None:
    """adapter-plug-in: The package shows its names and its modules."""
    for module, names in MODULES.items():
        place = import_module(f"sigadapt.{module}")
        assert sorted(place.__all__) == sorted(names.split()), module
        assert [name for name in place.__all__ if not hasattr(place, name)] == [], module
        twice = {*place.__all__} & {*sigadapt.__all__}
        assert [name for name in twice if getattr(place, name) is not getattr(sigadapt, name)] == [], module


@pytest.mark.slow
def test_the_package_loads_no_module_that_it_does_not_need() -> None:
    """adapter-plug-in: The package loads no module that it does not need."""
    code = (
        "import sys, sigadapt;"
        "print(*(m for m in sys.modules if m.startswith('sigadapt.')));"
        "sigadapt.ui, sigadapt.events, sigadapt.testing, sigadapt.trust, sigadapt.logs"
    )
    done = run_python("-c", code, cwd=ROOT, check=True)
    late = ("events", "logs", "metrics", "testing", "tracing", "trust", "ui", "runs.stream", "commands")
    loaded = done.stdout.split()
    assert [name for name in loaded if name.removeprefix("sigadapt.").startswith(late)] == []
