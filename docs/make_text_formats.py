"""Write the page of the text formats from their table: what each looks like, and who writes it.

`tests/text/` checks that each example is read. The page is built with the site.
"""  # noqa: INP001  (a script)

import sys
from collections.abc import Callable, Iterator

from sigadapt.text.contract import TextFormat
from sigadapt.text.formats import FORMATS

HEAD = """# Calls written as text

Open models call tools by writing text. If the server has the right parser, it turns this text into calls. If
it has not, the calls arrive as text. `choice_from_text` reads them, and returns the same `Choice` as a native
answer:

```python
from sigadapt import choice_from_text

text = 'Let me look. <tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
choice = choice_from_text(text, [{"name": "get_weather"}])  # a string, or its pieces
print(choice.tool_calls, choice.tool_calls[0].altered, choice.text)
```

```output
get_weather(city='Paris') ('recovered',) Let me look.
```

- A format is recognized by its looks, not by the name of a model. `formats=["hermes"]` reads only that one.
- Only calls of declared tools are read. Each has `recovered` in `altered`. Ids in the text are kept.
- A call that is broken or cut off is in `tool_calls.invalid`, with its code and its raw text.
- Prose, code, quoted markup, JSON answers and echoed declarations are never calls. A quotation is a fence,
  code in a line, indented or in HTML, escaped HTML, a block quote, JSON, or what stands in quotation marks of
  any language, with spaces or without.
- A code fence holds calls only if it is the whole answer. With words beside it, it is a quotation, whatever
  the words say: there is no table of words that announce a call. If you name the form
  (`formats=["fenced-json"]`, `call_format="fenced-json"`), any such fence is read.
- Markup inside a value is part of the value. If a value holds tags of its own format that do not pair, or if
  anything stands between a call and its closing tag, the call is bad: you never get its first half.
- Where the schema allows a text, only JSON's numbers are read as numbers: `007` and `+33` stay text.
- If a parameter, an argument or a key occurs twice, the call is bad (`duplicate_key`). If a variable or an
  expression stands in for a value, it is bad too (`invalid_json`).
- `<think>...</think>` and similar tags are reasoning. If the prompt has opened the reasoning already, pass
  `starts_in_reasoning=True`. Calls inside closed reasoning are ignored.
- If a format does not type its values, the declared schema does. A value that does not fit stays a string.
- Nothing is evaluated. The work is bounded by the length of the text, and at most 1,000 calls are read. If a
  limit is reached, the last call is a bad call with the rest of the text (`malformed_call`).
- [What public models write](answers.md) shows how many of their answers are read correctly.

*Written* means that sigadapt can also write calls in the format. The models and servers are those that their
sources name. None was run for this page.

| format | servers | models | written |
|---|---|---|---|
"""


def page() -> str:
    """Write the page."""
    return HEAD + "".join(map(row, FORMATS)) + "\n" + "\n".join(section(each) for each in FORMATS)


def row(each: TextFormat) -> str:
    """Write a format as a row of the overview."""
    is_written = "yes" if each.write else ""
    return f"| [{each.name}](#{anchor(each.name)}) | {each.servers} | {each.models} | {is_written} |\n"


def anchor(name: str) -> str:
    """Return the anchor that Markdown gives a heading."""
    return name.replace(".", "")


def section(each: TextFormat) -> str:
    """Write a format with its example."""
    return "\n".join(lines(each))


def lines(each: TextFormat) -> Iterator[str]:
    """Yield the lines of a format's section."""
    yield f"## {each.name}\n"
    fence = "````" if "```" in each.example else "```"
    yield f"{fence}text\n{each.example}\n{fence}\n"
    yield f"{each.reads}\n"


def main(write: Callable[[str], object] = sys.stdout.write) -> None:
    """Write the page."""
    write(page())


if __name__ == "__main__":
    main()
