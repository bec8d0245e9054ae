"""Marks and pins that were kept go on to verify: a new form has a new version.

If a test here fails, kept marks and pins have become worthless. Give what you changed a new version.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tables import table

from sigadapt import InputNeeded, ToolCalls, ToolDecl, ToolResults
from sigadapt.trust import drift_of, is_signed, pins_of, sign

SECRET, SECOND = "s" * 32, "t" * 32
PLAIN = ToolCalls([{"id": "a", "name": "f", "args": {"n": 5, "t": "x", "b": True, "z": None}}])
ODD_ARGS: dict[str, Any] = table(__file__, "ODD_ARGS")
ODD = ToolCalls([{"id": "\u00e9", "name": "f.g", "args": ODD_ARGS}])
BAD = {"id": "b", "name": "f", "arguments": "{", "index": 0, "code": "invalid_json", "message": "cut"}
INVALID = ToolCalls.model_validate({"tool_calls": [], "invalid": [BAD]})
STATE = {"dialect": "anthropic", "blocks": [{"type": "text", "text": "Hm.", "n": 2**53 + 1}]}
STATEFUL = ToolCalls.model_validate(
    {"tool_calls": [*PLAIN], "turn": {"text": "Hm.", "reasoning": "So.", "state": STATE}}
)
RUN = InputNeeded.model_validate_json(Path(__file__).with_name("kept_run.json").read_bytes())
FAILED = ToolResults.of(PLAIN, ["No."], errors=[True])

OF_PLAIN = "v1:d38f3c330d754dccbc77414b493fc0baee11ca3c141616a3ad2f4cb9023c9857"
OF_ODD = "v1:ceab9127502af920e42444a4e830473f99369156fe14a4906b69be23d23f1d27"
OF_BAD = "v1:0484b682770d47e84bdf993eab90b03b06fb96c638da58a7349662451cd642ec"
OF_STATE = "v1:82d5efeb3d57fc2476d72ca9e0e2faa40ceb3890385707793cf8260064b099af"
OF_FAILED = "v1:8cfdf238c0735c66b61dc096bcc135678ab88bea64aead94e4bcc62d1b7a7e99"
OF_REQUESTS = [
    "v1:9b84c96ee689ef39d7c62d0011abba6878dcd1ac28291e97c4d5fa233fa04d62",
    "v1:444dddaf9a7fedb764ee82f04353c1cfea0f2a2e7084e456dd23b0bd3928cc9a",
]
OF_RUN = [
    "v1:6ec963dbf2855dab7cd348c3865d4b7c659044808f468e6c33325d60b74f48dc",
    "v1:99110d212f532e2d9656c0f179827b5679ddbffb97b8e58e34d32e315017aaed",
]
MARKS: dict[str, tuple[Any, list[str]]] = {
    "a call": (PLAIN, [OF_PLAIN]),
    "odd numbers and characters": (ODD, [OF_ODD]),
    "a bad call": (INVALID, [OF_BAD]),
    "a turn with state": (STATEFUL, [OF_PLAIN, OF_STATE]),
    "a failed result": (FAILED, [OF_PLAIN, OF_FAILED]),
    "requests": (RUN.requests, OF_REQUESTS),
    "a run": (RUN, [OF_PLAIN, OF_STATE, *OF_REQUESTS, OF_ODD, *OF_RUN]),
}


@pytest.mark.parametrize("name", MARKS)
def test_marks_are_as_they_were(name: str) -> None:
    """conversations: An old mark covers what it covered."""
    value, marks = MARKS[name]
    assert sign(value, [SECRET, SECOND], context="user 1") == marks
    assert is_signed(value, marks, [SECOND, SECRET], context="user 1")


def test_the_first_marks_verify() -> None:
    """conversations: An old mark covers what it covered."""
    old = ["v1:dd218b52966cc06f85cfbdaf4d85e05c6358996bdaf1019e00c0dea14ded51d5"]
    assert sign(PLAIN, SECRET) == old
    odd = ["v1:1c725c7c13fd0215be11b0f0db6ed59623b9663ce65b7107b31860884a79a3e0"]
    assert sign(ODD, SECRET) == odd
    result = [*old, "v1:72d0bceb030186252586e372845af2d57f118b63212f0c655d20c1f76d613eab"]
    assert sign(ToolResults.of(PLAIN, ["ok"]), SECRET) == result


def search(query: str, limit: int = 10) -> str:
    """Search."""
    return query + str(limit)


PINNED: list[Any] = [
    ToolDecl.of(search, requires_confirmation=True, strict=False),
    {
        "name": "g",
        "description": "G.",
        "parameters": {"type": "object", "properties": {"n": {"maximum": 2**60}}},
    },
    {"type": "web_search", "max_uses": 2},
]
PINS: dict[str, Any] = table(__file__, "PINS")


def test_pins_are_as_they_were() -> None:
    """toolsets: A changed tool is told from its pin."""
    assert pins_of(PINNED) == PINS
    assert drift_of(PINNED, json.loads(json.dumps(PINS))) == []
