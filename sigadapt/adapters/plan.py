"""The first step of the flow (Signature -> Plan): which fields are tool fields, and what is left for text.

A Plan is made once per signature class and cached weakly. Taking a field out of a signature builds a new
pydantic model, which costs more time than the rest of a call.
"""

import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin

import dspy
import pydantic
from dspy import BaseLM
from dspy.adapters.types.base_type import Type
from dspy.adapters.types.citation import Citations
from dspy.adapters.types.reasoning import Reasoning
from dspy.signatures.signature import Signature
from pydantic.fields import FieldInfo

from sigadapt.dspy_boundary import contract
from sigadapt.errors import InvalidSignature
from sigadapt.schemas.caches import WeakCache
from sigadapt.signatures.calls import ToolCall, ToolCalls
from sigadapt.signatures.server_tools import Files, Sources
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.results import ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult

_T = TypeVar("_T")
_TOOLS = (ToolDecls, dspy.Tool, list[dspy.Tool])
_CALLS = (ToolCalls, dspy.ToolCalls)
_WORK = ((Sources, "sources"), (Files, "files"))


class HistoryFields(NamedTuple):
    """The names of the fields that earlier turns are in; None for a field that the signature lacks."""

    history: str | None
    results: str | None  # the ToolResults field, which holds the results of the last turn
    calls: str | None  # the calls field, by whose name events and examples hold the calls of their turn


class Plan(NamedTuple):
    """What the flow needs to know about a signature with tool fields."""

    tools: str  # the input field that holds the declarations
    tools_required: bool  # whether a call without tools is an error
    calls: str  # the output field that receives the calls
    calls_required: bool  # whether an answer without a call is an error
    defers_bad_calls: bool  # whether bad calls are left to the loop that the field belongs to (one bad call)
    empty_calls: bool  # whether no call in a text is an empty ToolCalls, as in DSPy's text mode
    missing_calls: Callable[[], Any] | None  # the value without a call, if it is a default or DSPy's None
    history_fields: HistoryFields
    outputs: tuple[str, ...]  # all output fields, in the signature's order
    others: tuple[str, ...]  # the output fields of the model beside the calls
    texts: tuple[str, ...]  # the output fields that the model writes as text
    has_defaults: bool  # whether any of these has a default
    native_fields: tuple[tuple[str, Any], ...]  # outputs of a DSPy type, which the provider may fill
    work: tuple[tuple[str, str], ...]  # outputs for what server tools did, and the `Choice`'s name for it
    text_signature: type[Signature]  # without the tool fields, for the prompt and for parsing text


class PromptCache:
    """What is worked out once for a text signature. It must not refer to it, or both would live forever."""

    def __init__(self, history_fields: HistoryFields | None = None, notes: str = "") -> None:
        self.history_fields = history_fields  # None for a signature that no Plan has
        self.notes = notes  # what the author says of the tool fields, which it lacks
        self.prompts: dict[tuple[Any, ...], Any] = {}
        """What adapters say of it, by the methods that say it (`request/prompt.py`)."""
        self._values: dict[str, Any] = {}

    def once(self, key: str, work_out: Callable[[], _T]) -> _T:
        """Return the value of a key, worked out the first time."""
        if key not in self._values:
            self._values[key] = work_out()
        return self._values[key]


class _PlanEntry(NamedTuple):
    """The Plan of a signature, and what it follows from, which can be changed in place."""

    plan: Plan | None
    follows_from: tuple[Any, ...]  # its instructions and fields
    validators: Sequence[tuple[type[pydantic.BaseModel], object]]  # a rebuilt model has another


_PLANS: WeakCache[_PlanEntry] = WeakCache()

_CACHE = "__sigadapt_prompt_cache__"  # the attribute of a text signature that holds its PromptCache


def plan_of(signature: type[Signature]) -> Plan | None:
    """Return the signature's Plan; None for a signature without tool fields (opt-in)."""
    fields: dict[str, Any] = signature.model_fields
    follows_from: tuple[Any, ...] = (
        signature.__doc__,
        *[
            (name, field.annotation, field.default, *(field.json_schema_extra or {}).values())
            for name, field in fields.items()
        ],
    )
    entry = _PLANS.get(signature)
    if entry is not None and entry.follows_from == follows_from and not _is_rebuilt(entry):
        return entry.plan
    plan = _compile(signature)
    models = [model for field in fields.values() for model in _models_in(field.annotation)]
    validators = [(model, model.__pydantic_validator__) for model in models]
    _PLANS.put(signature, _PlanEntry(plan, follows_from, validators))
    return plan


def _is_rebuilt(entry: _PlanEntry) -> bool:
    return any(model.__pydantic_validator__ is not validator for model, validator in entry.validators)


def _models_in(annotation: Any) -> Iterator[type[pydantic.BaseModel]]:
    """Yield the models in a type."""
    for part in get_args(annotation):
        yield from _models_in(part)
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        yield annotation


def prompt_cache(signature: type[Signature]) -> PromptCache:
    """Return what is worked out once for a text signature; an empty PromptCache for any other."""
    return vars(signature).get(_CACHE) or PromptCache()


def _compile(signature: type[Signature]) -> Plan | None:
    _refuse_misplaced(signature)
    tools = [name for name, field in signature.input_fields.items() if _is_one_of(field, _TOOLS)]
    calls = [name for name, field in signature.output_fields.items() if _is_one_of(field, _CALLS)]
    if not calls and not any(_is_one_of(signature.input_fields[name], (ToolDecls,)) for name in tools):
        _refuse_unfilled(signature)
        return None
    _refuse_misfits(signature.__name__, tools, calls)
    history_fields = HistoryFields(_sole(signature, dspy.History), _sole(signature, ToolResults), calls[0])
    work = _work_fields(signature)
    text_signature = signature
    for name in filter(None, (tools[0], *history_fields, *dict(work))):
        text_signature = text_signature.delete(name)
    notes = _field_notes(signature, tools[0], calls[0])
    setattr(text_signature, _CACHE, PromptCache(history_fields, notes))
    field = signature.output_fields[calls[0]]
    lenient = _is_one_of(field, (dspy.ToolCalls,))
    optional = is_optional(field)

    def default_calls() -> Any:
        return None if field.is_required() else field.get_default(call_default_factory=True)

    # None where a field asks for calls: an answer without them is an error then.
    missing_calls = default_calls if lenient or not field.is_required() else None
    return Plan(
        tools=tools[0],
        tools_required=not is_optional(signature.input_fields[tools[0]]),
        calls=calls[0],
        calls_required=not (optional or lenient),
        defers_bad_calls=lenient,
        empty_calls=lenient and not optional and field.is_required(),
        missing_calls=missing_calls,
        history_fields=history_fields,
        outputs=tuple(signature.output_fields),
        others=tuple(text_signature.output_fields),
        texts=tuple(text_signature.output_fields),
        has_defaults=not all(field.is_required() for field in text_signature.output_fields.values()),
        native_fields=_native_fields(signature, calls[0]),
        work=work,
        text_signature=text_signature,
    )


def _work_fields(signature: type[Signature]) -> tuple[tuple[str, str], ...]:
    """Return the output fields for what server tools did, each with the Choice's name for it."""
    fields: list[tuple[str, str]] = []
    for name, field in signature.output_fields.items():
        for kind, choice_name in _WORK:
            if _is_one_of(field, (kind,)):
                fields.append((name, choice_name))
    return tuple(fields)


def _field_notes(signature: type[Signature], tools: str, calls: str) -> str:
    """Return what the descriptions of the tool fields say to the model, which does not see the fields."""
    notes = list[str]()
    for title, name in (("Tools", tools), ("Tool calls", calls)):
        extra: Any = signature.model_fields[name].json_schema_extra or {}
        description = extra.get("desc")
        if description not in (None, "", f"${{{name}}}"):  # the last is DSPy's, for a field without one
            notes.append(f"{title}: {description}")
    return "\n".join(notes)


def _native_fields(signature: type[Signature], calls: str) -> tuple[tuple[str, type[Type]], ...]:
    """Return the output fields of DSPy's types other than calls, which DSPy's own flow fills."""
    fields: list[tuple[str, type[Type]]] = []
    for name, field in signature.output_fields.items():
        kind: Any = field.annotation
        if name != calls and isinstance(kind, type) and issubclass(kind, Type):
            fields.append((name, kind))
    return tuple(fields)


def _sole(signature: type[Signature], kind: type[Any]) -> str | None:
    """Return the one input field of a kind; None if there is none."""
    names = [name for name, field in signature.input_fields.items() if _is_one_of(field, (kind,))]
    _refuse_several(signature.__name__, names, kind.__name__)
    return names[0] if names else None


def _refuse_several(signature: str, names: list[str], what: str, why: str = "") -> None:
    if len(names) > 1:
        reason = f"{signature} has {len(names)} {what} fields: {', '.join(names)}"
        raise InvalidSignature(reason, field=names[1], fix=f"Keep one {what} field{why}.")


_INSTEAD: tuple[tuple[Any, str], ...] = (
    *((kind, "sigadapt.ToolDecls") for kind in (ToolDecl, list[ToolDecl], tuple[ToolDecl, ...])),
    *((kind, "sigadapt.ToolCalls") for kind in (ToolCall, list[ToolCall], tuple[ToolCall, ...])),
    *((kind, "sigadapt.ToolResults") for kind in (ToolResult, list[ToolResult], tuple[ToolResult, ...])),
)


def _refuse_misplaced(signature: type[Signature]) -> None:
    """Refuse fields of single tools and calls, and tools that the model should write."""
    for name, field in signature.model_fields.items():
        for kind, instead in _INSTEAD:
            if _is_one_of(field, (kind,)):
                kind_name = str(kind) if get_origin(kind) else kind.__name__
                plain = re.sub(r"sigadapt\.[\w.]*\.", "", kind_name)
                reason = f"{signature.__name__} has a field of {plain}, which adapters can't fill"
                raise InvalidSignature(reason, field=name, fix=f"Declare it as `{instead}`.")
    for name, field in signature.output_fields.items():
        if _is_one_of(field, (ToolDecls, ToolResults)):
            raise InvalidSignature(
                f"{signature.__name__} has {name!r} as an output field, so the model would have to write it",
                field=name,
                fix="Declare tools and results as input fields, and calls as an output field.",
            )


def _refuse_unfilled(signature: type[Signature]) -> None:
    """Refuse fields for what server tools did in a signature that DSPy's own adapter runs."""
    for name, _ in _work_fields(signature):
        raise InvalidSignature(
            f"{signature.__name__} has {name!r}, but no tools field, so the model would have to write it",
            field=name,
            fix="Add `tools: sigadapt.ToolDecls` and `calls: sigadapt.ToolCalls | None`.",
        )


def refuse_invented_work(signature: type[Signature]) -> None:
    """Refuse fields for what server tools did among an agent's outputs, which its model writes itself."""
    for name, _ in _work_fields(signature):
        raise InvalidSignature(
            f"an agent's model would invent {name!r}: it writes all outputs as a call of `submit`",
            field=name,
            fix="Leave it out, and read SourceReady and FileReady of sigadapt.stream(agent, ...).",
        )


def _refuse_misfits(signature: str, tools: list[str], calls: list[str]) -> None:
    if not tools:
        raise InvalidSignature(
            f"{signature} has a calls field but no tools field",
            field=calls[0],
            fix="Add an input field `tools: sigadapt.ToolDecls`.",
        )
    if not calls:
        raise InvalidSignature(
            f"{signature} has a tools field but no calls field",
            field=tools[0],
            fix="Add an output field `calls: sigadapt.ToolCalls` (or `ToolCalls | None`).",
        )
    _refuse_several(signature, tools, "tools", "; one ToolDecls holds any number of tools")
    _refuse_several(signature, calls, "calls", "; one ToolCalls holds any number of calls")


def _is_one_of(field: FieldInfo, kinds: tuple[Any, ...]) -> bool:
    annotation: Any = field.annotation
    if get_origin(annotation) in (Union, types.UnionType):
        return any(member in kinds for member in get_args(annotation))
    return annotation in kinds


def is_optional(field: FieldInfo) -> bool:
    """Return whether a field needs no value of the model."""
    return not field.is_required() or type(None) in get_args(field.annotation)


def inputs_of_turn(plan: Plan, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a request that the event of its turn holds."""
    names = [*plan.text_signature.input_fields, plan.history_fields.results]
    return {name: inputs[name] for name in names if name and inputs.get(name) is not None}


def outputs_beside(plan: Plan, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs beside the calls that the event of a turn holds."""
    names = [name for name in plan.outputs if name != plan.calls]
    return {name: values[name] for name in names if values.get(name) is not None}


# A provider fills output fields of DSPy's types natively: reasoning, citations, and users' own. DSPy's hooks
# of its types turn the feature on in the settings, and read the value from the Response.
_DSPYS_OWN = (Reasoning, Citations)  # they only delete their field, or leave it


class _CachedDelete(NamedTuple):
    """Stands in for a signature whose only used method is `delete`, and builds each smaller one only once."""

    signature: type[Signature]

    def delete(self, name: str) -> "_CachedDelete":
        smaller = prompt_cache(self.signature).once(f"without {name}", lambda: self.signature.delete(name))
        return _CachedDelete(smaller)


def without_native_fields(plan: Plan, kinds: list[Any], lm: BaseLM, settings: dict[str, Any]) -> Plan:
    """Return the Plan without the fields of these kinds that the model fills natively."""
    signature: type[Signature] = plan.text_signature
    for name, kind in plan.native_fields:
        if kind in kinds:
            whole: Any = _CachedDelete(signature) if kind in _DSPYS_OWN else signature
            smaller: Any = kind.adapt_to_native_lm_feature(whole, name, lm, settings)
            signature = smaller.signature if type(smaller) is _CachedDelete else smaller
    if signature is plan.text_signature:
        return plan
    if prompt_cache(signature).history_fields is None:
        setattr(signature, _CACHE, PromptCache(plan.history_fields, prompt_cache(plan.text_signature).notes))
    return plan._replace(text_signature=signature, texts=tuple(signature.output_fields))


def native_values(plan: Plan, kinds: list[Any], response: Any, reasoning: str | None) -> dict[str, Any]:
    """Return the values that native types read from the Response, and log probabilities if asked for."""
    if response is None or isinstance(response, (str, dict)):  # of a hook, or of a text-completion model
        return {}
    native = {name: kind for name, kind in plan.native_fields if kind in kinds}
    return contract.native_values(native, response, reasoning)
