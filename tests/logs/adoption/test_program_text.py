"""program.py is a program that people read, change and keep."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

import ast
import inspect
import json
import runpy
from pathlib import Path
from typing import Any

import dspy
import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import main
from logs.made_logs import CLOCK, WEATHER, asks, log, tool, weather_log

from sigadapt import ToolDecl, ToolDecls
from sigadapt.logs import adopt
from sigadapt.logs.adoption.program_text import is_unchanged, program_text
from sigadapt.logs.adoption.prompts import CommonPrompt
from sigadapt.logs.adoption.stubs import annotation, docstring, names_of, stub_of
from sigadapt.testing import Answer, LoopbackProvider

SYSTEM = "You are a weather desk. Use the tools."


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    adopt(weather_log(SYSTEM)).save(tmp_path)
    return tmp_path


def nodes(folder: Path, kind: Any) -> dict[str, Any]:
    tree = ast.parse((folder / "program.py").read_text("utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, kind)}


def test_it_reads_as_a_program(desk: Path) -> None:
    """logs: The program of a log is one that people read"""
    classes = nodes(desk, ast.ClassDef)
    assert ast.get_docstring(classes["Turn"]) == SYSTEM
    fields = {node.target.id for node in classes["Turn"].body if isinstance(node, ast.AnnAssign)}
    assert fields == {"question", "results", "tools", "answer", "calls"}
    function = nodes(desk, ast.FunctionDef)["get_weather"]
    assert ast.unparse(function.args) == "city: str"
    assert ast.get_docstring(function) == "Weather of a city."
    names: Any = runpy.run_path(str(desk / "program.py"))
    with pytest.raises(NotImplementedError, match="get_weather is a stub"):
        names["get_weather"](city="Lima")
    assert isinstance(names["program"], dspy.Module)
    assert [decl.name for decl in names["TOOLS"]] == ["get_weather", "get_time"]


def test_it_sends_what_was_recorded(desk: Path) -> None:
    """logs: The program of a log is one that people read"""
    names: Any = runpy.run_path(str(desk / "program.py"))
    adopted = adopt(weather_log(SYSTEM))
    bodies: list[Any] = []
    for program in (names["program"], adopted.program):
        with (
            LoopbackProvider([Answer(text="ok")]) as provider,
            dspy.context(lm=dspy.LM(**provider.lm_options("openai"))),
        ):
            program(**adopted.rows[0].inputs())
        bodies.append(provider.received[0].body)
    assert bodies[0] == bodies[1]
    question = adopted.rows[0].question
    assert bodies[0]["messages"] == [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": question},
    ]


def test_a_program_that_its_user_changed_stays(desk: Path, capsys: Any, tmp_path: Path) -> None:
    """logs: A program that its user changed stays"""
    path = desk / "program.py"
    assert is_unchanged(path.read_text("utf-8"))
    more = [*weather_log(SYSTEM), *log(asks("Now?", "now", {}), [tool("now")])]
    adopt(more).save(desk)
    assert "now" in nodes(desk, ast.FunctionDef)
    changed = path.read_text("utf-8") + "\nMINE = 1\n"
    path.write_text(changed, "utf-8")
    rows = len((desk / "train.jsonl").read_text("utf-8").splitlines())
    paths = adopt(weather_log(SYSTEM)).save(desk)
    assert path.read_text("utf-8") == changed
    assert paths[0] == desk / "program_new.py"
    assert is_unchanged(paths[0].read_text("utf-8"))
    assert len((desk / "train.jsonl").read_text("utf-8").splitlines()) < rows
    assert not is_unchanged("")
    assert not is_unchanged('"""What an earlier release wrote."""\n')
    log_file = tmp_path / "log.jsonl"
    log_file.write_text("\n".join(map(json.dumps, weather_log())), "utf-8")
    assert main(["adopt", str(log_file), "-o", str(desk)]) == 0
    assert "Your own program.py is as it was" in " ".join(capsys.readouterr().out.split())


ANNOTATIONS: list[tuple[Any, str]] = [
    ({"type": "string"}, "str"),
    ({"type": "integer"}, "int"),
    ({"type": "number"}, "float"),
    ({"type": "boolean"}, "bool"),
    ({"type": "object"}, "dict[str, Any]"),
    ({"type": "array"}, "list[Any]"),
    ({"type": "array", "items": {"type": "string"}}, "list[str]"),
    ({"enum": ["a", 1, None, True]}, 'Literal["a", 1, None, True]'),
    ({"const": "x"}, 'Literal["x"]'),
    ({"enum": [1.5]}, "Any"),
    ({"type": ["string", "null"]}, "str | None"),
    ({"type": "string", "nullable": True}, "str | None"),
    ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, "int | None"),
    ({"oneOf": [{"type": "integer"}, {}]}, "Any"),
    ({"type": "strange"}, "Any"),
    (True, "Any"),
]


@pytest.mark.parametrize(("schema", "expected"), ANNOTATIONS, ids=[name for _, name in ANNOTATIONS])
def test_annotations(schema: Any, expected: str) -> None:
    """logs: The program of a log is one that people read"""
    assert annotation(schema) == expected


def test_stubs() -> None:
    """logs: The program of a log is one that people read"""
    properties: dict[str, Any] = {
        "note": {"type": "string", "description": "For the\ncook."},
        "day": {"type": "string", "default": "sat"},
        "people": {"type": "integer"},
        "class": {"type": "string"},
    }
    parameters = {"type": "object", "properties": properties, "required": ["people"]}
    decl = ToolDecl("book", 'Book "a" table', parameters, returns={"type": "boolean"})
    assert stub_of(decl, "book").splitlines() == [
        'def book(people: int, note: str | None = None, day: str = "sat", **others: Any) -> bool:',
        '    """Book "a" table',
        "",
        "    Args:",
        "        note: For the cook.",
        '    """',
        '    raise NotImplementedError("book is a stub: put your own function here")',
    ]
    names = names_of([ToolDecl(name) for name in ("a.b", "a b", "class", "dspy", "7up", "é")], ["dspy"])
    assert [*names.values()] == ["a_b", "a_b_", "class_", "dspy_", "tool_7up", "__"]


@settings(deadline=None, max_examples=share(200))
@given(st.text(alphabet=st.one_of(st.sampled_from('"\\\n\t \r\x00#{}'), st.characters(codec="utf-8"))))
def test_texts_of_a_log_are_literals(text: str) -> None:
    """logs: The program of a log is one that people read"""
    parameters = {"type": "object", "properties": {text: {"type": "string", "description": text}}}
    decls = ToolDecls([{"name": "f", "description": text, "parameters": parameters}])
    prompt = inspect.cleandoc(text)
    names: dict[str, Any] = {}
    program = program_text(
        decls, CommonPrompt(prompt), ["question", "history", "results", "context", "tools"]
    )
    exec(compile(program, "program.py", "exec"), names)  # noqa: S102  (of our own text)
    assert names["TOOLS"].fingerprint() == decls.fingerprint()
    assert names["Turn"].instructions == (prompt or "Answer, or call tools.")
    assert is_unchanged(program)
    if text:
        assert ast.literal_eval(docstring(text, "    ")) is not None


@pytest.mark.parametrize("text", ['"', '"""', 'a "', 'a"""', 'a""""', 'a\\"', 'a\\"""', '"""""""', 'a\n"""'])
def test_a_text_that_ends_in_quotes(text: str) -> None:
    """logs: The program of a log is one that people read"""
    assert inspect.cleandoc(ast.literal_eval(docstring(text, "    "))) == text


def test_a_hostile_log(tmp_path: Path, monkeypatch: Any) -> None:
    """logs: The program of a log is one that people read"""
    evil = 'x"""\nimport os; os.makedirs("owned")\n"""'
    hostile = tool("drop_it", evil, **{"class": "string", "a-b": {"type": "string", "default": "'''"}})
    lines = log(asks("x?", "drop_it", {"class": "a", "a-b": "b"}), [hostile], 'Be """kind""".\\')
    adopted = adopt([*weather_log(), *lines])
    adopted.save(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: Any = runpy.run_path(str(tmp_path / "program.py"))
    assert names["TOOLS"]["drop_it"].description == evil
    assert not (tmp_path / "owned").exists()
    assert {WEATHER["function"]["name"], CLOCK["function"]["name"]} < {decl.name for decl in names["TOOLS"]}
