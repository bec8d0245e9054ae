"""What an MCP server asks in the middle of a call, as questions of that call, and the answers for the server.

The MCP SDK is not imported here: a session that asks has imported it.
"""

import json
from typing import Any

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json, cut, short_hash
from sigadapt.schemas.web_addresses import is_web_address
from sigadapt.signatures.tool_functions.stops import Need, QuestionReply
from sigadapt.signatures.tool_functions.tool_context import ToolContext
from sigadapt.signatures.tool_results.tool_output import loaded_mcp_types

_ELICITATION = "elicitation/create"
_VISITED = {"type": "boolean"}
"""The answer to a server that sends the person to an address: whether they have been there."""


# {"resultType": "input_required", "inputRequests": {"sure": {"method": "elicitation/create", "params":
#  {"mode": "form", "message": "Delete 3 rows?", "requestedSchema": {"type": "object", ...}}}},
#  "requestState": "..."}
# https://modelcontextprotocol.io/specification/draft/basic/utilities/mrtr
def needs_of(result: Any, tool: str) -> list[Need]:
    """Return what a server asks, each under the server's name for it.

    Raises:
        InvalidToolDecl: `nobody_to_ask`, for what a person cannot answer, such as a sample of a model, and
            for an address that no page may open.
    """
    needs: list[Need] = []
    for member, request in result.input_requests.items():
        if request.method != _ELICITATION:
            raise InvalidToolDecl(
                f"its server asks for {cut(request.method)}, which a person cannot answer",
                code="nobody_to_ask",
                tool=tool,
            )
        params: Json = request.params.model_dump(mode="json", by_alias=True, exclude_none=True)
        question = short_hash(json.dumps([result.request_state, member, params], sort_keys=True))
        address = params.get("url")
        if address is not None and not is_web_address(address):
            raise InvalidToolDecl(
                "its server asks a person to open what is no web address",
                code="nobody_to_ask",
                tool=tool,
                fix="Only `http` and `https` addresses are shown to a person.",
            )
        schema = _VISITED if address is not None else params.get("requestedSchema") or {}
        payload = None if address is None else {"url": address}
        needs.append(Need("answer", params["message"], schema, payload, question=question, member=member))
    return needs


def answers_for(context: ToolContext) -> Json:
    """Return what a server is sent with a call to go on with it; nothing if it did not ask yet."""
    server_round = context.server_round
    if server_round is None:
        return {}
    state, replies = server_round
    responses = {member: _result_of(reply) for member, reply in replies.items()}
    return {"input_responses": responses, "request_state": state}


def _result_of(reply: QuestionReply) -> Any:
    """Return an answer as the server reads it."""
    sdk = loaded_mcp_types()
    if reply.declined is not None:
        return sdk.ElicitResult(action="decline")
    if isinstance(reply.value, dict):
        return sdk.ElicitResult(action="accept", content=reply.value)
    return sdk.ElicitResult(action="accept" if reply.value is True else "cancel")
