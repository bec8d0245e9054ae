"""Tools that a provider runs itself, such as web search: they ride beside functions, exactly as written.

They are told from functions by what they hold, because every provider has its own and new ones come often:

 a. a `type` that is neither a function's nor one of JSON Schema's words, and nothing of a function beside it
    (OpenAI's Responses, Anthropic);
 b. nothing but keys that Gemini or Bedrock have for tools of their own (`sources/dicts.py`).

Nobody calls them here or there but the provider, so they have no name to choose by and nothing to validate.
"""

from dataclasses import dataclass
from typing import TypeGuard, cast

from sigadapt.schemas.check import check_json
from sigadapt.schemas.json_values import Json, closest
from sigadapt.signatures.sources.dicts import PROVIDER_TOOL_KEYS

_NOT_NATIVE = {"function", "custom", "object", "array", "string", "number", "integer", "boolean", "null"}
_OF_FUNCTIONS = {"function", "toolSpec", "functionDeclarations", "function_declarations"} | {
    *("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")
}


@dataclass(frozen=True)
class NativeTool:
    """A tool that its provider runs.

    Args:
        spec: its entry in the provider's list of tools, kept as the same object.

    Raises:
        InvalidToolDecl: `invalid_schema` for what is no JSON.

    Example:
        >>> NativeTool({"type": "web_search", "search_context_size": "low"}).kind
        'web_search'
    """

    spec: Json

    def __post_init__(self) -> None:
        check_json(self.spec, tool=self.kind)

    @property
    def kind(self) -> str:
        """Its type, or the key that says what it is."""
        return str(self.spec.get("type") or next(iter(self.spec), ""))

    def to_openai(self) -> Json:
        """The entry verbatim, in a new dict."""
        return dict(self.spec)

    def __hash__(self) -> int:
        return hash(self.kind)

    def __str__(self) -> str:
        return f"<{self.kind}>"


def is_native(source: object) -> TypeGuard[Json]:
    """Whether a dict is a provider's own tool and no function.

    Example:
        >>> is_native({"type": "web_search_20250305", "name": "web_search"}), is_native({"googleSearch": {}})
        (True, True)
        >>> is_native({"type": "functoin", "name": "f"}), is_native({"name": "f"})
        (False, False)
    """
    if not isinstance(source, dict) or not source:
        return False
    known = cast("Json", source)
    kind = known.get("type")
    if kind is None:
        return known.keys() <= PROVIDER_TOOL_KEYS
    if not isinstance(kind, str) or kind in _NOT_NATIVE or not _OF_FUNCTIONS.isdisjoint(known):
        return False
    return closest(kind.lower(), _NOT_NATIVE) is None
