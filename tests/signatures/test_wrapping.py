"""Tool values as objects."""

import dataclasses
import datetime as dt
from typing import Any

import mcp.types
import pydantic
import pytest

from sigadapt.signatures.wrapping import is_failure, wrapped


class Model(pydantic.BaseModel):
    at: dt.date


@dataclasses.dataclass
class Data:
    n: int


def result(*content: dict[str, Any], **more: Any) -> mcp.types.CallToolResult:
    return mcp.types.CallToolResult.model_validate({"content": list(content), **more})


TEXT = {"type": "text", "text": "a"}
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", {"result": "text"}),
        (None, {"result": None}),
        ([1], {"result": [1]}),
        (dt.date(2026, 1, 2), {"result": "2026-01-02"}),
        ({"a": 1}, {"a": 1}),
        (Model(at=dt.date(2026, 1, 2)), {"at": "2026-01-02"}),
        (Data(1), {"n": 1}),
        (result(TEXT, TEXT), {"output": "a\na"}),
        (result(), {"output": ""}),
        (result(TEXT, structuredContent={"n": 1}), {"output": {"n": 1}}),
        (result(TEXT, IMAGE), {"output": [TEXT, IMAGE]}),
        (result(TEXT, isError=True), {"error": "a"}),
    ],
)
def test_what_is_no_object_becomes_one(value: object, expected: dict[str, Any]):
    """toolsets: A result that is no object becomes one."""
    assert wrapped(value) == expected


def test_a_failed_mcp_result_is_told():
    assert is_failure(result(TEXT, isError=True))
    assert not any(map(is_failure, (result(TEXT), {"isError": True}, "x")))
