"""Make the Requests that go on with the same conversation: after bad calls, and after a pause."""

from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.adapters.request.messages import assistant_message, result_message, search_message
from sigadapt.providers import BY_WIRE
from sigadapt.providers.route import Route
from sigadapt.providers.wire.reading import Reading
from sigadapt.providers.wire.values import in_paragraphs, join_texts
from sigadapt.signatures.calls import SearchRecord, ToolCall, ToolCalls, Turn
from sigadapt.signatures.tool_results.pairing import failed_result
from sigadapt.signatures.tool_results.tool_result import ToolResult

_ACCEPTED = "This call is accepted. Do not repeat it."


def asking_again(request: Request, calls: ToolCalls) -> Request:
    """Return the Request that asks again after an answer with bad calls (one bad call)."""
    # The turn is sent back unchanged. Arguments that are no object, which lm15 and some providers refuse, are
    # quoted in the call's failed result.
    every = sorted([*calls.in_order(), *calls.turn.searches], key=lambda call: call.index)
    rows = [assistant_message(every, calls.turn, calls.text)]
    for call in every:
        if isinstance(call, SearchRecord):
            rows.append(search_message(call))
        elif isinstance(call, ToolCall):
            rows.append(result_message(ToolResult(call_id=call.id, name=call.name, value=_ACCEPTED)))
        else:
            rows.append(result_message(failed_result(call)))
    return {**request, "messages": [*request["messages"], *rows]}


# Anthropic pauses a long turn of its own tools with the stop reason `pause_turn`, and goes on with it when it
# gets the turn back as it came, with the same tools.
# Source: https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons#pause_turn


def can_go_on(reading: Reading, route: Route) -> bool:
    """Return whether all of a paused turn is at hand to be sent back."""
    state = reading.state
    is_whole = state is not None and state["dialect"] == route.wire and not route.as_chat
    return is_whole and not reading.calls


def with_paused_turn(request: Request, reading: Reading) -> Request:
    """Return the request with the paused turn behind it."""
    turn = Turn(text=reading.text, reasoning=reading.reasoning, state=reading.state)
    return {**request, "messages": [*request["messages"], assistant_message((), turn, turn.text)]}


def change_of_pause(request: Request, count: int) -> Change:
    """Return the record of a turn's pause, the first or a later one, in a request that had not seen it."""
    why = f"the provider paused its turn; it is sent back as it came ({count})"
    return Change(f"/messages/{len(request['messages'])}", "lowered", why)


def whole_turn(before: Reading, latest: Reading) -> Reading:
    """Return the Reading of the whole turn: of what was paused, and of what came when it went on."""
    pauses = before.state or {}
    provider = BY_WIRE[pauses["dialect"]]
    rows = latest.state or {"blocks": provider.plain_blocks(latest.text, len(latest.calls))}
    blocks = [*pauses["blocks"], *rows["blocks"]]
    kinds = {provider.part_of(block).kind for block in (pauses["blocks"][-1], *rows["blocks"][:1])}
    # A None begins a paragraph: the provider's own tools ran between the two texts.
    texts = [before.text, latest.text] if kinds == {"text"} else [before.text, None, latest.text]
    return latest._replace(
        work=provider.work(blocks),
        text=in_paragraphs(texts),
        reasoning=join_texts([before.reasoning, latest.reasoning]),
        state={**pauses, **rows, "blocks": blocks},
    )
