"""Every route of the table is reached by a `dspy.LM` of its kind; nothing is asked, so nothing is sent."""

from typing import Any

import dspy
import pytest
from internals import OWN_ENGINE, ROUTES, Route, route_of
from tables import table

# A model that leads to each route, by the route's dialect, its door, and what else tells it from others.
REACHED: list[tuple[tuple[str, str, str], dict[str, Any]]] = table(__file__, "REACHED")


def is_told_by(route: Route, told: tuple[str, str, str]) -> bool:
    dialect, door, mark = told
    marks = {route.models.server} if route.client == "lm15" else route.models.prefixes or {""}
    return (route.wire, route.client) == (dialect, door) and mark in marks


@pytest.mark.parametrize(
    ("told", "given"), REACHED, ids=["-".join(map(str, given.values())) for _, given in REACHED]
)
def test_a_model_leads_to_its_route(told: tuple[str, str, str], given: dict[str, Any]) -> None:
    """request-shaping: Each wire gets its own form."""
    (expected,) = [route for route in ROUTES if is_told_by(route, told)]
    route = route_of(dspy.LM(**given), {})
    assert route._replace(endpoint="", templated=False, ids=expected.ids) == expected


def test_every_prefix_is_reached() -> None:
    given = {options["model"].partition("/")[0] for _, options in REACHED if "engine" in options}
    wanted = {prefix for route in ROUTES for prefix in route.models.prefixes}
    assert wanted - given - {"bedrock"} == set()


class Engine:
    """An engine of the user's own, which is not asked here."""

    def complete(self, request: Any) -> Any:
        raise AssertionError


def test_an_engine_of_ones_own_is_a_route_of_its_own() -> None:
    """request-shaping: An engine of the user's own gets the request as it is."""
    engine: Any = Engine()
    assert route_of(dspy.LM("openai/x", engine=engine), {}) is OWN_ENGINE
