"""Values that a command gives a program: text for text, JSON for anything else."""

import json
from typing import Any

import pytest
from tables import table

from sigadapt.commands import main

SHOW = ["show", "commands.programs:Typed", "--model", "openai/gpt-4o-mini"]


@pytest.mark.parametrize(
    ("given", "shown"),  # DSPy writes JSON in a way of its own
    table(__file__, "TEXTS"),
)
def test_only_a_field_of_text_takes_text(given: str, shown: str, capsys: Any) -> None:
    """command-line: An input that nobody gave is a placeholder, and said so."""
    assert main([*SHOW, "--input", given, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (request,) = document["requests"]
    name = given.partition("=")[0]
    assert f"[[ ## {name} ## ]]\n{shown}\n\n" in request["body"]["messages"][-1]["content"]
    assert name not in document["placeholders"]
