"""The text of program.py: a signature, typed stubs, the recorded declarations, and a module, for people.

Its first line has a hash of the rest. A program that its user changed has another hash, and is kept.
"""

import hashlib
import pprint
import re
from collections.abc import Iterable

from sigadapt.logs.adoption.prompts import CommonPrompt
from sigadapt.logs.adoption.stubs import docstring, names_of, stub_of
from sigadapt.logs.final_words import is_submit_decl
from sigadapt.logs.turns import NO_INSTRUCTIONS
from sigadapt.signatures.tool_decls import ToolDecls

_FIRST_LINE = "# sigadapt adopt {}. Change this file as you like: then adopt leaves it alone.\n"
_HASH = re.compile(r"# sigadapt adopt ([0-9a-f]{32})\b.*\n")
_TAKEN = (
    *("Any", "Literal", "dspy", "ToolCalls", "ToolDecls", "ToolResults", "plain_turns", "turn_inputs"),
    *("Turn", "TOOLS", "Program", "program", "print", "str", "int", "float", "bool", "list", "dict"),
    "NotImplementedError",
)
_ANNOTATIONS = {
    "question": "str | list[dict[str, Any]] | None",
    "history": "dspy.History | None",
    "results": "ToolResults | None",
    "context": "str | None",
    "tools": "ToolDecls",
}
_MEANINGS = {"context": "what this request says besides the instructions above"}
_NOT_SENT = "# The log has no instructions, so these are not sent until you or an optimizer changes them.\n"
_TEXT = '''"""What `sigadapt adopt` made of recorded traffic: its tools, and a program with them."""

from typing import {types}

import dspy

from sigadapt import ToolCalls, ToolDecls{results}
from sigadapt.logs.turns import plain_turns, turn_inputs


{note}class Turn(dspy.Signature):
    {instructions}

{fields}
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


# The functions behind the tools are not in a log. Put yours here to run the calls.
{stubs}


# The declarations as they were recorded. Rows name them.
TOOLS = ToolDecls(
{tools}
)


class Program(dspy.Module):
    """An answer to a row, or calls of tools. Nothing is run."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = TOOLS
        self.turn = dspy.Predict(Turn)

    def forward(self, **row: Any) -> dspy.Prediction:
        with plain_turns(row{first}):
            return self.turn(**turn_inputs(row, self.tools))

    async def aforward(self, **row: Any) -> dspy.Prediction:
        with plain_turns(row{first}):
            return await self.turn.acall(**turn_inputs(row, self.tools))


program = Program()
'''


def program_text(tools: ToolDecls, prompt: CommonPrompt, fields: Iterable[str]) -> str:
    """Return the text of program.py.

    Args:
        tools: the declarations.
        prompt: the instructions that rows have in common.
        fields: the names of the input fields.
    """
    names = names_of(tools, _TAKEN)
    declarations = pprint.pformat(tools.to_openai(), width=100, sort_dicts=False).splitlines()
    field_lines: list[str] = []
    has_results = False
    for name in fields:
        meaning = f"desc={_MEANINGS[name]!r}" if name in _MEANINGS else ""
        field_lines.append(f"    {name}: {_ANNOTATIONS[name]} = dspy.InputField({meaning})")
        has_results = has_results or name == "results"
    stubs = "\n\n\n".join(stub_of(decl, names[decl.name]) for decl in tools if not is_submit_decl(decl))
    body = _TEXT.format(
        types="Any, Literal" if "Literal[" in stubs else "Any",
        results=", ToolResults" if has_results else "",
        note="" if prompt.text else _NOT_SENT,
        instructions=docstring(prompt.text or NO_INSTRUCTIONS, "    "),
        fields="\n".join(field_lines),
        stubs=stubs,
        tools="\n".join(f"    {line}" for line in declarations),
        first=", context_first=True" if prompt.context_first else "",
    )
    return _FIRST_LINE.format(_hash_of(body)) + body


def is_unchanged(text: str) -> bool:
    """Return whether a program is as `adopt` wrote it, whatever ends its lines."""
    text = text.replace("\r\n", "\n")
    match = _HASH.match(text)
    return match is not None and match[1] == _hash_of(text[match.end() :])


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
