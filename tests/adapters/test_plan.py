"""Which fields of a signature are tool fields, and which signatures cannot work."""

from typing import Any, Optional

import dspy
import pytest
from internals import plan_of

from sigadapt import ToolCalls, ToolDecls
from sigadapt.errors import InvalidSignature

made: Any = dspy.Signature
"""Making a signature from fields, which DSPy's metaclass does and its types do not say."""


@pytest.mark.parametrize(
    ("annotation", "default", "required"),
    [
        (ToolCalls, ..., True),
        (ToolCalls | None, ..., False),
        (Optional[ToolCalls], ..., False),  # noqa: UP045  (the old spelling is still written)
        (ToolCalls, None, False),
        (dspy.ToolCalls, ..., False),
    ],
)
def test_whether_a_call_is_required_follows_from_the_field(
    annotation: object, default: object, required: bool
) -> None:
    output = dspy.OutputField() if default is ... else dspy.OutputField(default=default)
    signature = made({"tools": (ToolDecls, dspy.InputField()), "calls": (annotation, output)})
    plan = plan_of(signature)
    assert plan is not None
    assert plan.calls_required is required


def test_a_default_is_what_a_missing_call_gives() -> None:
    """tool-call-outputs: A calls field with a default takes it."""
    empty = ToolCalls(tool_calls=[])
    signature = made(
        {"tools": (ToolDecls, dspy.InputField()), "calls": (ToolCalls, dspy.OutputField(default=empty))}
    )
    plan = plan_of(signature)
    assert plan is not None
    assert plan.missing_calls is not None
    assert plan.missing_calls() == empty


@pytest.mark.parametrize(
    ("fields", "field", "told"),
    [
        (
            {"q": (str, dspy.InputField()), "calls": (ToolCalls, dspy.OutputField())},
            "calls",
            "no tools field",
        ),
        (
            {"tools": (ToolDecls, dspy.InputField()), "a": (str, dspy.OutputField())},
            "tools",
            "but no calls field",
        ),
        (
            {
                "one": (ToolDecls, dspy.InputField()),
                "two": (list[dspy.Tool], dspy.InputField()),
                "calls": (ToolCalls, dspy.OutputField()),
            },
            "two",
            "2 tools fields: one, two",
        ),
        (
            {
                "tools": (ToolDecls, dspy.InputField()),
                "some": (ToolCalls, dspy.OutputField()),
                "more": (ToolCalls | None, dspy.OutputField()),
            },
            "more",
            "2 calls fields: some, more",
        ),
    ],
)
def test_fields_that_do_not_fit_together_are_refused(
    fields: dict[str, tuple[type, object]], field: str, told: str
) -> None:
    """request-shaping: A calls field without a tools field is refused.

    request-shaping: Two tools fields are refused.
    """
    with pytest.raises(InvalidSignature) as caught:
        plan_of(made(fields))
    assert caught.value.field == field
    assert told in str(caught.value)
    assert caught.value.fix
