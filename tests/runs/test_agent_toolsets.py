"""Toolsets that choose by an agent's inputs: in each of its requests, and when a run that waited goes on."""

import asyncio
from typing import Any

import pytest
from agents import saved, serving, submits, turn, waiting

import sigadapt
from sigadapt import RequestContext, ToolDecl, Toolset
from sigadapt.testing import Call, LoopbackProvider

READ, WRITE = Call("read", {"path": "a"}), Call("write", {"path": "a"})


class Files:
    """Tools that note what ran, and policies that choose among them by the user."""

    def __init__(self, *, confirm: bool = False) -> None:
        self.ran: list[str] = []
        self.writing = ToolDecl.of(self.write, requires_confirmation=confirm)

    def read(self, path: str) -> str:
        """Read a file."""
        self.ran.append("read")
        return f"the text of {path}"

    def write(self, path: str) -> str:
        """Write a file."""
        self.ran.append("write")
        return f"wrote {path}"

    def of_admin(self, context: RequestContext) -> list[Any]:
        return [self.read, self.writing] if context.inputs.get("user") == "admin" else [self.read]

    def of_guest(self, context: RequestContext) -> list[Any]:
        return [self.read] if context.inputs.get("user") == "guest" else [self.read, self.writing]


def tools_sent(net: LoopbackProvider) -> list[list[str]]:
    return [[tool["function"]["name"] for tool in request.body["tools"]] for request in net.received]


@pytest.mark.parametrize("policy", ["of_admin", "of_guest"])
@pytest.mark.parametrize("user", ["admin", "guest"])
def test_a_policy_holds_in_each_request(policy: str, user: str) -> None:
    """toolsets: A toolset sees an agent's inputs in each request."""
    files = Files()
    agent = sigadapt.ReAct("question, user -> answer", tools=Toolset("files", getattr(files, policy)))
    with serving([turn(READ), turn(WRITE), submits()]) as net:
        agent(question="Read, then write.", user=user)
    writing = ["write"] * (user == "admin")
    assert tools_sent(net) == [["read", *writing, "submit"]] * 3
    assert files.ran == ["read", *writing]


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("whole", [False, True], ids=["results", "history"])
def test_a_run_goes_on_with_the_tools_of_its_request(*, is_saved: bool, is_async: bool, whole: bool) -> None:
    """toolsets: A run that waited goes on with the tools of its request."""
    files = Files(confirm=True)
    agent = sigadapt.ReAct("question, user -> answer", tools=Toolset("files", files.of_admin))
    with serving([turn(READ), turn(WRITE)], confirm="raise"):
        error = waiting(lambda: agent(question="Read, then write.", user="admin"))
    error = saved(error) if is_saved else error
    method: Any = getattr(error, "a" * is_async + ("resume" if whole else "results_of"))
    given = method(Toolset("files", files.of_admin), {error.requests[0].id: True})
    if is_async:
        given = asyncio.run(_awaited(given))
    assert files.ran == ["read", "write"]
    [*_, last] = sigadapt.rounds(given) if whole else given.rounds
    assert [result.value for result in last.results] == ["wrote a"]


async def _awaited(value: Any) -> Any:
    return await value
