"""The demo, as a stranger would run it: no key, no network, one screen."""

import json
from typing import Any

import dspy
import pytest

from sigadapt.commands import main
from sigadapt.testing import WIRES, Answer, Call, LoopbackProvider

ON_EACH = [(wire, engine) for wire in WIRES for engine in ("auto", "litellm")]


def run(wire: str, engine: str, *more: str) -> int:
    return main(["demo", "--wire", wire, *([] if engine == "auto" else ["--engine", engine]), *more])


@pytest.mark.parametrize(("wire", "engine"), ON_EACH)
def test_the_demo_runs_on_every_wire(wire: str, engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """loopback-provider: The demo runs on every wire.

    loopback-provider: The demo shows parallel calls and an answer without a call.

    command-line: The demo is one screen.
    """
    assert run(wire, engine) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 40
    assert max(map(len, shown.splitlines())) <= 80
    assert "class Assist(dspy.Signature):" in shown
    assert "What leaves, the tools of POST /" in shown
    assert shown.count('"get_weather"') == 1, "the schema once"
    assert "text    Let me look." in shown
    assert "call    get_weather(city='Paris')" in shown
    assert "call    get_weather(city='Rome', days=2)" in shown
    assert "answer  Forty-two." in shown


@pytest.mark.parametrize(("wire", "engine"), ON_EACH)
def test_a_faulty_answer_goes_to_both_adapters(
    wire: str, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """command-line: The demo gives a faulty answer to both adapters."""
    run(wire, engine, "--json")
    document = json.loads(capsys.readouterr().out)
    theirs, ours = document["faulty"]["dspy.ChatAdapter"], document["faulty"]["sigadapt.ChatAdapter"]
    assert ours["error"]["code"] in {"truncated", "schema_mismatch"}
    (call,) = theirs["calls"]
    if wire in ("openai", "responses"):
        assert ours["error"]["code"] == "truncated"
        assert call["args"] in ({"partial_json": '{"city": "Osl'}, {"city": "Osl"}, {})
    else:
        assert call["args"] == {"city": 42}


@pytest.mark.litellm
def test_a_real_model_takes_the_embedded_providers_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """loopback-provider: A real model takes the embedded provider's place."""
    script = [Answer(calls=[Call("get_weather", {"city": "Paris"})]), Answer(text="Forty-two.")]
    with LoopbackProvider(script) as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "from the environment")
        monkeypatch.setenv("OPENAI_API_BASE", provider.base_url("openai"))
        assert main(["demo", "--model", "openai/gpt-4o-mini"]) == 0
    assert len(provider.received) == 2
    assert provider.received[0].headers["authorization"] == "Bearer from the environment"
    assert "answer  Forty-two." in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("openai/gpt-4.1", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-flash", "GEMINI_API_KEY"),
    ],
)
def test_a_model_without_a_key_is_one_sentence(
    model: str, key: str, engine: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """loopback-provider: A model that does not answer is one sentence."""
    for name in (key, "GOOGLE_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert main(["demo", "--model", model, "--engine", engine]) == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert said[-1].startswith("sigadapt demo: ")
    assert "key" in said[-1].lower()
    assert "Traceback" not in "".join(said)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["demo", "--wire", "telegraph"], "not one of openai-chat, openai-responses, anthropic"),
        (["demo", "--engine", "steam"], "not one of 'auto', 'litellm'"),
        ([], "Missing command"),
        (["dmeo"], "sigadapt: No such command 'dmeo'."),
    ],
)
def test_words_that_are_off_are_a_usage_error(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """loopback-provider: An unknown wire on the command line is a usage error."""
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sigadapt")
    assert told in line


@pytest.fixture(autouse=True)
def _settings() -> Any:
    """The demo leaves DSPy's settings as they are."""
    before: Any = (dspy.settings.lm, dspy.settings.adapter)
    yield
    assert (dspy.settings.lm, dspy.settings.adapter) == before
