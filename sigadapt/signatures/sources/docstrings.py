"""Split a docstring (Google, NumPy, Sphinx or Epydoc style) into descriptions of tool, parameters, result."""

import re
from typing import NamedTuple

_TITLES = "Args|Arguments|Params|Parameters|Attributes|Returns|Yields|Raises|Exceptions"
_SECTIONS = {
    "GOOGLE": rf"(?:{_TITLES}):[ \t]*$",
    "NUMPYDOC": rf"(?:{_TITLES}|Other Parameters)[ \t]*\n[ \t]*-{{3,}}[ \t]*$",
    "REST": r":(?:param|parameter|arg|argument|key|keyword|type|returns?|rtype|yields?|raises?)\b[^:\n]*:",
    "EPYDOC": r"@(?:param|type|return|rtype|raise)\b[^:\n]*:",
}
_STYLE = re.compile(
    "|".join(rf"(?P<{style}>^[ \t]*{section})" for style, section in _SECTIONS.items()), re.MULTILINE
)


class Docs(NamedTuple):
    """The parts of a docstring."""

    description: str  # without the sections
    parameters: dict[str, str]  # their descriptions, by name
    returns: str | None  # the description of the result


def parse(text: str | None) -> Docs:
    """Split a docstring into its parts."""
    match = _STYLE.search(text) if text else None
    if text is None or match is None:
        return Docs((text or "").strip(), {}, None)
    import docstring_parser  # takes milliseconds, and most docstrings have no sections

    try:
        # The parser cleans the indentation again. Without the line break, it would outdent all but line one.
        docs = docstring_parser.parse("\n" + text, docstring_parser.DocstringStyle[str(match.lastgroup)])
    except docstring_parser.ParseError:
        return Docs(text.strip(), {}, None)
    parameters = {p.arg_name: p.description.strip() for p in docs.params if p.description}
    returns = docs.returns.description if docs.returns else None
    return Docs((docs.description or "").strip(), parameters, returns)
