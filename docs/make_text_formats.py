"""Write the page of the text formats from their table: what each looks like, and who writes it.

`tests/text/` checks that each example is read. The page is built with the site.
"""  # noqa: INP001  (a script)

import sys
from collections.abc import Callable, Iterator

from sigadapt.text.contract import TextFormat
from sigadapt.text.formats import FORMATS

HEAD = """# Calls written as text

Open models call tools by writing text. A server turns that text into calls if it has the right parser on. If
not, the call arrives as text. `choice_from_text` reads it, and gives the same `Choice` as a native answer:

```python
from sigadapt import choice_from_text

text = 'Let me look. <tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
choice = choice_from_text(text, [{"name": "get_weather"}])  # a text, or its pieces
print(choice.tool_calls, choice.tool_calls[0].altered, choice.text)
```

```output
get_weather(city='Paris') ('recovered',) Let me look.
```

- A format is found by what it looks like, not by the name of a model. `formats=["hermes"]` reads that one.
- Only declared tools are called. Each call has `recovered` in `altered`. Ids that stand in the text are kept.
- A call that is broken or cut off is in `tool_calls.invalid`, with its code and its raw text.
- Prose, code, quoted markup, JSON answers and echoed declarations are never calls, and markup inside of a
  value is that value. A code fence holds calls if it is the whole answer; with words beside it, it is a
  quotation.
- A parameter, an argument or a key twice is a bad call (`duplicate_key`), and so is a variable or an
  expression in the place of a value (`invalid_json`).
- `<think>...</think>` and its kin are reasoning. Where the prompt has opened the thinking already, pass
  `starts_in_reasoning=True`. A call in a thinking that was closed is only thought of.
- Values that a format does not type are typed by the declared schema. What does not fit stays text.
- Nothing is evaluated. The work is bounded by the text's length, and 1,000 calls of one text are read. Where
  a budget is spent, the last call is a bad call with the rest of the text (`malformed_call`).
- [What public models write](answers.md) says how many of their answers are read rightly.

*Written* means that sigadapt can write calls in the format. Which models write a format, and which servers
read it, is what their sources say. None was run for this page.

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
