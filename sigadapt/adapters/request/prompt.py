"""The words of a request that stay the same from call to call, compiled once (Plan -> Request).

Each description, constraint and form is said once, in the system text, after the instructions; of fields,
those that have something to say beyond their name. The tools say the rest themselves. What other phrasings
cost is in docs/prompt.md. The words about a field or a form are DSPy's. An adapter that has words of its own
for them says all of those where DSPy's adapters do, and is asked for them each time.
"""

import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import dspy
from dspy.adapters import utils
from dspy.signatures.signature import Signature
from pydantic.fields import FieldInfo

from sigadapt.adapters.plan import Turns, turns_of
from sigadapt.adapters.text_format import TextFormat
from sigadapt.schemas.caches import WeakCache

_DSPYS = (dspy.ChatAdapter, dspy.JSONAdapter, dspy.XMLAdapter)
_TASK = "format_task_description"
# If any of these is another's than theirs, all of DSPy's words are said, in DSPy's places.
_DESCRIBING = (
    _TASK,
    "format_field_description",
    "format_field_structure",
    "format_field_with_value",
    "user_message_output_requirements",
)
# If any of these is, a question is written by the adapter itself each time.
_SHOWING = ("format_user_message_content", "format_field_with_value")
_OURS = ("text_description", "text_reminder")
_MARK = "\ue000"


class Prompt(NamedTuple):
    """What an adapter says of one signature, whatever the inputs.

    Args:
        system: the system text; empty where there is nothing to say.
        reminds: whether each question ends in a reminder, as that of an adapter with words of its own does.
        inputs: the names of the input fields.
        turns: where the turns so far are given.
        templated: whether the adapter is known to put texts into a question as they are.
        templates: a question by the names of the inputs given, with `%s` in the place of each value.
    """

    system: str
    reminds: bool
    inputs: tuple[str, ...]
    turns: Turns
    templated: bool
    templates: dict[tuple[str, ...], str]


_PROMPTS: WeakCache[WeakCache[Prompt]] = WeakCache()
"""The compiled prompt of a signature and an adapter."""


def prompt_of(adapter: TextFormat, rest: type[Signature]) -> Prompt:
    """The adapter's words on a signature, compiled when it first meets it.

    Args:
        adapter: whose words they are.
        rest: the signature without its tool fields.

    Example:
        >>> from sigadapt import JSONAdapter
        >>> print(prompt_of(JSONAdapter(), dspy.Signature("question -> answer", "Be brief.")).system)
        Be brief.
        <BLANKLINE>
        Tool calls aside, respond with a JSON object in the following order of fields: `answer`.
    """
    of_signature = _PROMPTS.of(rest, WeakCache)
    prompt = of_signature.get(adapter)
    if prompt is None:
        prompt = _compiled(adapter, rest)
        if _says_the_same_each_time(adapter):
            of_signature.put(adapter, prompt)
    return prompt


def question(adapter: TextFormat, rest: type[Signature], prompt: Prompt, inputs: Mapping[str, Any]) -> str:
    """The user's message: `adapter.format_user_message_content`, and the reminder if there is one.

    DSPy builds a pydantic adapter for every value of every call to find out that a text is a text. For its
    own methods, which put texts in as they are, the words around them are taken once; any other method or
    value goes through DSPy each time.

    Args:
        adapter: whose words they are.
        rest: the signature whose input fields are shown.
        prompt: what `prompt_of` gives for both.
        inputs: the fields' values; those of no field are passed over.
    """
    names = tuple([name for name in prompt.inputs if name in inputs])
    values = tuple([inputs[name] for name in names])
    if prompt.templated and _are_texts(values):
        template = prompt.templates.get(names)
        if template is None:
            template = prompt.templates[names] = _template(adapter, rest, names)
        text = (template % values).strip()
    else:
        text = adapter.format_user_message_content(rest, dict(inputs))
    return f"{text}\n\n{adapter.text_reminder(rest)}".strip() if prompt.reminds else text


def _are_texts(values: tuple[Any, ...]) -> bool:
    for value in values:  # noqa: SIM110  (all() with a generator takes three times as long)
        if type(value) is not str:
            return False
    return True


def _template(adapter: TextFormat, rest: type[Signature], names: tuple[str, ...]) -> str:
    text = adapter.format_user_message_content(rest, dict.fromkeys(names, _MARK))
    return text.replace("%", "%%").replace(_MARK, "%s")


def _compiled(adapter: TextFormat, rest: type[Signature]) -> Prompt:
    has_outputs = bool(rest.output_fields)
    return Prompt(
        system=adapter.text_description(rest) if has_outputs else _without_outputs(adapter, rest),
        reminds=has_outputs and bool(adapter.text_reminder(rest)),
        inputs=tuple(rest.input_fields),
        turns=turns_of(rest) or Turns(None, None),
        templated=_are_dspys(adapter, _SHOWING),
        templates={},
    )


def _without_outputs(adapter: TextFormat, rest: type[Signature]) -> str:
    """DSPy's task descriptions speak of outputs, of which there are none here; a user's own is said."""
    own = _are_the_users(adapter, (_TASK,))
    return described(rest, task=adapter.format_task_description(rest) if own else None)


def _are_dspys(adapter: TextFormat, methods: tuple[str, ...]) -> bool:
    kind: Any = type(adapter)
    return not any(name in vars(adapter) for name in methods) and all(
        any(getattr(kind, name, None) is getattr(dspys, name) for dspys in _DSPYS) for name in methods
    )


def _are_the_users(adapter: TextFormat, methods: tuple[str, ...]) -> bool:
    """Whether a method is neither DSPy's nor sigadapt's."""
    known = [getattr(adapter, name) for name in methods if hasattr(adapter, name)]
    return any(method.__module__.partition(".")[0] not in ("dspy", "sigadapt") for method in known)


def _says_the_same_each_time(adapter: TextFormat) -> bool:
    return not _are_the_users(adapter, (*_DESCRIBING, *_OURS))


def in_own_words(adapter: TextFormat) -> bool:
    """Whether an adapter describes text outputs otherwise than DSPy's chat, JSON and XML adapters do."""
    return not _are_dspys(adapter, _DESCRIBING)


def described(rest: type[Signature], form: str = "", task: str | None = None) -> str:
    r"""Instructions, the fields that have something to say, and the form of the outputs, each once.

    Args:
        rest: the signature without its tool fields.
        form: what is said of the text outputs' form.
        task: what is said in place of the instructions as they are.

    Example:
        >>> described(dspy.Signature("question: str, days: int -> answer", "Answer."))
        'Answer.\n\nInput fields:\n1. `days` (int):'
    """
    inputs, outputs = _worth_telling(rest.input_fields), _worth_telling(rest.output_fields)
    pieces = (
        textwrap.dedent(rest.instructions).strip() if task is None else task,
        f"Input fields:\n{inputs}" if inputs else "",
        f"Output fields:\n{outputs}" if outputs else "",
        form,
    )
    return "\n\n".join(piece for piece in pieces if piece)


def _worth_telling(fields: Mapping[str, FieldInfo]) -> str:
    """DSPy's list of those fields that are more than a text with a name."""
    telling = {name: field for name, field in fields.items() if _line(name, field) != f"1. `{name}` (str):"}
    return utils.get_field_description_string(telling) if telling else ""


def _line(name: str, field: FieldInfo) -> str:
    return utils.get_field_description_string({name: field})


def form_of(adapter: TextFormat, rest: type[Signature]) -> str:
    """DSPy's words on the form of text outputs: the short ones for texts, the structure for other types."""
    if all(cast("Any", field.annotation) in (str, str | None) for field in rest.output_fields.values()):
        return adapter.user_message_output_requirements(rest)
    return adapter.format_field_structure(rest)
