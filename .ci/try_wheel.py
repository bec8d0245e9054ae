"""Try the wheel as a user has it: installed alone, outside of the checkout (`python3 tasks.py wheel`).

It's done with this Python; release.py installs it on every other.
"""

import sys
import tempfile
from pathlib import Path

from environments import ROOT, command, output, run

NATIVE = ("openai", "responses", "anthropic", "gemini")
WIRES = (*NATIVE, "ollama")
# Imports every module of the installed package.
IMPORTS = """
import importlib, pkgutil, sigadapt
for module in pkgutil.walk_packages(sigadapt.__path__, "sigadapt."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
# Keeps chats in the database of the extra `chats`, which no module needs to be imported.
CHATS = """
import dspy
from sigadapt import ui
from sigadapt.testing import check_chat_store
check_chat_store(ui.Chats(dspy.Predict("question -> answer"), "chats.db").store)
"""
# What the demo prints, on every wire and engine.
DEMO_SHOWS = (
    "class Assist(dspy.Signature):",
    "What leaves, the tools of POST /",
    '"get_weather"',
    "get_weather(city='Paris')",
    "get_weather(city='Rome', days=2)",
    "Let me look.",
    "Forty-two.",
    "dspy.ChatAdapter      a good call, get_weather(",
    "sigadapt.ChatAdapter  an error, ",
)


def try_wheel(away: Path) -> None:
    """Install the wheel alone, import every module of it, and run the demo."""
    run(sys.executable, "-m", "venv", away / "venv")
    pip = (command(away / "venv", "python"), "-m", "pip")
    run(*pip, "wheel", "-qq", "--no-deps", "--wheel-dir", away, ROOT)
    run(*pip, "install", "-qq", "--constraint", ROOT / "constraints.txt", *away.glob("*.whl"))
    run(command(away / "venv", "python"), "-c", IMPORTS, cwd=away)
    wheels = [f"{wheel}[chats]" for wheel in away.glob("*.whl")]
    run(*pip, "install", "-qq", "--constraint", ROOT / "constraints.txt", *wheels)
    run(command(away / "venv", "python"), "-c", CHATS, cwd=away)
    for options in (*(("--wire", wire) for wire in WIRES), ("--engine", "litellm")):
        show_demo(away, *options)
    run(*pip, "uninstall", "-qq", "-y", "litellm")  # as DSPy 3.5 is installed
    for wire in NATIVE:
        show_demo(away, "--wire", wire)


def show_demo(away: Path, *options: str) -> None:
    """Run the demo, and end if it does not show what it should."""
    shown = output(command(away / "venv", "sigadapt"), "demo", *options, cwd=away)
    missing = missing_of_demo(shown)
    if missing:
        sys.exit(f"the demo with {' '.join(options)} does not show {missing}:\n{shown}")


def missing_of_demo(shown: str) -> list[str]:
    """Return the lines that the demo should have printed and did not."""
    return [line for line in DEMO_SHOWS if line not in shown]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        try_wheel(Path(name))
