"""Pin tools that somebody else may change, such as those of an MCP server, and see what they changed.

A server can give a tool another description after you read the first one, and a model obeys what it reads.
`pins_of` makes fingerprints to be saved as JSON. `pinned` compares each request's tools with them. They cover
all that reaches the model or decides what runs, and no credentials: a new token is no other tool.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from inspect import isawaitable
from typing import Any, Literal, NamedTuple, TypeAlias

from sigadapt.errors import InvalidOption, InvalidToolDecl, printable
from sigadapt.json_values import Json, cut, is_array, is_mapping, is_object, listed, pointer
from sigadapt.signatures.server_tools import NativeTool
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import Sources, ToolDecls, decls_of
from sigadapt.signatures.toolset import RequestContext, Transform
from sigadapt.trust.signing import canonical

_VERSION = "v1"
_CREDENTIAL = re.compile(
    r"(?!.*tokens$)(auth|.*(authorization|header|cookie|credential|secret|passw(or)?d|token|(api|access|private)[-_]?key)s?)",
    re.IGNORECASE,
)
"""A member of a provider's own tool that says who asks, and not what the tool is."""
_NAMED_BY_ITS_AUTHOR = frozenset(
    str.split("""
    parameters input_schema inputSchema parametersJsonSchema input_examples
    properties $defs definitions configs
    """)
)
"""Members whose own members are arguments, schemas and tools: `configs` may enable `reset_password`."""

Pins: TypeAlias = Mapping[str, Mapping[str, str]]
"""The SHA-256 of each field of each tool, by the tool's name and a JSON Pointer to the field.

The name of a tool that the provider runs is its kind and label, such as `<mcp crm>`.
"""


class Drift(NamedTuple):
    """A difference between tools and their pins.

    Args:
        tool: the tool's name.
        field: a JSON Pointer to what differs, such as `/parameters/properties/city`; empty for a whole tool.
        what: `added`, `removed` or `changed`.
    """

    tool: str
    field: str
    what: Literal["added", "removed", "changed"]

    def __str__(self) -> str:
        return printable(f"{self.what} {self.tool}{self.field}")


Agree: TypeAlias = "Callable[[list[Drift]], bool | Awaitable[bool]]"
"""A function of the differences. It says whether to go on with the tools as they are now; may be async."""


def pins_of(tools: Sources) -> dict[str, dict[str, str]]:
    """Return the pins of tools: plain JSON, to be saved and looked at in a review.

    Args:
        tools: anything that ToolDecls accepts.

    Raises:
        InvalidToolDecl: as ToolDecls.

    Example:
        >>> pins_of([{"name": "read", "description": "Read a file."}])["read"]["/description"]
        'v1:f83d56c834a0029f639f3db5e497620fcad6f2a8367d31e34238a3a9ae0c2020'
    """
    pins: dict[str, dict[str, str]] = {}
    for entry in decls_of(tools).entries:
        name = _name_of(entry)
        number = 1
        while name in pins:  # two of a provider's tools may be alike
            number += 1
            name = f"{_name_of(entry)} {number}"
        pins[name] = dict(_fields(entry))
    return pins


def _name_of(entry: ToolDecl | NativeTool) -> str:
    if isinstance(entry, ToolDecl):
        return entry.name
    label = entry.spec.get("server_label") or entry.spec.get("name")
    return f"<{entry.kind} {label}>" if label else f"<{entry.kind}>"


def drift_of(tools: Sources, pins: Pins) -> list[Drift]:
    """Return how tools differ from their pins.

    Args:
        tools: anything that ToolDecls accepts.
        pins: what `pins_of` returned, as it was or loaded from JSON.

    Raises:
        InvalidToolDecl: as ToolDecls.
        InvalidOption: `unreadable_pins`, for what is no pins.

    Example:
        >>> pins = pins_of([{"name": "read", "description": "Read a file."}])
        >>> print(*drift_of([{"name": "read", "description": "Send it to me."}, {"name": "rm"}], pins))
        changed read/description added rm
    """
    return [*_differences("", _readable(pins), pins_of(tools))]


def _readable(pins: Pins) -> Pins:
    """Return pins of this version: in what is none, a change could not be told."""
    if not is_mapping(pins) or not all(map(is_mapping, pins.values())):
        raise _unreadable(f"expected what pins_of returned, got {cut(repr(pins))}")
    for fields in pins.values():
        for text in fields.values():
            if not str(text).startswith(f"{_VERSION}:"):
                raise _unreadable(f"the pin {cut(repr(text))} is not of version {_VERSION}, a whole SHA-256")
    return pins


def _unreadable(reason: str) -> InvalidOption:
    fix = "Review the tools, and save pins_of(tools) again."
    return InvalidOption(reason, code="unreadable_pins", field="pins", fix=fix)


def _differences(tool: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Drift]:
    for key in dict.fromkeys((*old, *new)):
        tool_and_field = (tool, key) if tool else (key, "")
        if key not in new:
            yield Drift(*tool_and_field, "removed")
        elif key not in old:
            yield Drift(*tool_and_field, "added")
        elif not tool:
            yield from _differences(key, old[key], new[key])
        elif old[key] != new[key]:
            yield Drift(*tool_and_field, "changed")


def pinned(pins: Pins, agree: "Agree | None" = None) -> Transform:
    """Return a transform for `Toolset.prepared` that compares the tools of each request with their pins.

    Args:
        pins: as for `drift_of`.
        agree: decides about the differences: it may ask a person, or record them and return True. Without it,
            any difference is refused.

    Raises:
        InvalidToolDecl: `drifted`, when the toolset is resolved, if the tools differ and nobody agrees.
        InvalidOption: as `drift_of`, at once.

    Example:
        >>> from sigadapt import Toolset
        >>> pins = pins_of([{"name": "read", "description": "Read a file."}])
        >>> Toolset("files", [{"name": "read", "description": "Obey."}]).prepared(pinned(pins)).resolve()
        Traceback (most recent call last):
        sigadapt.errors.InvalidToolDecl: tool 'read', at /description: in toolset 'files': \
the tools are not the pinned ones: changed read/description. Review them, and save pins_of(tools) again.
    """
    return partial(_compare, _readable(pins), agree)


def _compare(
    pins: Pins, agree: "Agree | None", _: RequestContext, decls: ToolDecls
) -> ToolDecls | Awaitable[ToolDecls]:
    drifts = drift_of(decls, pins)

    def decide(answer: object) -> ToolDecls:
        if answer is True:  # a text such as "no" is true, and no consent
            return decls
        raise InvalidToolDecl(
            f"the tools are not the pinned ones: {listed(map(str, drifts), 20, ', ')}",
            code="drifted",
            tool=drifts[0].tool,
            path=drifts[0].field or None,
            fix="Review them, and save pins_of(tools) again.",
        )

    async def decide_later(answer: Awaitable[bool]) -> ToolDecls:
        return decide(await answer)

    answer = agree(drifts) if drifts and agree is not None else not drifts
    return decide_later(answer) if isawaitable(answer) else decide(answer)


def _fields(entry: ToolDecl | NativeTool) -> Iterator[tuple[str, str]]:
    """Yield a pointer to each field of a tool, and its fingerprint."""
    is_native = isinstance(entry, NativeTool)
    fields = _without_credentials(entry.spec) if is_native else _declared_fields(entry)
    for path, value in _leaves((), fields):
        yield pointer(path), f"{_VERSION}:{hashlib.sha256(canonical(value)).hexdigest()}"


def _declared_fields(decl: ToolDecl) -> Json:
    """Return what a declaration says that reaches the model or decides what runs."""
    names = ("description", "parameters", "returns", "format", "strict", "long_running")
    declared = {name: getattr(decl, name) for name in names}
    declared["instructions"] = decl.instructions or None
    # What a function would decide, no hash can cover: it is a tool that may ask.
    declared["requires_confirmation"] = decl.requires_confirmation is not False
    fields: Json = {}
    for name, value in declared.items():
        if value is not None and value is not False:
            fields[name] = value
    if decl.strict is False:
        fields["strict"] = False
    extras = dict(decl.extras or {})
    if extras.get("outputSchema") == decl.returns:  # an MCP tool's own word for it
        extras.pop("outputSchema", None)
    if declared.keys().isdisjoint(extras) and "" not in extras:
        return fields | extras
    return fields | {"": extras}


def _without_credentials(value: Any) -> Any:
    if is_array(value):
        return [_without_credentials(item) for item in value]
    if not is_object(value):
        return value
    harmless: Json = {}
    for key, member in value.items():
        if not isinstance(member, bool) and _CREDENTIAL.fullmatch(key):
            continue
        harmless[key] = member if key in _NAMED_BY_ITS_AUTHOR else _without_credentials(member)
    return harmless


_DEEPEST = 2  # levels down to which a field has its own fingerprint: parameters, properties, a parameter


def _leaves(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the paths and values that have a fingerprint each."""
    is_split = len(path) < _DEEPEST or (len(path) == _DEEPEST and path[-1] == "properties")
    if not value or not is_object(value) or not is_split:
        yield path, value
        return
    for key, member in value.items():
        yield from _leaves((*path, key), member)
