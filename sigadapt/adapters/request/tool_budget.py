"""The budget of a request's tools, in bytes of the JSON that the model reads (`max_tool_bytes`).

A deferred tool does not count until it joins. Of a namespace, its name and its description count.
"""

from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.errors import InvalidToolDecl
from sigadapt.providers.wire.namespaces import in_namespaces
from sigadapt.providers.wire.values import name_in
from sigadapt.schemas.json_values import compact, listed
from sigadapt.signatures.tool_decls import made_once

_MOST_NAMES = 5
_FIX = (
    "Choose tools for each request with Toolset.retrieved, defer them with Toolset.deferred, shorten the "
    "largest, or raise max_tool_bytes."
)


def refuse_large(record: RequestRecord, most: int, field: str) -> None:
    """Refuse a request whose tools are larger than a budget, and name the largest."""
    route = record.route
    tools = record.request.get("tools") or record.offered_tools or []

    def bytes_by_name() -> dict[str, int]:
        read = [tool for tool in tools if not tool.get("defer_loading")]
        if route.search and route.search.namespaces and len(read) < len(tools):
            spaces = [tool["namespace"] for tool in in_namespaces(tools) if "namespace" in tool]
            read += {space["name"]: space for space in spaces}.values()
        return {str(name_in(tool) or tool.get("type")): len(compact(tool).encode()) for tool in read}

    sizes = made_once(tools, "sizes", bytes_by_name)
    total = sum(sizes.values())
    if total <= most:
        return
    names = {alias: name for name, alias in record.names.items()}
    largest = sorted(sizes, key=lambda name: -sizes[name])
    lines = (f"{names.get(name, name)!r} {sizes[name]:,}" for name in largest)
    has = "tool has" if len(sizes) == 1 else "tools have"
    raise InvalidToolDecl(
        f"the request's {len(sizes):,} {has} {total:,} bytes, and max_tool_bytes is {most:,}. The largest: "
        f"{listed(lines, _MOST_NAMES, ', ')}",
        code="over_tool_budget",
        field=field,
        tool=names.get(largest[0], largest[0]),
        fix=_FIX,
    )
