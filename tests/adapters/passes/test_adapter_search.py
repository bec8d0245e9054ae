"""The search for deferred tools that the adapter declares, answers and replays; the provider's beside it."""

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import dspy
import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from sending import DONE, Sent, history, rows, send
from support import ENGINES, REACT_V2, Talk, json_values, lm_of
from text_cases import WRITERS

import sigadapt
from sigadapt import RequestContext, ToolCalls, ToolDecl, ToolDecls, ToolResults, Toolset
from sigadapt.errors import InvalidOption, InvalidToolDecl, UnusableAnswer
from sigadapt.testing import Answer, Call, LoopbackProvider, Received
from sigadapt.trust import sign, untrusted_history

Json = dict[str, Any]
SEARCH, CALL = "search_tools", "call_tool"
WIRES = [
    *((wire, engine, None) for wire in ("openai", "gemini", "responses") for engine in ENGINES),
    *(("anthropic", engine, "anthropic/claude-3-haiku-20240307") for engine in ENGINES),
    ("ollama", "litellm", None),
]
"""Wire, engine and model, of models without a search of their provider's."""
HOSTED = [("anthropic", "anthropic/claude-haiku-4-5"), ("responses", "openai/gpt-5.4")]
NOTHING: Json = {}
INDENTS: list[int | None] = [None, 1]
LATE = [("anthropic", "anthropic/claude-opus-4-8"), ("responses", "openai/gpt-5.5")]


def find_invoice(id: str) -> str:  # noqa: A002  (as an author names it)
    """Find an invoice by its number."""
    return f"invoice {id}"


def pay_supplier(iban: str, eur: int) -> str:
    """Pay a supplier by bank transfer."""
    return f"paid {eur} EUR to {iban}"


def now() -> str:
    """The time of day."""
    return "noon"


def few(**options: Any) -> Toolset:
    return Toolset("erp", [find_invoice, pay_supplier, now]).deferred("now", **options)


def searching(query: str = "find an invoice") -> Call:
    return Call(SEARCH, {"query": query})


def routed(name: str = "find_invoice", **args: Any) -> Call:
    return Call(CALL, {"name": name, "arguments": args or {"id": "7"}})


def naming(name: Any, *, whole: bool = False) -> Callable[[str, ToolDecls], Any]:
    """A search that finds one tool, whatever the query."""

    def search(query: str, tools: ToolDecls) -> Any:
        return name if whole else [name]

    return search


def ask(
    *script: Any,
    wire: str = "openai",
    engine: str = "auto",
    model: str | None = None,
    tools: Any = None,
    **more: Any,
) -> Sent:
    """Ask with a few deferred tools."""
    more["options"] = more.pop("options", {})
    lm = {"model": model} if model else {}
    return send(wire, engine, [*script], tools=few() if tools is None else tools, lm=lm, **more)


def called(sent: Sent) -> list[tuple[str, Json]]:
    return [(call.name, call.args) for call in sent.out.calls or ()]


def grows(bodies: list[Json]) -> bool:
    """Whether each request begins with the one before: the same tools and instructions, and more rows."""
    fixed = [
        {key: part for key, part in body.items() if key not in ("messages", "contents", "input")}
        for body in bodies
    ]
    marked = json.dumps([rows(body) for body in bodies]).replace(
        ', "cache_control": {"type": "ephemeral"}', ""
    )
    said = json.loads(marked)
    pairs = pairwise(said)
    return all(each == fixed[0] for each in fixed) and all(two[: len(one)] == one for one, two in pairs)


def unpaired(body: Json) -> list[str]:
    """Ids of calls in a chat request that have no result behind them, or several."""
    made = [call["id"] for row in body["messages"] for call in row.get("tool_calls") or ()]
    told = [row["tool_call_id"] for row in body["messages"] if row["role"] == "tool"]
    return [each for each in made if told.count(each) != 1] + [each for each in told if each not in made]


def named(body: Json) -> list[str]:
    """The calls in a chat request."""
    return [call["function"]["name"] for row in body["messages"] for call in row.get("tool_calls") or ()]


def agent_of(tools: Any) -> Any:
    agent: Any = REACT_V2
    return agent("question -> answer", tools=tools)


@pytest.mark.parametrize(("wire", "engine", "model"), WIRES)
def test_the_adapter_answers_searches(wire: str, engine: str, model: str | None):
    """
    tool-search: Elsewhere the adapter declares a search and answers it
    tool-search: The prompt keeps its beginning
    """
    how: Json = {"wire": wire, "engine": engine, "model": model}
    first = ask(Answer(calls=[searching()]), Answer(calls=[routed()]), **how)
    assert called(first) == [("find_invoice", {"id": "7"})]
    told = json.dumps(first.bodies[0])
    assert "Find an invoice" not in told
    assert "defer_loading" not in told
    assert "Find an invoice by its number." in json.dumps(rows(first.bodies[1]))
    results = ToolResults.of(first.out.calls, ["paid"])
    then = ask(Answer(calls=[searching("pay a supplier")]), DONE, **how, results=results)
    event = {"question": "Hm?", "results": results, "answer": "Done."}
    later = ask(DONE, **how, history=history(event, saved=True), question="And?")
    assert grows([*first.bodies, *then.bodies])
    assert grows([*first.bodies, *later.bodies])


@pytest.mark.parametrize("form", ["hermes", "llama3-json", "pythonic", "qwen3-coder-xml", "plain-json"])
def test_searches_of_a_prompted_model_are_answered(form: str):
    """tool-search: Elsewhere the adapter declares a search and answers it."""
    through = {"name": "find_invoice", "arguments": {"id": "7"}}
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}}}
    texts = [
        WRITERS[form]([call], {CALL: schema})
        for call in ((SEARCH, {"query": "find an invoice"}), (CALL, through))
    ]
    script = [Answer(text=text) for text in texts]
    asked = ask(*script, options={"tool_calling": "prompted", "call_format": form})
    assert called(asked) == [("find_invoice", {"id": "7"})]
    assert grows(asked.bodies)


def last_call(r: Received) -> Answer:
    """An agent's model: it searches, calls what it found, and submits."""
    text = json.dumps(r.body)
    if "Find an invoice by its number." not in text:
        return Answer(calls=[searching(), Call("now", {})] if "noon" not in text else [searching()])
    return Answer(calls=[routed() if "invoice 7" not in text else Call("submit", {"answer": "12"})])


@pytest.mark.parametrize("tools", [few, lambda: few().resolve(), lambda: few().resolve().to_dspy()])
@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_finds_its_tools(tools: Callable[[], Any], is_async: bool):
    """
    tool-search: Elsewhere the adapter declares a search and answers it
    tool-search: An agent's sentence names the loaded tools
    """
    with LoopbackProvider(last_call) as provider:
        lm: Any = lm_of(provider)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            agent = agent_of(tools())
            out: Any = asyncio.run(agent.acall(question="q")) if is_async else agent(question="q")
        bodies = [each.body for each in provider.received]
    assert (out.answer, out.termination_reason) == ("12", "submit")
    assert grows(bodies)
    assert not any(map(unpaired, bodies))
    system = bodies[0]["messages"][0]["content"]
    assert "The available tools are: `now`, `submit`, and those that a search finds." in system
    assert "/messages/0/content" in {change.where for change in lm.history[0]["changes"]}


@pytest.mark.parametrize(("wire", "model"), HOSTED)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_provider_s_search_comes_with_the_flags(wire: str, model: str, engine: str):
    """tool-search: The provider's search is used where the model has one."""
    flagged = {"name": "a", "parameters": {"type": "object"}, "defer_loading": True}
    asked = ask(DONE, tools=[flagged, {"name": "b"}], wire=wire, engine=engine, model=model)
    tools = asked.bodies[0]["tools"]
    assert [str(tool.get("type")).startswith("tool_search") for tool in tools].count(True) == 1
    assert json.dumps(tools).count('"defer_loading": true') == 1
    assert ("/tools", "lowered") in {change[:2] for change in asked.changes}


@pytest.mark.parametrize(("wire", "model"), LATE)
def test_what_a_search_of_the_user_s_finds_joins(wire: str, model: str):
    """
    tool-search: A search of the user's is used with every provider
    tool-search: The prompt keeps its beginning
    """
    asked: list[Any] = []

    async def search(query: str, tools: ToolDecls) -> Iterator[str]:
        asked.append((query, [decl.name for decl in tools]))
        return iter(["pay_supplier"])

    how: Json = {"wire": wire, "model": model, "tools": few(search=search), "is_async": True}
    pay = Call("pay_supplier", {"iban": "x", "eur": 1})
    one = ask(Answer(calls=[searching("xyzzy")]), Answer(calls=[pay]), **how)
    assert asked == [("xyzzy", ["find_invoice", "pay_supplier"])]
    assert called(one) == [("pay_supplier", {"iban": "x", "eur": 1})]
    assert "bank transfer" in json.dumps(rows(one.bodies[1]))
    event = {"question": "Hm?", "results": ToolResults.of(one.out.calls, ["ok"]), "answer": "Done."}
    two = ask(DONE, **how, history=history(event, saved=True), question="And?")
    assert grows([*one.bodies, *two.bodies])


def broken(query: str, tools: object) -> Any:
    raise RuntimeError("db down")


async def later(query: str, tools: object) -> list[str]:
    return ["now"]


@pytest.mark.parametrize(
    ("search", "code", "told"),
    [
        (broken, "search_failed", "the search for 'find an invoice' failed: RuntimeError('db down')"),
        (later, "async_search", "'find an invoice' has to be awaited"),
        (naming("now", whole=True), "invalid_search", "got 'now'"),
        (naming(7), "invalid_search", "got 7"),
        (naming("nope"), "unknown_tool", "'nope'"),
    ],
)
def test_a_search_that_fails_is_an_error(search: Any, code: str, told: str):
    """tool-search: A search of the user's that fails is an error."""
    for program in (None, agent_of(few(search=search))):
        inputs: Json = {"tools": few(search=search)} if program is None else {}
        with LoopbackProvider([Answer(calls=[searching()])]) as provider:
            adapter = sigadapt.ChatAdapter(tool_calling="native")
            with dspy.context(lm=lm_of(provider), adapter=adapter), pytest.raises(InvalidToolDecl) as caught:
                (program or dspy.Predict(Talk))(question="Hm?", **inputs)
        assert (caught.value.code, told in str(caught.value)) == (code, True)


@pytest.mark.parametrize(("option", "value"), [("search", 7), ("max_searches", 0), ("max_searches", True)])
def test_an_option_of_deferred_is_checked(option: str, value: Any):
    """tool-search: A search of the user's that fails is an error."""
    with pytest.raises(InvalidOption) as caught:
        few(**{option: value})
    assert caught.value.field == option


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_name_that_the_search_needs_is_refused(wire: str):
    """tool-search: A tool with the name of the search is refused."""
    for name in (SEARCH, CALL):
        with pytest.raises(InvalidToolDecl) as caught:
            ask(DONE, tools=[few(), {"name": name}], wire=wire)
        assert (caught.value.code, caught.value.tool) == ("reserved_name", name)
        assert ask(DONE, tools=[{"name": name}], wire=wire).out.answer == "Done.", "where nothing is deferred"


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_tool_that_is_chosen_is_shown(wire: str):
    """tool-search: A tool that the tool choice names is shown."""
    asked = ask(
        Answer(calls=[Call("find_invoice", {"id": "7"})]), wire=wire, options={"tool_choice": "find_invoice"}
    )
    assert called(asked) == [("find_invoice", {"id": "7"})]
    tools: list[Json] = asked.bodies[0]["tools"]
    [tool] = [
        each for each in tools if "find_invoice" in (each.get("name"), each.get("function", {}).get("name"))
    ]
    assert "defer_loading" not in tool
    assert "'find_invoice'" in asked.changes[0].why


@pytest.mark.parametrize(
    ("arguments", "good", "bad"),
    [
        ('{"name": "now"}', ("now", NOTHING), None),
        ('{"name": "find_invoice", "arguments": {"id": "7"}}', ("find_invoice", {"id": "7"}), None),
        ('{"name": "find_invoice", "arguments": {"id": 7}}', None, ("find_invoice", "schema_mismatch")),
        ('{"name": "find_invoice"}', None, ("find_invoice", "schema_mismatch")),
        ('{"name": "find_invoice", "id": "7"}', None, ("find_invoice", "schema_mismatch")),
        ('{"name": "find_invoice", "arguments": null}', None, ("find_invoice", "not_an_object")),
        ('{"name": "drop_table", "arguments": {}}', None, ("drop_table", "unknown_tool")),
        ('{"name": "search_tools", "arguments": {}}', None, ("search_tools", "unknown_tool")),
        ('{"name": 7, "arguments": {}}', None, ("call_tool", "missing_name")),
        ('{"arguments": {}}', None, ("call_tool", "missing_name")),
        ("[1]", None, ("call_tool", "not_an_object")),
        ('{"name": "find_invoice", "arguments"', None, ("call_tool", "invalid_json")),
    ],
)
def test_a_call_through_is_judged(arguments: str, good: Any, bad: Any):
    """tool-search: A call through call_tool is one of the tool named."""
    asked = ask(Answer(calls=[Call(CALL, arguments)]))
    assert called(asked) == ([good] if good else [])
    assert [(call.name, call.code) for call in asked.out.calls.invalid] == ([bad] if bad else [])
    results = ToolResults.of(asked.out.calls, ["ok"] if good else [])
    [body] = ask(DONE, results=results).bodies
    assert not unpaired(body)
    assert named(body) == [CALL]


@settings(max_examples=share(30), deadline=None)
@given(st.dictionaries(st.text(), json_values, max_size=3), st.sampled_from(INDENTS), st.booleans())
def test_what_was_called_through_goes_back_as_it_came(args: Json, indent: int | None, is_ascii: bool):
    """tool-search: The prompt keeps its beginning."""
    text = json.dumps({"name": "any", "arguments": args}, indent=indent, ensure_ascii=is_ascii)
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    tools = Toolset("t", [{"name": "any", "parameters": {"type": "object"}}]).deferred()
    asked = ask(Answer(calls=[Call(CALL, text)]), tools=tools)
    calls = ToolCalls.model_validate_json(asked.out.calls.model_dump_json())
    results = ToolResults.of(calls, ["ok"] * len(calls))
    [body] = ask(DONE, tools=tools, results=results).bodies
    if calls:
        assert [
            call["function"]["arguments"] for row in rows(body) for call in row.get("tool_calls", ())
        ] == [text]


def test_a_hidden_tool_is_called_directly():
    """tool-search: A hidden tool that is called directly is called."""
    asked = ask(Answer(calls=[Call("find_invoice", {"id": "7"})]))
    assert called(asked) == [("find_invoice", {"id": "7"})]
    assert len(asked.bodies) == 1


def test_custom_tools_are_found_and_called():
    """tool-search: A call through call_tool is one of the tool named."""
    tools = Toolset("t", [{"type": "custom", "name": "run", "description": "Run code."}]).deferred()
    asked = ask(Answer(calls=[searching("code")]), Answer(calls=[routed("run", input="1 + 1")]), tools=tools)
    assert [(call.name, call.arguments, call.is_custom) for call in asked.out.calls] == [
        ("run", "1 + 1", True)
    ]
    [body] = ask(DONE, tools=tools, results=ToolResults.of(asked.out.calls, ["2"])).bodies
    assert named(body) == [SEARCH, CALL]


@pytest.mark.parametrize(("wire", "engine", "model"), WIRES)
@pytest.mark.parametrize("mode", ["native", "prompted"])
def test_a_run_tells_the_call_alone(wire: str, engine: str, model: str | None, mode: Any):
    """tool-search: Calls are told in a stream, searches are not."""
    said = (searching(), routed())
    script = [
        Answer(calls=[call])
        if mode == "native"
        else Answer(
            text=f"<tool_call>\n{json.dumps({'name': call.name, 'arguments': call.arguments})}\n</tool_call>"
        )
        for call in said
    ]
    with LoopbackProvider(script) as provider:
        lm = lm_of(provider, wire, engine, **({"model": model} if model else {}))
        adapter = sigadapt.ChatAdapter(tool_calling=mode, on_invalid="keep")
        with dspy.context(lm=lm, adapter=adapter):
            events = list(sigadapt.stream_sync(dspy.Predict(Talk), question="q", tools=few()))
    kinds = [type(event).__name__ for event in events]
    assert kinds == [kind for kind in kinds if kind in ("CallReady", "Used", "Ended")]
    [ready] = [event for event in events if isinstance(event, sigadapt.events.CallReady)]
    assert (ready.call.name, ready.call.arguments) == ("find_invoice", '{"id":"7"}')


def test_a_search_and_a_bad_call_are_asked_again():
    """tool-search: A search beside a call is answered with its results."""
    asked = ask(
        Answer(calls=[searching()]),
        Answer(calls=[routed(id=7), Call("now", {}), searching("pay")]),
        Answer(calls=[searching("supplier")]),
        Answer(calls=[routed()]),
        options={"on_invalid": "reask"},
    )
    assert called(asked) == [("now", {}), ("find_invoice", {"id": "7"})]
    assert grows(asked.bodies)
    [body] = ask(DONE, results=ToolResults.of(asked.out.calls, ["a", "b"])).bodies
    assert not any(map(unpaired, [*asked.bodies, body]))
    assert named(body) == [SEARCH, "now", SEARCH, SEARCH, CALL]


def test_searches_before_words_are_replayed():
    """tool-search: Searches before an answer in words are kept."""
    asked = ask(Answer(calls=[searching("qq zz")]), DONE)
    assert asked.out.answer == "Done."
    event = {"question": "Hm?", "calls": asked.out.calls, "answer": "Done."}
    for saved in (False, True):
        then = ask(DONE, history=history(event, saved=saved), question="And?")
        assert grows([*asked.bodies, *then.bodies])
        assert "No tool fits" in json.dumps(rows(then.bodies[0]))


def test_a_client_cannot_write_searches():
    """tool-search: A conversation with searches moves to another route."""
    own = ask(Answer(calls=[searching()]), Answer(calls=[routed()]))
    event = {"question": "q", "results": ToolResults.of(own.out.calls, ["12"]), "answer": "x"}
    kept = history(event)
    marks = sign(kept, "s" * 32)
    clean = untrusted_history(kept.model_dump_json(), Talk, secret="s" * 32, signatures=marks)
    [body] = ask(DONE, history=clean, question="?").bodies
    assert (named(body), unpaired(body)) == ([CALL], [])


def endless(r: Received) -> Answer:
    return Answer(calls=[searching(f"invoice {r.number}")])


@pytest.mark.parametrize("most", [1, 3])
def test_a_model_that_searches_for_ever_is_stopped(most: int):
    """tool-search: Searches are bounded."""
    with LoopbackProvider(endless) as provider:
        adapter = sigadapt.ChatAdapter(tool_calling="native")
        with dspy.context(lm=lm_of(provider), adapter=adapter), pytest.raises(UnusableAnswer) as caught:
            dspy.Predict(Talk)(question="q", tools=few(max_searches=most))
        told = [
            [row["content"] for row in rows(each.body) if row["role"] == "tool"] for each in provider.received
        ]
    assert [len(each) for each in told] == list(range(most + 2))
    assert ["no more searches" in text for text in told[-1]] == [False] * most + [True]
    assert (caught.value.code, "max_searches" in (caught.value.fix or "")) == ("empty", True)


def test_each_search_is_a_paid_request():
    """tool-search: Elsewhere the adapter declares a search and answers it."""
    with LoopbackProvider([Answer(calls=[searching()]), Answer(calls=[routed()])]) as provider:
        adapter = sigadapt.ChatAdapter(tool_calling="native")
        with dspy.context(lm=lm_of(provider), adapter=adapter, track_usage=True):
            out: Any = dspy.Predict(Talk)(question="q", tools=few())
    [usage] = out.get_lm_usage().values()
    assert usage["total_tokens"] == 30


def test_a_tool_that_asks_first_is_found_and_waits():
    """tool-search: A call through call_tool is one of the tool named."""
    pay = ToolDecl.of(pay_supplier, requires_confirmation=True)
    tools = Toolset("erp", [find_invoice, pay]).deferred()
    through = routed("pay_supplier", iban="x", eur=1)
    script = [
        Answer(calls=[searching("pay")]),
        Answer(calls=[through]),
        Answer(calls=[Call("submit", {"answer": "ok"})]),
    ]
    with LoopbackProvider(script) as provider:
        with dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter(confirm="raise")):
            agent = agent_of(tools)
            with pytest.raises(sigadapt.InputNeeded) as caught:
                agent(question="q")
            saved_wait = sigadapt.InputNeeded.model_validate_json(caught.value.model_dump_json())
            history = saved_wait.resume(tools, {saved_wait.requests[0].id: True})
            out: Any = agent(history=history)
        bodies = [each.body for each in provider.received]
    assert (out.answer, grows(bodies)) == ("ok", True)
    assert "paid 1 EUR to x" in json.dumps(bodies[-1])


def test_the_same_tools_are_deferred_once():
    """toolsets: Deferred tools come with a search."""
    tools = few()
    assert tools.resolve() is tools.resolve()
    names = [{"name": "a"}]

    def source(context: RequestContext) -> list[Json]:
        return list(names)

    changing = Toolset("t", source).deferred()
    assert [decl.name for decl in changing.resolve()] == ["a"]
    names.append({"name": "b"})
    assert [decl.name for decl in changing.resolve()] == ["a", "b"]


def test_a_change_says_where_a_declared_tool_stands():
    """tool-search: Searches are on record."""
    flagged = {"name": "a b", "parameters": {"type": "object"}, "defer_loading": True}
    shown = {"name": "c d", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    asked = ask(DONE, tools=[flagged, shown, {"type": "tool_search"}])
    assert {change[:2] for change in asked.changes} == {
        ("/tools", "lowered"),
        ("/tools/1/cache_control", "dropped"),
        ("/tools/1/function/name", "renamed"),
        ("/tools/2", "dropped"),
    }
