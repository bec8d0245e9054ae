"""What says that a recorded call failed, and what only looks like it."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

import json
import re
from typing import Any

import pytest
from logs.made_logs import REFUND, asks, log

import sigadapt
from sigadapt import ToolResult
from sigadapt.errors import InvalidOption
from sigadapt.logs.adoption.failures import FailureRule, is_outage

FAILURES = [
    "ERROR: no such order",
    "Error: order not found",
    "  Error: after blanks",
    "Exception: the shop is closed",
    "Traceback (most recent call last):\n  ...",
    "OrderNotFoundError: 7",
    "requests.exceptions.HTTPError: 404",
    {"error": "amount exceeds the order"},
    {"error": {"code": 7}, "data": None},
    {"errors": [{"field": "cents"}]},
    {"exception": "Timeout"},
    {"isError": True, "content": "no"},
    {"is_error": True},
    {"success": False},
    {"ok": False},
    {"status": "error"},
    {"status": "failed"},
    {"status": 404},
    {"status": 500.0},
    {"result": "Error: wrapped"},
    {"output": {"result": {"error": "wrapped twice"}}},
]
FINE = [
    {"error": None, "refunded": 1},
    {"error": ""},
    {"errors": []},
    {"error": False},
    {"error": 0},
    {"success": True},
    {"status": "ok"},
    {"status": 200},
    {"status": True},
    {"status": "pending"},
    {"isError": "true"},
    {"message": "error handling is done"},
    [{"error": "of the customer's own log"}],
    "No errors were found.",
    "The customer wrote: Error: 7 on the screen.",
    "Exceptional weather",
    "error rate 0.1 %",
    "{no JSON",
    "",
    17,
    None,
]


def result_of(value: Any, **fields: Any) -> ToolResult:
    return ToolResult(call_id="c1", name="f", value=value, **fields)


@pytest.mark.parametrize("value", FAILURES, ids=repr)
def test_a_failure(value: Any) -> None:
    """logs: What a tool says of a failure is one"""
    is_failure = FailureRule()
    assert is_failure(result_of(value))
    text = value if isinstance(value, str) else json.dumps(value)
    assert is_failure(result_of(text))
    assert is_failure(result_of([{"type": "text", "text": text}], is_content=True))


@pytest.mark.parametrize("value", FINE, ids=repr)
def test_no_failure(value: Any) -> None:
    """logs: What a tool says of a failure is one"""
    assert not FailureRule()(result_of(value))
    assert not FailureRule()(result_of(json.dumps(value)))
    assert FailureRule()(result_of(value, is_error=True))


def test_failures_of_your_own() -> None:
    """logs: Failures in words of your own are named"""
    values = ["Das geht leider nicht.", "DENIED 17", "It is gone.", "Refunded."]
    lines = [
        line
        for number, value in enumerate(values)
        for line in log(asks(str(number), "refund", {"order": number, "cents": 5}, value), [REFUND])
    ]

    def rows(failed: Any) -> list[Any]:
        adopted = sigadapt.logs.adopt(lines, failed=failed)
        assert sum(failure["count"] for failure in adopted.failures) == 4 - len(adopted.rows)
        return sorted(row.question for row in adopted.rows)

    assert rows(None) == ["0", "1", "2", "3"]
    assert rows("DENIED|leider") == rows(re.compile("denied|LEIDER", re.IGNORECASE)) == ["2", "3"]
    assert rows(lambda result: "gone" in result.value) == ["0", "1", "3"]
    wrongs: list[Any] = ["(", 7]
    for wrong in wrongs:
        with pytest.raises(InvalidOption) as raised:
            FailureRule(wrong)
        assert raised.value.field == "failed"


def test_an_outage() -> None:
    """logs: The gold of a row is the call that was right"""
    assert is_outage(result_of("Error: 503 Service Unavailable"))
    assert is_outage(result_of({"error": "Request timed out"}))
    assert not is_outage(result_of("Error: order 1503 not found"))
