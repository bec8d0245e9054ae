"""Every cell of `combinations.py`: the tool runs once, the model reads its value once, the answer comes."""

import asyncio
import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, cast

import combinations as grid
import dspy
import pytest
from support import IS_DSPY_3_5, lm_of

import sigadapt
from sigadapt import InputNeeded, ToolDecl, ToolDecls, Toolset
from sigadapt.testing import LoopbackProvider

CELLS = grid.cells()
MORE = [cell for cell in grid.cells(every_kind_everywhere=True) if cell not in CELLS]


def see_map(city: str) -> str:
    """See a map."""
    return f"A map of {city}."


class Trial:
    """One run of a cell, and what it left."""

    def __init__(self, cell: grid.Cell) -> None:
        self.cell, self.kind = cell, grid.KINDS[cell.kind]
        self.ran = grid.Ran()
        self.asked: list[tuple[str, Any]] = []
        self.before_decision: list[tuple[str, int]] | None = None
        self.runs = (0, 1) if cell.way == "threads" else (0,)

    def tools(self, source: Any) -> Any:
        """The tools as the user of this cell writes them."""
        made = self.kind.make(source)
        toolset = made if isinstance(made, Toolset) else Toolset("mine", made)
        if self.cell.extra == "deferred":
            return Toolset("all", [toolset, see_map]).deferred()
        if self.cell.extra == "prefixed":
            return toolset.prefixed("hotel_")
        if self.cell.extra == "hooks":
            return toolset.with_hooks(grid.Boxes(), grid.Unboxes())
        if self.cell.extra in ("ask", "async ask", "wait"):
            return toolset.prepared(lambda _, decls: self._guarded(decls))
        return toolset

    def _guarded(self, decls: ToolDecls) -> ToolDecls:
        marked = ToolDecls([ToolDecl.of(decl, requires_confirmation=True) for decl in decls])
        if self.cell.extra == "wait":
            return marked

        def ask(name: str, args: dict[str, Any], hint: str) -> bool:
            self.asked.append((name, dict(args)))
            return True

        async def later(name: str, args: dict[str, Any], hint: str) -> bool:
            await asyncio.sleep(0)
            return ask(name, args, hint)

        return marked.confirmed_by(later if self.cell.extra == "async ask" else ask)

    def given(self, tools: Toolset, decls: ToolDecls) -> Any:
        """What the program gets: a toolset where it takes one, else its tools."""
        takes_toolset = self.cell.home == "run" and (
            not self.kind.needs_await or self.cell.way in ("acall", "stream")
        )
        return tools if takes_toolset else decls

    def play(self) -> list[Any]:
        """Run the cell, and return the predictions."""
        name = "hotel_book" if self.cell.extra == "prefixed" else "book"
        self.model = grid.Model(self.cell, name)
        adapter = sigadapt.ChatAdapter(confirm="raise" if self.cell.extra == "wait" else None)
        with LoopbackProvider(self.model) as provider:
            self.lm = lm_of(provider, self.cell.wire, self.cell.engine)
            with dspy.context(lm=self.lm, adapter=adapter):
                if self.cell.way in grid.IN_A_LOOP:
                    return asyncio.run(self._in_a_loop())
                tools = self.tools(self.ran)
                given = self.given(tools, asyncio.run(tools.aresolve()))
                return self._outside(given, grid.program_of(self.cell, given))

    async def _in_a_loop(self) -> list[Any]:
        if not self.kind.has_session:
            return await self._with_tools(self.tools(self.ran))
        async with grid.session_of(self.ran) as session:
            return await self._with_tools(self.tools(session))

    async def _with_tools(self, tools: Toolset) -> list[Any]:
        given = self.given(tools, await tools.aresolve())
        program, inputs = grid.program_of(self.cell, given), grid.inputs_of(self.cell, 0)
        try:
            return [await self._awaited(program, inputs)]
        except InputNeeded as error:
            history = await error.aresume(given, self._yes(error))
            return [await self._awaited(program, {"history": history})]

    async def _awaited(self, program: Any, inputs: dict[str, Any]) -> Any:
        if self.cell.way == "acall":
            return await program.acall(**inputs)
        if self.cell.way == "asyncify":
            return await cast("Any", dspy).asyncify(program)(**inputs)
        if self.cell.way == "a notebook":
            return program(**inputs)
        events = [event async for event in sigadapt.stream(program, **inputs)]
        return cast("Any", events[-1]).prediction

    def _outside(self, given: Any, program: Any) -> list[Any]:
        def one(run: int) -> Any:
            try:
                return self._called(program, grid.inputs_of(self.cell, run))
            except InputNeeded as error:
                return self._called(program, {"history": error.resume(given, self._yes(error))})

        if self.cell.way != "threads":
            return [one(0)]
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(copy_context().run, one, run) for run in self.runs]
            return [future.result() for future in futures]

    def _called(self, program: Any, inputs: dict[str, Any]) -> Any:
        if self.cell.way != "stream_sync":
            return program(**inputs)
        *_, last = sigadapt.stream_sync(program, **inputs)
        return cast("Any", last).prediction

    def _yes(self, error: InputNeeded) -> dict[str, bool]:
        self.before_decision = [*self.ran]
        return {request.id: True for request in error.requests}


@pytest.mark.parametrize("cell", CELLS, ids=map(str, CELLS))
def test_a_combination_works(cell: grid.Cell) -> None:
    """combinations: Every pair of what users combine works."""
    check(cell)


@pytest.mark.nightly
@pytest.mark.parametrize("cell", MORE, ids=map(str, MORE))
def test_every_kind_works_everywhere(cell: grid.Cell) -> None:
    """combinations: Every pair of what users combine works."""
    check(cell)


def check(cell: grid.Cell) -> None:
    if cell.home == "ReAct" and IS_DSPY_3_5:
        pytest.skip("DSPy 3.5 has the older ReAct no more")
    trial = Trial(cell)
    outs = trial.play()
    stays = [grid.STAYS[run] for run in trial.runs]
    assert sorted(trial.ran) == sorted(stays)
    for run, out in zip(trial.runs, outs, strict=True):
        assert out.answer.startswith(grid.answer_of(str(run)))
        last = json.dumps(trial.model.bodies[str(run)][-1])
        assert last.count(grid.booked(*grid.STAYS[run])) == 1
        for failure in ("Error", "Traceback", "coroutine", '"is_error": true'):
            assert failure not in last
    if cell.extra in ("ask", "async ask"):
        name = trial.model.name
        expected = [(name, grid.arguments(trial.kind, run)) for run in trial.runs]
        assert sorted(map(repr, trial.asked)) == sorted(map(repr, expected))
    if cell.extra == "wait":
        assert trial.before_decision == [] or cell.way == "threads"
    if cell.extra in ("image", "file"):
        data = grid.PNG if cell.extra == "image" else grid.PDF
        bodies = trial.model.bodies["0"]
        assert all(json.dumps(body).count(data) == 1 for body in bodies)


def test_every_pair_is_there() -> None:
    """combinations: Every pair of what users combine works."""
    for kind in grid.KINDS:
        for home in (*grid.AGENTS, "run", "execute"):
            assert any(cell[:2] == (kind, home) for cell in CELLS)
    assert len(CELLS) == len({*CELLS})


def test_a_rule_leaves_something_out() -> None:
    """A rule that no cell breaks is not needed."""
    every = (
        grid.Cell(*values)
        for values in itertools.product(
            grid.KINDS, grid.HOMES, grid.WAYS, grid.EXTRAS, grid.WIRES, grid.ENGINES
        )
    )
    broken: set[str] = set()
    for cell in every:
        broken |= {reason for reason, rule in grid.RULES.items() if rule(cell, grid.KINDS[cell.kind])}
    assert broken == {*grid.RULES}
