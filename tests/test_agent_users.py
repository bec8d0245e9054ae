"""benchmarks/agent_users.py, short: users of one agent at once, with faults and approvals."""

import importlib
from typing import Any

import pytest

pytest.importorskip("benchmarks.agent_users")
USERS: Any = importlib.import_module("benchmarks.agent_users")


def test_users_of_one_agent() -> None:
    """agent-runs: A run goes on and runs nothing twice."""
    problems, report = USERS.measure(10, 2)
    assert problems == []
    assert "20 users, 10 at once" in report
    assert "4 approvals, 1 cancelled tasks" in report
