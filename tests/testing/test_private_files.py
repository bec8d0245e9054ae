"""What holds conversations is its owner's alone, and JSON lines end at line feeds."""

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sigadapt.testing import Answer, Exchange, LoopbackError, LoopbackProvider, exchanges_in

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no modes of files")


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def record(path: Path | str, body: Any) -> None:
    with LoopbackProvider([Answer(text="Hi.")], record=path) as provider:
        httpx.post(f"{provider.url}/v1/chat/completions", json={"model": "m", "messages": [], **body})


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize(("before", "after"), [(None, 0o600), (0o664, 0o600), (0o700, 0o700)])
def test_a_recording_is_its_owners(tmp_path: Path, before: int | None, after: int) -> None:
    """loopback-provider: A recording is its owner's alone."""
    path = tmp_path / "recording.jsonl"
    if before is not None:
        path.touch()
        path.chmod(before)
    for count in (1, 2):
        record(path, {"user": "é\u2028"})
        assert mode_of(path) == after
        assert path.read_bytes().count(b"\n") == count


def test_a_device_stays_everybodys() -> None:
    """loopback-provider: A recording is its owner's alone."""
    before = mode_of(Path(os.devnull))
    record(os.devnull, {})
    assert mode_of(Path(os.devnull)) == before


@pytest.mark.parametrize(
    "said", ["a\u2028b", "a\u0085b", "a\u2029b", "a\x1cb", "a\x0bb", "a\x0cb"], ids=ascii
)
def test_a_line_feed_alone_ends_a_line(said: str) -> None:
    """loopback-provider: A recording is read back byte for byte."""
    first = Exchange("openai", "/v1", {"said": said}, 200, "application/json", said.encode())
    # A client may write its JSON without escapes; control characters are escaped in any JSON.
    lines = [first.line(), json.dumps(json.loads(first.line()), ensure_ascii=False)]
    for end in ("\n", "\r\n", "\n\n", "\r\n\r\n"):
        text = end.join(lines)
        for form in (text, text.encode(), text.split("\n")):
            assert [*exchanges_in(form)] == [first, first]
    with pytest.raises(LoopbackError, match="line 2"):
        list(exchanges_in(f"{lines[1]}\n{{"))


def test_credentials_in_a_schema_are_not_recorded(tmp_path: Path) -> None:
    """loopback-provider: What is not known to be harmless is masked."""
    secret = {
        "type": "string",
        "default": "Zq9x-1",
        "examples": ["Zq9x-2"],
        "description": "As in Zq9x-long-4.",
    }
    properties: dict[str, Any] = {
        "api_key": {**secret, "enum": ["Zq9x-3", "Zq9x-long-4"]},
        "login": {
            "type": "object",
            "properties": {"password": {"anyOf": [{"const": "Zq9x-5"}, {"type": "null"}]}},
        },
        "unit": {"type": "string", "default": "celsius", "enum": ["celsius", "kelvin"]},
        "access_token": {"type": "string", "default": ""},
        "default": {"type": "string", "default": "plain"},
    }
    schema = {"type": "object", "properties": properties}
    function = {"type": "function", "function": {"name": "f", "parameters": schema}}
    claude = {"name": "g", "input_schema": schema}
    path = tmp_path / "recording.jsonl"
    record(path, {"tools": [function, claude], "response_format": {"schema": schema}})
    [exchange] = map(json.loads, path.read_text("utf-8").splitlines())
    tools = exchange["request"]["tools"]
    for parameters in (tools[0]["function"]["parameters"], tools[1]["input_schema"]):
        held = parameters["properties"]
        assert held["api_key"]["default"] == "***"
        assert held["api_key"]["enum"] == held["api_key"]["examples"] == ["***"]
        assert held["login"]["properties"]["password"] == {"anyOf": [{"const": "***"}, {"type": "null"}]}
        assert {name: held[name] for name in ("unit", "access_token", "default")} == {
            name: properties[name] for name in ("unit", "access_token", "default")
        }
    assert "/request/tools/0/function/parameters/properties/api_key/default" in exchange["masked"]
    assert "Zq9x-long-4" not in path.read_text("utf-8")
