"""ToolDecl and ToolDecls."""

import copy
import dataclasses
import difflib
import inspect
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast, get_args, get_type_hints

import dspy
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import run_python
from support import json_values
from tables import table

from sigadapt import ToolDecl, ToolDecls
from sigadapt.errors import InvalidToolDecl

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


def search(query: str, limit: int = 10) -> list[str]:
    """Search the index."""
    raise AssertionError


class Point(pydantic.BaseModel):
    """A point."""

    x: float


class Desk:
    """A desk."""

    def __call__(self, room: int) -> str:
        """Book a room."""
        raise AssertionError


NAMELESS: Callable[[int], int] = lambda x: x  # noqa: E731


def refusal(sources: object) -> InvalidToolDecl:
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecls(sources)
    return caught.value


def names(sources: object) -> list[str]:
    return [decl.name for decl in ToolDecls(sources)]


def test_a_declaration_renders_as_an_openai_chat_tool():
    """tool-declarations: A declaration renders as an OpenAI chat tool."""
    decl = ToolDecl.of({"name": "search", "description": "Search.", "input_schema": SCHEMA})
    assert decl.to_openai() == {
        "type": "function",
        "function": {"name": "search", "description": "Search.", "parameters": SCHEMA},
    }
    for strict in (True, False):
        assert ToolDecl.of(decl, strict=strict).to_openai()["function"]["strict"] is strict


def test_a_declaration_is_frozen():
    """tool-declarations: A declaration is frozen."""
    decl = ToolDecl.of(search)
    with pytest.raises(dataclasses.FrozenInstanceError):
        decl.name = "other"  # pyright: ignore[reportAttributeAccessIssue]
    decls = ToolDecls([search])
    with pytest.raises(pydantic.ValidationError):
        decls.tools = ()


def test_a_collection_keeps_order_and_finds_by_name():
    """tool-declarations: A collection keeps order and finds tools by name."""
    decls = ToolDecls([search, Point, {"name": "now"}])
    assert len(decls) == 3
    assert [decl.name for decl in decls] == ["search", "Point", "now"]
    assert [tool["function"]["name"] for tool in decls.to_openai()] == ["search", "Point", "now"]
    assert decls["Point"].description == "A point."
    assert decls[0] == next(iter(decls))
    assert "now" in decls
    assert "then" not in decls
    assert 5 not in decls
    with pytest.raises(KeyError):
        decls["then"]
    assert repr(decls) == "ToolDecls(['search', 'Point', 'now'])"


def test_one_source_makes_a_collection_of_one():
    """tool-declarations: One source makes a collection of one."""
    assert names(search) == names({"name": "search"}) == names(dspy.Tool(search)) == ["search"]
    assert names(ToolDecl.of(search)) == names(ToolDecls(search)) == ["search"]
    assert names(()) == names([]) == []


def test_a_name_given_twice_is_refused():
    """tool-declarations: A name given twice is refused."""
    error = refusal([search, {"name": "now"}, [search]])
    assert (error.code, error.tool) == ("duplicate_name", "search")


@pytest.mark.parametrize(
    "source", [{"parameters": {}}, {"name": ""}, {"name": " \t"}, {"function": {}}, NAMELESS]
)
def test_a_tool_without_a_name_is_refused(source: Any):
    """tool-declarations: A tool without a name is refused."""
    assert refusal(source).code == "missing_name"
    assert ToolDecl.of(source, name="given").name == "given"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", 5),
        ("name", "a\ud800"),
        ("description", b"x"),
        ("description", "\ud800"),
        ("returns", []),
        ("strict", "yes"),
        ("long_running", 1),
        ("requires_confirmation", "yes"),
        ("extras", [1]),
    ],
)
def test_fields_of_the_wrong_type_are_refused(field: str, value: Any):
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl(**cast("Any", {"name": "f", field: value}))
    assert caught.value.code == "invalid_field"
    assert field in caught.value.reason


@pytest.mark.parametrize("field", ["returns", "extras"])
def test_what_could_not_be_saved_is_refused(field: str):
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl("f", **cast("Any", {field: {"a": object()}}))
    assert (caught.value.code, caught.value.path) == ("invalid_schema", "/a")


UNKNOWN: list[tuple[object, str]] = [
    (5, "5 (int)"),
    ("search", "'search' (str)"),
    (b"x", "(bytes)"),
    (None, "None"),
    ({}, "(none)"),
    ({"query": 1}, "'query'"),
    ([search, 5], "5 (int)"),
    ([[5]], "5 (int)"),
    ([None], "None"),
    ({search}, "(set)"),
    (Desk, "class Desk"),
    (list[int], "list[int]"),
    (int | None, "int | None"),
    (Point(x=1), "(Point)"),
    (dspy.Predict, "class Predict"),
]


@pytest.mark.parametrize(("value", "seen"), UNKNOWN)
def test_something_that_declares_no_tool_is_refused(value: object, seen: str):
    """tool-declarations: Something that declares no tool is refused."""
    error = refusal(value)
    assert error.code == "unknown_source"
    assert seen in error.reason
    assert error.fix
    assert not isinstance(value, ToolDecls)


def test_declarations_survive_json_pickle_and_copies():
    """tool-declarations: Declarations survive JSON."""
    full = ToolDecl("f", "F.", SCHEMA, {"type": "string"}, True, True, True, {"a": 1}, func=search)
    decls = ToolDecls([full, search, Point])
    pickled = pickle.loads(pickle.dumps(decls))  # noqa: S301  (our own bytes)
    for back in (
        ToolDecls.model_validate_json(decls.model_dump_json()),
        ToolDecls.model_validate(json.loads(json.dumps(decls.model_dump(mode="json")))),
        ToolDecls(decls.model_dump()),
        pickled,
    ):
        assert back == decls
        assert back.to_openai() == decls.to_openai()
        functions = [search, search, Point] if back is pickled else [None, None, None]
        assert [decl.func for decl in back] == functions
    assert copy.copy(decls) is copy.deepcopy(decls) is decls.model_copy(deep=True) is decls
    assert copy.deepcopy(full) is full
    assert decls.model_copy(update={"tools": [search]}) == ToolDecls(search)
    assert decls != ToolDecls(search)
    assert decls != "decls"
    assert hash(decls) == hash(ToolDecls([full, search, Point]))


json_objects = st.dictionaries(st.text(), json_values, max_size=3)
properties = st.fixed_dictionaries({}, optional={"default": json_values, "const": json_values})
parameters = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(st.text(), properties), "x-more": json_values}
)
OWN_KEYS = {"type", "function", "custom"}  # which the declaration itself says
declarations = st.builds(
    ToolDecl,
    name=st.text(min_size=1).filter(str.strip),
    description=st.text(),
    parameters=parameters,
    returns=st.none() | json_objects,
    strict=st.none() | st.booleans(),
    long_running=st.booleans(),
    requires_confirmation=st.booleans(),
    extras=st.none() | json_objects.filter(lambda extras: extras.keys().isdisjoint(OWN_KEYS)),
)


@pytest.mark.slow
@given(st.lists(declarations, max_size=3, unique_by=lambda decl: decl.name))
def test_any_declarations_survive_json(tools: list[ToolDecl]):
    """tool-declarations: Declarations survive JSON."""
    decls = ToolDecls(tools)
    back = ToolDecls.model_validate_json(decls.model_dump_json())
    assert back.to_openai() == decls.to_openai()
    assert list(map(repr, back)) == list(map(repr, decls))


def test_a_bad_name_is_compared_with_a_bounded_number_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """tool-declarations: A misspelt name among many tools costs a bounded look."""
    decls = ToolDecls([{"name": f"tool_{number:04}_of_many"} for number in range(1000)])
    compared: list[int] = []
    matching: Any = difflib.get_close_matches

    def counting(word: str, known: Any, **options: Any) -> Any:
        compared.append(len([*known]))
        return matching(word, known, **options)

    monkeypatch.setattr(difflib, "get_close_matches", counting)
    for name in ("tool_0500_of_many_", "xool_0500_of_many", "tool_0500of_many"):
        flaw = decls.flaw_of(name, {})
        assert flaw is not None
        assert "Did the model mean 'tool_0500_of_many'?" in flaw.message
    assert max(compared) <= 200


def test_what_a_person_may_write_of_a_tool_are_the_arguments_of_its_declaration():
    """tool-declarations: Input and output schemas may be overridden."""
    [fields] = get_args(get_type_hints(ToolDecl.of)["overrides"])
    written = {*get_type_hints(fields)}
    assert {field.name for field in dataclasses.fields(ToolDecl)} - written == {"func", "search", "hooks"}
    assert written <= {*inspect.signature(ToolDecl).parameters}


@pytest.mark.slow
def test_reading_other_sources_imports_no_optional_library():
    code = (
        "import sys\n"
        "from sigadapt.signatures.tool_decls import ToolDecls\n"
        "def f(a: int): ...\n"
        "ToolDecls([f, {'name': 'g'}]).to_openai()\n"
        "print([name for name in ('mcp', 'mcp_types', 'langchain_core') if name in sys.modules])\n"
    )
    done = run_python("-c", code, check=True)
    assert done.stdout.strip() == "[]"


CODE = """
from typing import Literal
import pydantic
from sigadapt import ToolDecls

class Point(pydantic.BaseModel):
    x: float
    tags: set[Literal["a", "b", "c"]] = {"a", "b", "c"}

def f(point: Point, tags: frozenset[str] = frozenset({"x", "y", "z"})) -> int:
    '''Do it.'''

print(ToolDecls([f, Point, {"type": "web_search"}]).fingerprint())
"""


def test_a_fingerprint_is_the_same_in_every_process(capsys: pytest.CaptureFixture[str]):
    """tool-declarations: The same declarations have the same fingerprint in every process."""
    exec(CODE, {"__name__": "here"})  # noqa: S102  (this process, whose seed is a third one)
    seen = {capsys.readouterr().out.strip()}
    for seed in ("0", "1"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", CODE]
        seen.add(subprocess.check_output(command, text=True, env=env).strip())  # noqa: S603
    assert len(seen) == 1
    assert len(seen.pop()) == 64


A, B = {"name": "a", "description": "A."}, {"name": "b", "description": "B."}


@pytest.mark.parametrize("other", table(__file__, "OTHER_BYTES"))
def test_other_bytes_have_another_fingerprint(other: list[Any]):
    """tool-declarations: The same declarations have the same fingerprint in every process."""
    assert ToolDecls(other).fingerprint() != ToolDecls([A, B]).fingerprint()


@pytest.mark.parametrize("text", ["", "plain", "Zürich 東京"])
def test_a_size_is_the_bytes_of_compact_json(text: str):
    """tool-declarations: The size of a declaration is known."""
    decl = ToolDecl("f", text, {"type": "object", "properties": {"ü": {"type": "string"}}})
    sent = json.dumps(decl.to_openai(), ensure_ascii=False, separators=(",", ":"))
    assert decl.size == len(sent.encode())


@pytest.mark.parametrize("description", ["Build it.", ""])
def test_a_long_running_tool_says_so(description: str):
    """tool-declarations: A long-running tool tells the model so."""
    decl = ToolDecl("build", description, long_running=True)
    told = decl.to_openai()["function"]["description"]
    assert told.startswith(description)
    assert "result comes later" in told
    assert "Do not repeat the call" in told
    assert decl.description == description
    assert ToolDecls.model_validate_json(ToolDecls(decl).model_dump_json())["build"] == decl
