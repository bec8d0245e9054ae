"""The demo and the command, as a stranger would run them: no key, no network."""

from typing import Any

import pytest

from sigadapt import __version__
from sigadapt.commands import demo
from sigadapt.commands.cli import main
from sigadapt.testing import WIRES, LoopbackProvider


@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("wire", list(WIRES))
def test_the_demo_runs_on_every_wire(wire: str, engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """loopback-provider: The demo runs on every wire.

    loopback-provider: The demo shows parallel calls and an answer without a call.
    """
    arguments = ["demo", "--wire", wire] + ([] if engine == "auto" else ["--engine", engine])
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "class Assist(dspy.Signature):" in shown
    assert 'request["tools"]' in shown
    assert shown.count('"get_weather"') == 2, "once canonically, once on the wire"
    assert "call      get_weather(city='Paris')" in shown
    assert "call      get_weather(city='Rome', days=2)" in shown
    assert "beside    Let me look." in shown
    assert "call      get_time(zone='Asia/Tokyo')" in shown
    assert "answer    Forty-two." in shown


def test_a_real_model_takes_the_embedded_providers_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """loopback-provider: A real model takes the embedded provider's place."""
    with LoopbackProvider(demo.policy) as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "from the environment")
        monkeypatch.setenv("OPENAI_API_BASE", provider.base_url("openai"))
        assert main(["demo", "--model", "openai/gpt-4o-mini"]) == 0
    assert len(provider.received) == 3
    assert provider.received[0].headers["authorization"] == "Bearer from the environment"
    assert "answer    Forty-two." in capsys.readouterr().out


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


@pytest.mark.parametrize("arguments", [["demo", "--wire", "telegraph"], ["demo", "--engine", "steam"], []])
def test_words_that_are_off_are_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """loopback-provider: An unknown wire on the command line is a usage error."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: sigadapt" in capsys.readouterr().err


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.strip() == f"sigadapt {__version__}"


@pytest.mark.parametrize("tool", [demo.get_weather, demo.get_time])
def test_the_demos_tools_cannot_run(tool: Any) -> None:
    with pytest.raises(NotImplementedError):
        tool("Paris")
