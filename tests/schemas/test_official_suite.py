"""Validation beside the official JSON Schema Test Suite, Draft 2020-12: every difference has its reason here.

The suite is in the source distribution of `jsonschema`, not in its wheel. `SIGADAPT_SCHEMA_SUITE` names that
archive, which `python3 tasks.py ci` fetches; without it there is nothing to compare with.
"""

import json
import os
import tarfile
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, cast

import pytest

from sigadapt import ToolDecl
from sigadapt.errors import InvalidToolDecl

Json = dict[str, Any]

ARCHIVE = os.environ.get("SIGADAPT_SCHEMA_SUITE", "")
FOLDER = "/json/tests/draft2020-12/"

FORMAT = "`format` is not asserted"
REMOTE = "nothing is fetched, and so a reference out of the document is refused"
VOCABULARY = "the metaschema is not fetched, and so what it leaves out of JSON Schema is not known"

REFUSED = {
    "defs.json": ("validate definition against metaschema",),
    "dynamicRef.json": (
        "$ref and $dynamicAnchor are independent of order - $defs first",
        "$ref and $dynamicAnchor are independent of order - $ref first",
        "$ref to $dynamicRef finds detached $dynamicAnchor",
        "strict-tree schema, guards against misspelled properties",
        "tests for implementation dynamic anchor and reference link",
    ),
    "optional/cross-draft.json": ("refs to historic drafts are processed as historic drafts",),
    "ref.json": ("remote ref, containing refs itself",),
}
"""Groups that are refused because of REMOTE, by file; all that are refused in `refRemote.json` are, too."""

JUDGED_OTHERWISE = {
    ("vocabulary.json", "no validation: invalid number, but it still validates"): VOCABULARY,
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not ARCHIVE, reason="SIGADAPT_SCHEMA_SUITE names no archive of the suite"),
]


class Group(NamedTuple):
    """A schema of the suite and the values that it is tried on."""

    file: str
    name: str
    schema: Any
    tests: list[dict[str, Any]]


@cache
def groups() -> list[Group]:
    return list(read_groups())


def read_groups() -> Iterator[Group]:
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            file = member.name.partition(FOLDER)[2]
            content = archive.extractfile(member) if file.endswith(".json") else None
            if content is not None:
                for group in json.load(content):
                    yield Group(file, group["description"], group["schema"], group["tests"])


def of_an_argument(schema: Any) -> dict[str, Any]:
    """The schema of a tool whose one argument is judged by a schema of the suite, a document in itself."""
    own = {"$id": "urn:sigadapt:case", **cast("Json", schema)} if isinstance(schema, dict) else schema
    return {"type": "object", "properties": {"value": own}, "required": ["value"]}


def test_values_are_judged_as_the_suite_says():
    """tool-call-outputs: The official test suite agrees."""
    otherwise: dict[tuple[str, str], str] = {}
    judged = 0
    for group in groups():
        try:
            decl = ToolDecl("f", parameters=of_an_argument(group.schema))
        except InvalidToolDecl:
            continue
        for test in group.tests:
            judged += 1
            fits = decl.flaw_of({"value": test["data"]}) is None
            if fits != test["valid"] and not is_of_a_format(group, fits=fits):
                otherwise[group.file, test["description"]] = group.name
    assert set(otherwise) == set(JUDGED_OTHERWISE)
    assert judged > 1_500


def refusal(group: Group) -> str | None:
    try:
        ToolDecl("f", parameters=of_an_argument(group.schema))
    except InvalidToolDecl as error:
        return error.code
    return None


def is_of_a_format(group: Group, *, fits: bool) -> bool:
    """Whether a difference has the reason FORMAT: a value that breaks only its format fits."""
    return group.file.startswith("optional/format") and "format" in json.dumps(group.schema) and fits


def test_schemas_are_refused_for_what_is_remote_alone():
    """tool-declarations: A remote reference is refused and never fetched."""
    refused: dict[str, set[str]] = {}
    for group in groups():
        code = refusal(group)
        if code is not None:
            assert code == "remote_ref", group
            refused.setdefault(group.file, set()).add(group.name)
    assert refused.pop("refRemote.json")
    assert refused == {file: set(names) for file, names in REFUSED.items()}
