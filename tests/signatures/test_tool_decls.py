"""ToolDecl and ToolDecls."""

import copy
import dataclasses
import difflib
import gc
import inspect
import json
import logging
import pickle
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast, get_type_hints

import dspy
import mcp.types
import pydantic
import pytest
from dspy.utils import DummyLM
from hypothesis import given
from hypothesis import strategies as st
from internals import DeclFields

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


def test_a_dict_schema_passes_through_unchanged():
    """tool-declarations: A dict schema passes through unchanged."""
    before = copy.deepcopy(SCHEMA)
    decl = ToolDecl("search", parameters=SCHEMA)
    assert decl.parameters == decl.to_openai()["function"]["parameters"] == SCHEMA
    assert list(decl.parameters) == list(SCHEMA)
    assert before == SCHEMA


def test_a_declaration_is_a_snapshot():
    """tool-declarations: What is sent and what calls are checked by are one snapshot."""
    theirs: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    decl = ToolDecl("f", parameters=theirs)
    before, decls = decl.to_openai(), ToolDecls([decl])
    for schema in (theirs, decl.parameters, decl.to_openai()["function"]["parameters"]):
        schema["required"] = ["a"]
        schema["properties"].clear()
    assert decl.to_openai() == before
    assert decls.canonical == decls.to_openai() == [before]
    assert decl.flaw_of({}) is None
    assert decl.flaw_of({"a": 1}) is not None
    assert ToolDecls.model_validate_json(decls.model_dump_json()).to_openai() == [before]
    assert ToolDecls([{"name": "f", "parameters": theirs}])["f"].flaw_of({}) is not None


@pytest.mark.parametrize("parameters", [None, {}])
def test_no_schema_is_a_tool_without_arguments(parameters: Any):
    """tool-declarations: A tool without parameters takes none."""
    for decl in (
        ToolDecl("now", "", parameters),
        ToolDecl.of({"name": "now", "parameters": parameters}),
        ToolDecl("now"),
    ):
        assert decl.parameters == {"type": "object", "properties": {}}
        assert decl.flaw_of({}) is None


def test_what_is_given_replaces_what_the_source_says():
    decl = ToolDecl.of(
        search,
        name="find",
        description="Find.",
        parameters=SCHEMA,
        returns={"type": "null"},
        strict=True,
        long_running=True,
        requires_confirmation=True,
    )
    assert decl == ToolDecl("find", "Find.", SCHEMA, {"type": "null"}, True, True, True)
    assert decl.func is search
    assert ToolDecl.of(decl) is decl
    assert ToolDecl.of(decl, name="again") == dataclasses.replace(decl, name="again")
    assert ToolDecl.of(search, description="").description == ""


def test_a_declaration_is_frozen():
    """tool-declarations: A declaration is frozen."""
    decl = ToolDecl.of(search)
    with pytest.raises(dataclasses.FrozenInstanceError):
        decl.name = "other"  # pyright: ignore[reportAttributeAccessIssue]
    decls = ToolDecls([search])
    with pytest.raises(pydantic.ValidationError):
        decls.tools = ()


def test_functions_are_kept_and_never_called():
    """tool-declarations: Nothing declared is ever called."""
    predicate: Any = partial(search, limit=1)
    decls = ToolDecls([search, Point, Desk(), ToolDecl.of(search, name="s", requires_confirmation=predicate)])
    decls.to_openai()
    decls.model_dump_json()
    decls.flaw_of("search", {"query": 1})
    assert [decl.func for decl in decls][:2] == [search, Point]
    assert decls["s"].requires_confirmation is predicate


def test_two_declarations_are_equal_whatever_their_functions():
    one, other = ToolDecl.of(search), ToolDecl.of(partial(search))
    assert one == other
    assert len({one, other}) == 1
    assert one != ToolDecl.of(search, strict=True)


def test_a_declaration_can_be_referenced_weakly():
    decl = ToolDecl.of(search)
    watched = weakref.ref(decl)
    del decl
    gc.collect()
    assert watched() is None


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


def test_nested_collections_are_laid_out_flat():
    """tool-declarations: Nested collections are laid out flat."""
    several = {"functionDeclarations": [{"name": "b"}, {"name": "c"}]}
    nested = [ToolDecls([{"name": "a"}]), (several, [[search]]), iter([Point]), {"d": {"name": "d"}}.values()]
    assert names(nested) == ["a", "b", "c", "search", "Point", "d"]


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


def test_a_schema_is_checked_however_it_is_declared():
    """tool-declarations: A type word that is not JSON Schema's is refused with a hint."""
    bad = {"type": "object", "properties": {"a": {"type": "dict"}}}
    for declare in (
        lambda: ToolDecl("f", "", bad),
        lambda: ToolDecl.of({"name": "f", "parameters": bad}),
        lambda: ToolDecl.of(search, name="f", parameters=bad),
        lambda: ToolDecl.of(ToolDecl("f"), parameters=bad),
        lambda: dataclasses.replace(ToolDecl("f"), parameters=bad),
        lambda: ToolDecls.model_validate([{"name": "f", "parameters": bad}]),
        lambda: ToolDecl.of(mcp.types.Tool.model_validate({"name": "f", "inputSchema": bad})),
    ):
        with pytest.raises(InvalidToolDecl) as caught:
            declare()
        error = caught.value
        assert (error.code, error.tool, error.path) == ("invalid_schema", "f", "/properties/a/type")
        assert error.fix == "Use 'object'."


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


def test_a_function_in_the_place_of_a_name_is_told_where_it_goes():
    with pytest.raises(InvalidToolDecl, match=r"use ToolDecl\.of\(function\)"):
        ToolDecl(cast("Any", search))


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


def test_endless_nesting_is_refused():
    endless: list[Any] = []
    endless.append(endless)
    assert refusal(endless).code == "unknown_source"
    assert not isinstance(endless, ToolDecls)


def test_several_tools_are_not_one():
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of({"functionDeclarations": [{"name": "a"}, {"name": "b"}]})
    assert caught.value.fix == "Use ToolDecls."


def test_a_call_of_an_undeclared_tool_is_told_what_is_declared():
    """tool-call-outputs: Calls are checked against the declarations."""
    decls = ToolDecls([search, {"name": "now"}])
    flaw = decls.flaw_of("serach", {})
    assert flaw is not None
    assert flaw.code == "unknown_tool"
    for part in ("'serach'", "'search'", "'now'", "Did the model mean 'search'?"):
        assert part in flaw.message
    none = ToolDecls().flaw_of("x", {})
    assert none is not None
    assert "this turn has no tools" in none.message
    many = ToolDecls([{"name": f"tool_{n}"} for n in range(500)]).flaw_of("x" * 10_000, {})
    assert many is not None
    assert "480 more" in many.message
    assert len(many.message) < 1000


def test_a_call_is_judged_by_its_tool_s_schema():
    """tool-call-outputs: Calls are checked against the declarations."""
    decls = ToolDecls([search, Point, ToolDecl("q", parameters=SCHEMA)])
    assert decls.flaw_of("search", {"query": "x"}) is None
    assert decls.flaw_of("Point", {"x": 1}) is None
    for name, args, path in (
        ("search", {"query": 1}, "/query"),
        ("search", {"query": "x", "z": 1}, ""),
        ("q", {}, ""),
    ):
        flaw = decls.flaw_of(name, args)
        assert flaw is not None
        assert (flaw.code, flaw.path) == ("schema_mismatch", path)


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


def test_a_predicate_is_saved_as_true():
    asks = ToolDecl.of(search, requires_confirmation=bool)
    assert (
        ToolDecls.model_validate_json(ToolDecls(asks).model_dump_json())["search"].requires_confirmation
        is True
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
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


class Plan(dspy.Signature):
    """Pick the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str = dspy.OutputField()


class MaybePlan(dspy.Signature):
    """Pick the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls | None = dspy.InputField()
    answer: str = dspy.OutputField()


class Answers(dspy.Adapter):
    """Gives an answer whatever the inputs: what is tested comes before any adapter."""

    def __call__(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        return [{"answer": "yes"}]


def forms() -> Iterator[object]:
    """Every way of giving tools."""
    tool = mcp.types.Tool.model_validate({"name": "now", "inputSchema": {"type": "object"}})
    single: list[object] = [
        search,
        Point,
        Desk(),
        partial(search, "x"),
        dspy.Tool(search),
        {"name": "f"},
        tool,
    ]
    single += [ToolDecl.of(search), {"functionDeclarations": [{"name": "a"}]}, {"toolSpec": {"name": "b"}}]
    yield from single
    yield from ([source] for source in single)
    yield from (ToolDecls([search]), [], [ToolDecls(search), [Point]], (search, Point), iter([search]))
    yield from ((source for source in [search]), {"a": search}.values())


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What DSPy logs; its logger does not hand records on to pytest's."""
    logger = logging.getLogger("dspy")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


@pytest.mark.parametrize("signature", [Plan, MaybePlan])
def test_no_way_of_giving_tools_warns(signature: type[dspy.Signature], log: pytest.LogCaptureFixture):
    """tool-declarations: One source makes a collection of one."""
    with dspy.context(lm=DummyLM([]), adapter=Answers()):
        for tools in forms():
            dspy.Predict(signature)(question="?", tools=tools)
            assert not log.records, tools
        dspy.Predict(signature)(question="?", tools=5)
        assert "Type mismatch for field 'tools'" in log.records[0].getMessage()


@pytest.mark.parametrize("value", [value for value, _ in UNKNOWN] + [[[5]], [None]])
def test_what_is_refused_is_no_instance(value: object):
    assert not isinstance(value, ToolDecls)


def test_an_iterator_is_not_used_up_by_asking():
    tools = iter([search])
    assert isinstance(tools, ToolDecls)
    assert names(tools) == ["search"]


class Holder(pydantic.BaseModel):
    tools: ToolDecls
    more: ToolDecls | None = None


def test_pydantic_builds_a_collection_from_whatever_it_takes():
    adapter = pydantic.TypeAdapter(ToolDecls)
    for tools in forms():
        assert type(adapter.validate_python(tools)) is ToolDecls
    assert type(adapter.validate_python([search], strict=True)) is ToolDecls
    held = Holder.model_validate({"tools": [search], "more": Point})
    assert type(held.tools) is type(held.more) is ToolDecls
    assert Holder(tools=ToolDecls(search)).more is None
    back = Holder.model_validate_json(held.model_dump_json())
    assert back == held
    kept = ToolDecls(search)
    assert Holder(tools=kept).tools is kept
    for mode in ("validation", "serialization"):
        schema = pydantic.TypeAdapter(Holder).json_schema(mode=mode)
        assert schema["properties"]["tools"]["type"] == "array"


def test_pydantic_raises_the_same_error():
    refused: list[Any] = [5, [search, search], {"name": "f", "parameters": {"type": "dict"}}]
    for given_tools in refused:
        with pytest.raises(InvalidToolDecl):
            Holder.model_validate({"tools": given_tools})
        with pytest.raises(InvalidToolDecl):
            pydantic.TypeAdapter(ToolDecls).validate_python(given_tools)


def test_declarations_in_demos_survive_saving_a_program(tmp_path: Path):
    """tool-declarations: Declarations survive JSON."""
    decls = ToolDecls([search, Point])
    program = dspy.Predict(Plan)
    program.demos = [dspy.Example(question="?", tools=decls, answer="yes").with_inputs("question", "tools")]
    program.save(str(tmp_path / "program.json"))
    loaded: Any = dspy.Predict(Plan)
    loaded.load(str(tmp_path / "program.json"))
    assert ToolDecls(loaded.demos[0]["tools"]) == decls
    copied: Any = program.deepcopy()
    assert copied.demos[0]["tools"] is decls


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
    written = {*get_type_hints(DeclFields)}
    assert {field.name for field in dataclasses.fields(ToolDecl)} - written == {"func", "search", "hooks"}
    assert written <= {*inspect.signature(ToolDecl).parameters}
