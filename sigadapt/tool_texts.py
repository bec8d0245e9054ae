"""ToolTexts: descriptions of tools as data that a program holds, an optimizer may change and `save` keeps.

DSPy's optimizers change the instructions of a program's predictors and nothing else. So each text is the
instructions of a predictor that is never called: it stands for its text. Functions are not touched.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, cast

import dspy

from sigadapt.dspy_boundary.internals import OwnSignature
from sigadapt.errors import InvalidOption
from sigadapt.json_values import Json, closest, is_object, listed
from sigadapt.signatures.tool_decl import ToolDecl, with_fields
from sigadapt.signatures.tool_decls import Sources, ToolDecls

_MOST_NAMES = 20


_NOTHING = "(It has no description.)"
"""What stands for an empty text, in whose place DSPy would write instructions that nobody wrote."""


def _predictor(name: str, text: str) -> dspy.Predict:
    """Return the predictor whose instructions are a text: DSPy's own class, which tracers can watch."""
    fields: dict[str, tuple[type, Any]] = {
        "describes": (
            str,
            dspy.InputField(desc="the tool, or the parameter of a tool, that the text describes"),
        ),
        "now": (str, dspy.InputField(desc="the text as it is now")),
        "tool": (dict, dspy.InputField(desc=f"the tool, of which this text describes {name}")),
        "asked": (dict, dspy.InputField(desc="what the tools were declared for")),
        "description": (
            str,
            dspy.OutputField(desc=f"the description of {name}, as the model reads it"),
        ),
    }
    new_signature: Any = dspy.Signature
    return dspy.Predict(new_signature(fields, text or _NOTHING))


def _text_in(predictor: Any) -> str:
    """Return the text of a predictor."""
    instructions: str = predictor.signature.instructions
    return "" if instructions == _NOTHING else instructions


class ToolTexts(dspy.Module):
    """Descriptions of tools, as a part of a program.

    Call it to get the tools with the current descriptions. Optimizers that change instructions, such as
    GEPA and MIPROv2, change the descriptions too. `save` keeps them, and `load` brings them back.

    Args:
        tools: anything that ToolDecls accepts. The functions do not change.
        texts: what to cover: names of tools, and `tool.parameter` for the description of a parameter. None
            covers the description of every tool.

    Raises:
        InvalidOption: `unknown_text`, for a name that is neither a function tool nor a parameter of one.
        InvalidToolDecl: as ToolDecls.

    Example:
        >>> def get_weather(city: str) -> str:
        ...     "Weather."
        >>> texts = ToolTexts([get_weather], ["get_weather", "get_weather.city"])
        >>> texts["get_weather.city"] = "The city's name, in English."
        >>> texts()["get_weather"].parameters["properties"]["city"]["description"]
        "The city's name, in English."
    """

    __signature__ = OwnSignature()

    def __init__(self, tools: Sources, texts: Iterable[str] | None = None) -> None:
        super().__init__()
        self.tools = ToolDecls(tools)
        names = [decl.name for decl in self.tools if decl.format is None] if texts is None else texts
        self.texts = {name: _predictor(name, self._write(name)) for name in names}
        self._latest: tuple[tuple[str, ...], ToolDecls] = ((), self.tools)

    if TYPE_CHECKING:

        def __call__(self, tools: object = None, /, **asked: Any) -> ToolDecls:  # pyright: ignore[reportIncompatibleMethodOverride]
            """Call `forward`, as DSPy does."""
            ...

    def forward(self, tools: object = None, /, **asked: Any) -> ToolDecls:
        """Return tools with the current descriptions.

        Args:
            tools: the tools of this call, if they differ from those that it was made with. Texts of other
                tools are not used.
            asked: what the tools are declared for, such as the question. It is not sent; an optimizer that
                reflects reads it next to the description.
        """
        if tools is not None:
            decls = self._with_texts(ToolDecls(tools))
        else:  # made once for the same texts, so that requests share them
            texts = tuple(map(_text_in, self.texts.values()))
            if self._latest[0] != texts:
                self._latest = texts, self._with_texts(self.tools)
            decls = self._latest[1]
        self._trace(decls, asked)
        return decls

    def _trace(self, decls: ToolDecls, asked: Json) -> None:
        """Add each text that was used to DSPy's trace, where optimizers look for what a predictor did."""
        settings: Any = dspy.settings
        if settings.trace is None or settings.max_trace_size < 1:
            return
        for name, predictor in self.texts.items():
            tool, _ = _split_name(name, self.tools)
            if tool not in decls:
                continue
            text = _text_in(predictor)
            function = decls[tool].to_openai()["function"]
            del settings.trace[: max(0, len(settings.trace) + 1 - settings.max_trace_size)]
            inputs = {"describes": name, "now": text, "tool": function, "asked": asked}
            settings.trace.append((predictor, inputs, dspy.Prediction(description=text)))

    def _with_texts(self, decls: ToolDecls) -> ToolDecls:
        by_name = {decl.name: decl for decl in decls}
        for name, predictor in self.texts.items():
            tool, parameter = _split_name(name, self.tools)
            if tool not in by_name:
                continue
            properties = _properties(by_name[tool])
            if parameter not in (None, *properties):
                reason = f"the text of {name!r} is for a parameter that {tool} no longer has"
                fix = f"It has {', '.join(map(repr, properties)) or 'none'}."
                raise InvalidOption(reason, code="unknown_text", field="texts", fix=fix)
            by_name[tool] = _with_text(by_name[tool], parameter, _text_in(predictor))

        def current(entry: Any) -> Any:
            return by_name[entry.name] if isinstance(entry, ToolDecl) else entry

        return ToolDecls([*map(current, decls.entries)])

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the texts, as a mapping does."""
        return iter(self.texts)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a text of a name."""
        return isinstance(name, str) and name in self.texts

    def __getitem__(self, name: str) -> str:
        """Return a text.

        Raises:
            InvalidOption: `unknown_text`, for a name of no text.
        """
        if name not in self:
            raise _unknown_text(name, self.texts)
        return _text_in(self.texts[name])

    def __setitem__(self, name: str, text: str) -> None:
        """Replace a text.

        Raises:
            InvalidOption: `unknown_text`, for a name of no text; also for a text that is not a string.
        """
        old = self[name]
        predictor = cast("Any", self.texts[name])
        if not isinstance(cast("object", text), str):
            raise InvalidOption(f"the text of {name!r} cannot be {text!r}", field="texts")
        if text != old:
            predictor.signature = predictor.signature.with_instructions(text or _NOTHING)

    def load_state(self, state: Json, **options: Any) -> None:
        """Bring back the texts that `dump_state` or `save` kept.

        Raises:
            InvalidOption: `unknown_text`, if these are the texts of other tools or parameters.
        """
        names = {key[len("texts['") : -len("']")] for key in state if key.startswith("texts['")}
        for name in sorted(names ^ self.texts.keys()):
            difference = "was not saved" if name in self.texts else "was saved, and is not held here"
            reason = f"the text of {name!r} {difference}"
            fix = "Load into a ToolTexts of the same tools and texts."
            raise InvalidOption(reason, code="unknown_text", field="texts", fix=fix)
        parent: Any = super()
        parent.load_state(state, **options)

    def _write(self, name: str) -> str:
        """Return the text of a name as the tools have it."""
        tool, parameter = _split_name(name, self.tools)
        if tool not in self.tools:
            raise _unknown_text(name, [decl.name for decl in self.tools])
        decl = self.tools[tool]
        properties = _properties(decl)
        if decl.format is not None or parameter not in (None, *properties):
            raise _unknown_text(name, [f"{tool}.{key}" for key in properties], f"{tool}.")
        return _text_of(decl, parameter)


def _unknown_text(name: str, candidates: Iterable[str], prefix: str = "") -> InvalidOption:
    names = list(candidates)
    short_names = [candidate.removeprefix(prefix) for candidate in names]
    near = closest(str(name).removeprefix(prefix), short_names)
    reason = f"{name!r} is neither a tool nor a parameter of one, only {listed(names, _MOST_NAMES, ', ')}"
    fix = f"Did you mean {prefix + near!r}?" if near else "Name a tool, or `tool.parameter`."
    return InvalidOption(reason, code="unknown_text", field="texts", fix=fix)


def _split_name(name: str, tools: ToolDecls) -> tuple[str, str | None]:
    """Return tool and parameter of a text's name. Both may hold dots; the longest tool's name counts."""
    if name in tools:
        return name, None
    for dot in reversed(range(len(name))):
        if name[dot] == "." and name[:dot] in tools:
            return name[:dot], name[dot + 1 :]
    return name, None


def _properties(decl: ToolDecl) -> Json:
    return decl.parameters.get("properties") or {}


def _text_of(decl: ToolDecl, parameter: str | None) -> str:
    if parameter is None:
        return decl.description
    schema = _properties(decl)[parameter]
    return str(schema.get("description", "")) if is_object(schema) else ""


def _with_text(decl: ToolDecl, parameter: str | None, text: str) -> ToolDecl:
    """Return a declaration with another description; itself where the text is as it was."""
    if text == cleandoc(_text_of(decl, parameter)):
        return decl
    if parameter is None:
        return with_fields(decl, description=text)
    properties = dict(_properties(decl))
    schema = properties[parameter]
    properties[parameter] = {**schema, "description": text} if is_object(schema) else {"description": text}
    return replace(decl, parameters={**decl.parameters, "properties": properties})
