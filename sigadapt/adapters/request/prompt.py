"""Make the words of a Request that stay the same from call to call, once per signature and adapter.

The words are DSPy's; a text field without a description is not listed. If an adapter has words of its own for
fields or forms, all of them are used, in the places where DSPy's adapters put them, and are asked for on
every call. At the end is what the system text says of a request's tools: their instructions, and for an agent
their names. `dspy.ReActV2` names its tools when the agent is made; a toolset is resolved for each request.
"""

import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

import dspy
from dspy.adapters import utils
from dspy.signatures.signature import Signature
from pydantic.fields import FieldInfo

from sigadapt.adapters.output_format import OutputFormat
from sigadapt.adapters.plan import HistoryFields, prompt_cache
from sigadapt.adapters.request.canonical import Change
from sigadapt.dspy_boundary.internals import SUBMIT
from sigadapt.json_values import is_array
from sigadapt.signatures.tool_decls import ResolvableTools, ToolDecls

_DSPYS = (dspy.ChatAdapter, dspy.JSONAdapter, dspy.XMLAdapter)
_TASK = "format_task_description"
_SYSTEM = "format_system_message"
# If an adapter overrides any of these, all words that DSPy's adapters say are used, in DSPy's places.
_DESCRIBING = (
    _TASK,
    _SYSTEM,
    "format_field_description",
    "format_field_structure",
    "format_field_with_value",
    "user_message_output_requirements",
)
# If an adapter overrides any of these, it writes each question itself.
_SHOWING = ("format_user_message_content", "format_field_with_value")
_OURS = ("text_description", "text_reminder")
_WORDS = (*_DESCRIBING, *_SHOWING, *_OURS)
_MARK = "\ue000"
_TEXTS = {str}


class Prompt(NamedTuple):
    """What an adapter says about one signature, whatever the inputs are."""

    system: str  # the system text
    reminds: bool  # whether each question ends with a reminder of the text's form
    inputs: tuple[str, ...]
    history_fields: HistoryFields
    templated: bool  # whether the adapter is known to put texts into a question unchanged
    templates: dict[tuple[str, ...], str]  # questions with `%s` for each value, by the names of the inputs

    def asks(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether any input is given. A call that only brings results must not add a question."""
        return any(inputs.get(name) is not None for name in self.inputs)


def prompt_of(adapter: OutputFormat, signature: type[Signature]) -> Prompt:
    """Return what an adapter says about a signature; cached, unless the adapter has words of its own."""
    prompts = prompt_cache(signature).prompts
    # methods can be replaced in place, on the object too
    kind = type(adapter)
    overrides = vars(adapter)
    words = tuple([overrides.get(name) or getattr(kind, name, None) for name in _WORDS])
    prompt = prompts.get(words)
    if prompt is None:
        prompt = _compile(adapter, signature)
        if not _are_the_users(adapter, _WORDS):  # those may say something else each time
            prompts[words] = prompt
    return prompt


def question(
    adapter: OutputFormat, signature: type[Signature], prompt: Prompt, inputs: Mapping[str, Any]
) -> str:
    """Return the user's message: `adapter.format_user_message_content`, and the reminder if there is one."""
    # DSPy builds a pydantic adapter for every value of every call, even for plain texts. DSPy's own methods
    # put texts in unchanged, so a template of them is made once. Other methods and other values go through
    # DSPy.
    names = tuple([name for name in prompt.inputs if name in inputs])
    values = tuple(map(inputs.__getitem__, names))
    if prompt.templated and _TEXTS.issuperset(map(type, values)):
        template = prompt.templates.get(names)
        if template is None:
            template = adapter.format_user_message_content(signature, dict.fromkeys(names, _MARK))
            template = prompt.templates[names] = template.replace("%", "%%").replace(_MARK, "%s")
        text = (template % values).strip()
    else:
        text = adapter.format_user_message_content(signature, dict(inputs))
    if not prompt.reminds:
        return text
    return f"{text}\n\n{adapter.text_reminder(without_optional_texts(signature))}".strip()


def _compile(adapter: OutputFormat, signature: type[Signature]) -> Prompt:
    has_outputs = bool(signature.output_fields)
    notes = prompt_cache(signature).notes
    visible = without_optional_texts(signature)
    if _are_the_users(adapter, (_SYSTEM,)):
        system = adapter.format_system_message(visible)
    elif has_outputs:
        system = adapter.text_description(visible)
    else:  # without DSPy's description of the task, which names outputs; a user's own is kept
        is_users = _are_the_users(adapter, (_TASK,))
        task = adapter.format_task_description(visible) if is_users else None
        system = describe(visible, task=task)
    return Prompt(
        system="\n\n".join(filter(None, (system, notes))),
        reminds=has_outputs and bool(adapter.text_reminder(visible)),
        inputs=tuple(signature.input_fields),
        history_fields=prompt_cache(signature).history_fields or HistoryFields(None, None, None),
        templated=_are_dspys(adapter, _SHOWING),
        templates={},
    )


def without_optional_texts(signature: type[Signature]) -> type[Signature]:
    """Return the signature as shown to the model: `str | None` becomes `str`."""
    # DSPy asks for a "valid Python Union[str, NoneType]", and a model that obeys answers the word None.
    # Whether there is a text at all is for the calls to say, not for the model.

    def make() -> type[Signature] | None:
        visible = signature
        for name, field in signature.fields.items():
            kind: Any = field.annotation
            visible = visible.with_updated_fields(name, type_=str) if kind == str | None else visible
        return None if visible is signature else visible  # itself would keep itself alive

    return prompt_cache(signature).once("told", make) or signature


def _are_dspys(adapter: OutputFormat, methods: tuple[str, ...]) -> bool:
    kind: Any = type(adapter)
    return not any(name in vars(adapter) for name in methods) and all(
        any(getattr(kind, name, None) is getattr(dspys, name) for dspys in _DSPYS) for name in methods
    )


def _are_the_users(adapter: OutputFormat, methods: tuple[str, ...]) -> bool:
    """Return whether any of the methods is the user's, not DSPy's or sigadapt's."""
    for method in [getattr(adapter, name) for name in methods if hasattr(adapter, name)]:
        function = getattr(method, "__func__", method)
        # The package that it is written in; what `functools.wraps` says of it is another's.
        module = str(getattr(function, "__globals__", {}).get("__name__", ""))
        if module.partition(".")[0] not in ("dspy", "sigadapt"):
            return True
    return False


def in_own_words(adapter: OutputFormat) -> bool:
    """Return whether an adapter overrides how DSPy's chat, JSON and XML adapters describe text outputs."""
    return not _are_dspys(adapter, _DESCRIBING)


def describe(signature: type[Signature], form: str = "", task: str | None = None) -> str:
    """Return a system text: the instructions, the fields worth describing, and the form of the outputs."""
    inputs = _worth_listing(signature.input_fields)
    outputs = _worth_listing(signature.output_fields)
    pieces = (
        textwrap.dedent(signature.instructions).strip() if task is None else task,
        f"Input fields:\n{inputs}" if inputs else "",
        f"Output fields:\n{outputs}" if outputs else "",
        form,
    )
    return "\n\n".join(piece for piece in pieces if piece)


def _worth_listing(fields: Mapping[str, FieldInfo]) -> str:
    """Return DSPy's list of the fields that have more than a name and the type str, if there are any."""
    lines = {name: utils.get_field_description_string({name: field}) for name, field in fields.items()}
    worthy = {name: field for name, field in fields.items() if lines[name] != f"1. `{name}` (str):"}
    return utils.get_field_description_string(worthy) if worthy else ""


def form_of(adapter: OutputFormat, signature: type[Signature]) -> str:
    """Return DSPy's description of the text outputs: a short sentence, or the structure for other types."""
    kinds: list[Any] = [field.annotation for field in signature.output_fields.values()]
    if all(kind in (str, str | None) for kind in kinds):
        return adapter.user_message_output_requirements(signature)
    return adapter.format_field_structure(signature)


def with_tool_names(
    messages: list[dict[str, Any]], tools: object, decls: ToolDecls
) -> tuple[list[dict[str, Any]], tuple[Change, ...]]:
    """Return the messages with the names of these tools, and the change, if the agent has toolsets."""
    if not is_array(tools) or not any(isinstance(tool, ResolvableTools) for tool in tools):
        return messages, ()
    agent_tools = [tool for tool in tools if isinstance(tool, dspy.Tool)]
    sentence = _sentence([str(tool.name) for tool in agent_tools])
    content = messages[0]["content"] if messages else None
    if not isinstance(content, str) or sentence not in content:
        return messages, ()
    content = content.replace(sentence, _sentence([decl.name for decl in decls.tools]))
    why = "the agent's prompt names the tools of this request, not its toolsets"
    return [{**messages[0], "content": content}, *messages[1:]], (Change("/messages/0", "lowered", why),)


def with_last_question(messages: list[dict[str, Any]], signature: type[Signature]) -> list[dict[str, Any]]:
    """Return the messages with a question at the end, if words of the agent's model are there.

    Anthropic, Gemini and Mistral want a message of the user or a result to answer.
    """
    if not messages or messages[-1]["role"] != "assistant":
        return messages
    outputs = ", ".join(f"`{name}`" for name in signature.output_fields)
    return [*messages, {"role": "user", "content": f"Call `{SUBMIT}` with {outputs}."}]


def with_instructions(messages: list[dict[str, Any]], decls: ToolDecls) -> list[dict[str, Any]]:
    """Return the messages with the instructions of the tools that are offered, each once."""
    offered = [
        decl for decl in decls.tools if decl.instructions and not (decl.extras or {}).get("defer_loading")
    ]
    texts = list(dict.fromkeys(decl.instructions for decl in offered))
    if not texts:
        return messages
    rest = messages
    if messages and messages[0]["role"] == "system":
        texts.insert(0, messages[0]["content"])
        rest = messages[1:]
    return [{"role": "system", "content": "\n\n".join(texts)}, *rest]


def _sentence(names: list[str]) -> str:
    # As `ReActV2._make_react_signature` writes it.
    return f"The available tools are: {', '.join(f'`{name}`' for name in names)}."
