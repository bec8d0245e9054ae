"""Which fields of a signature are tool fields, and which signatures cannot work."""

from typing import Any, Optional

import dspy
import pytest
from sending import send

from sigadapt import ToolCalls, ToolDecls
from sigadapt.errors import InvalidSignature, MissingToolCalls
from sigadapt.testing import Answer

TOOLS, CALLS = (ToolDecls, dspy.InputField()), (ToolCalls, dspy.OutputField())
DEFAULT = ToolCalls([{"id": "d", "name": "get_weather", "args": {"city": "Rome"}}])


def asked(**fields: Any) -> Any:
    """Ask with a signature of these fields, and get no call."""
    made: Any = dspy.Signature
    return send(answer=Answer(text="No."), signature=made(fields)).out


@pytest.mark.parametrize(
    ("annotation", "default", "required"),
    [
        (ToolCalls, ..., True),
        (ToolCalls | None, ..., False),
        (Optional[ToolCalls], ..., False),  # noqa: UP045  (the old spelling is still written)
        (ToolCalls, None, False),
        (ToolCalls, DEFAULT, False),
        (dspy.ToolCalls, ..., False),
    ],
)
def test_whether_a_call_is_required_follows_from_the_field(
    annotation: Any, default: Any, required: bool
) -> None:
    """tool-call-outputs: A calls field with a default takes it."""
    output = dspy.OutputField() if default is ... else dspy.OutputField(default=default)
    if required:
        with pytest.raises(MissingToolCalls):
            asked(tools=TOOLS, answer=(str, dspy.OutputField()), calls=(annotation, output))
        return
    calls = asked(tools=TOOLS, answer=(str, dspy.OutputField()), calls=(annotation, output)).calls
    assert calls == DEFAULT if default is DEFAULT else not calls


@pytest.mark.parametrize(
    ("fields", "field", "told"),
    [
        ({"calls": CALLS}, "calls", "no tools field"),
        ({"tools": TOOLS, "a": (str, dspy.OutputField())}, "tools", "but no calls field"),
        (
            {"one": TOOLS, "two": (list[dspy.Tool], dspy.InputField()), "calls": CALLS},
            "two",
            "2 tools fields: one, two",
        ),
        ({"tools": TOOLS, "some": CALLS, "more": CALLS}, "more", "2 calls fields: some, more"),
    ],
)
def test_fields_that_do_not_fit_together_are_refused(fields: dict[str, Any], field: str, told: str) -> None:
    """
    request-shaping: A calls field without a tools field is refused
    request-shaping: Two tools fields are refused
    """
    with pytest.raises(InvalidSignature, match=told) as caught:
        asked(**fields)
    assert caught.value.field == field
    assert caught.value.fix
