"""Hold each regular expression of the package to linear time; print those that take more.

The patterns come from the places of the code that compile one, or give one to `re`. Those of modules are
noted while the package is imported, those of functions while the readers run; a place of which no pattern is
known is printed too. From a pattern's own parts come the texts that could make it slow: what leads to a
repetition, and then what is repeated. Four times the text may take eight times as long. A slow machine
changes both times, and what takes less than a few milliseconds is linear on any. `nightly` runs this.
"""

# ruff: noqa: PLC0415, S307, SLF001  (a script that notes what is imported, and evaluates the package)
# pyright: basic

import ast
import importlib
import pkgutil
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import regex

if sys.version_info >= (3, 11):
    from re import _constants as codes
    from re import _parser as parser
else:
    import sre_constants as codes
    import sre_parse as parser

PACKAGE = Path(__file__).resolve().parents[1] / "sigadapt"
SEARCHING = ("search", "finditer", "findall", "sub", "subn", "split")
FUNCTIONS = ("compile", "match", "fullmatch", *SEARCHING)
# Expressions that compile a pattern in a function, which is then matched at a place and never searched.
MATCHED = frozenset(
    (
        *("re.compile(text_format.body.head)", "re.compile(marker)", "re.compile(head)", "re.compile(tail)"),
        "re.compile(row.sure or row.opener)",
        *("regex.compile('|'.join((json, *heads)))", "regex.compile(f'{leftover}|{SILENT}')"),
        "regex.compile('|'.join((row.sure or row.opener for row in marked)))",
        *("regex.compile(bare)", "regex.compile(grammar.openers)"),
        *("re.compile(kind.opener)", "re.compile(pattern)"),
    )
)
# Of a user, who answers for their time; those of a template have no repetition inside of a repetition.
OF_USERS = frozenset(
    (
        *("re.compile(pattern)", "re.compile(pattern, re.DOTALL)", "re.compile(self.head, re.DOTALL)"),
        "re.compile(_pattern(self.field, 'close') or '\\\\Z', re.DOTALL)",
        "re.compile(f\"\\\\s*(?:{_pattern(self._thinking, 'open') or '(?!)'})\", re.DOTALL)",
        "re.compile(_pattern(self._thinking, 'close') or '\\\\Z', re.DOTALL)",
        "re.compile(args['tag_pattern'], re.DOTALL)",
        *("re.sub(place.format(mark), '', text, flags=re.DOTALL)", "re.finditer(either, raw, re.DOTALL)"),
    )
)
# The end of a piece of at most 160 characters is searched for them.
SEARCHED_IN_A_PIECE = frozenset(
    ("_PARTIAL_LINE", "_PARTIAL_OBJECT_LINE", "_BACKTICKS", "_SILENT_END", "_SPACE")
)
SHORT, LONG = 1_000, 4_000
LEAST = 0.005
"""Seconds below which a match of the long text is linear: 4,000 characters squared take more."""
LEAST_OF_READING = 0.05
MOST_GROWTH = 8
RUNS = (" ", "\n", "\n\n    ", '"', "'", "[", "]", "{", "}", "(", "<", "`", "\\", ",")
"""What a model may write without end, around and in its calls."""
MANY = 30
"""A repetition that may go on longer than this is pumped."""
BEHIND = ("", "\0", "!\n", ">", "]")
"""What may make a match fail behind what was repeated."""
CHARACTERS = " \n\ta0_-.\"'[]{}<>`|:=,;/\\#é"


class Place(NamedTuple):
    """An expression of the package that compiles a pattern, or gives one to a function of `re`."""

    file: str
    first: int
    last: int
    code: str
    name: str  # that it is assigned to in its module; empty in a function
    argument: ast.expr
    flags: str
    method: str


class Pattern(NamedTuple):
    """A pattern, where it is from, and whether it is searched for."""

    place: str
    engine: Any  # the module `re` or `regex`
    text: Any
    flags: int
    is_searched: bool


# Where patterns are from


def places() -> list[Place]:
    """Return every place of the package's source."""
    found: list[Place] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            id(node): target.id
            for statement in tree.body
            if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Name)
            for node in ast.walk(statement)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _function(node.func):
                file, name = path.relative_to(PACKAGE).as_posix(), names.get(id(node), "")
                flags = next((ast.unparse(each) for each in _flags(node)), "0")
                code, method = ast.unparse(node), _function(node.func)
                found.append(
                    Place(file, node.lineno, node.end_lineno or 0, code, name, node.args[0], flags, method)
                )
    return found


def _function(node: ast.expr) -> str:
    """Return the name of a function of `re` or `regex` that takes a pattern; empty for anything else."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return ""
    return node.attr if node.value.id in ("re", "regex") and node.attr in FUNCTIONS else ""


def _flags(node: ast.Call) -> Iterator[ast.expr]:
    for part in (*node.args[1:], *(keyword.value for keyword in node.keywords)):
        if re.fullmatch(r"re\.[A-Z]+( \| re\.[A-Z]+)*", ast.unparse(part)):
            yield part


def noted(modules: tuple[Any, ...]) -> dict[tuple[str, int], set[tuple[Any, Any, int]]]:
    """Note what is compiled from now on, by file and line."""
    notes: dict[tuple[str, int], set[tuple[Any, Any, int]]] = {}

    def noting(engine: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        def note(pattern: Any, *others: Any, **named: Any) -> Any:
            frame = sys._getframe(1)
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(PACKAGE):
                place = file.relative_to(PACKAGE).as_posix(), frame.f_lineno
                flags = next(
                    (each for each in (*others, *named.values()) if isinstance(each, re.RegexFlag)), 0
                )
                notes.setdefault(place, set()).add((engine, getattr(pattern, "pattern", pattern), int(flags)))
            return function(pattern, *others, **named)

        return note

    for engine in modules:
        for name in FUNCTIONS:
            setattr(engine, name, noting(engine, getattr(engine, name)))
    return notes


def run_readers() -> None:
    """Run what compiles patterns in functions."""
    from sigadapt.adapters.passes import tool_fields
    from sigadapt.adapters.passes.names import aliases
    from sigadapt.providers import ROUTES
    from sigadapt.response import choice_from_text
    from sigadapt.text.calls_field import Layout
    from sigadapt.text.formats import FORMATS
    from sigadapt.text.gate import FormatsGate, TextGate
    from sigadapt.text.reader import read_text
    from sigadapt.trust.echoes import Echoes

    tools = [{"name": "get_weather", "parameters": {"type": "object"}}]
    schemas: dict[str, Any] = {"get_weather": {}, "now": {}}
    layouts = [Layout("calls", marker, ("answer",)) for marker in ("[[ ## {} ## ]]", "<{}>", '"{}":')]
    FormatsGate([FORMATS[0].opener]).take("a")
    for each in FORMATS:
        each.shape("get_weather", {})
        choice_from_text(f"<think>a</think> `b`\n~~~\nc\n~~~\n{each.example}", tools)
    choice_from_text("a\n</seed:think>\nb", tools)
    for call_format in ("hermes", "plain-json", "gemma3-tool-code"):
        TextGate(schemas, ["answer"], call_format=call_format).take("`a`\n```\nb")
    TextGate(schemas, ["answer"]).take("<think>a")
    for layout in layouts:
        TextGate(schemas, ["answer"], layout=layout).take("a")
        read_text('{"calls": [', schemas, layout=layout)
    for route in ROUTES:
        aliases(["get.weather"], route.names.pattern, route.names.longest)
        for kind in ("image", "file"):
            route.results.takes({"type": kind, "data": "", "mime_type": "a/b"})
        tool_fields.lost_at_root({"function": {"parameters": {"allOf": []}}}, route)
        if route.search:
            tool_fields._sendable({"type": "tool_search"}, 0, route, [])
    echoes = Echoes(["abcd%efghij"])
    for text in ("abcd%efghij", "abcd%25efg%68ij", "abcd%25%65fghij"):  # as it is, and escaped
        echoes.without_secrets(text)


def patterns() -> tuple[list[Pattern], list[str]]:
    """Return the package's patterns, and the places of which none is known."""
    notes = noted((re, regex))
    package = importlib.import_module("sigadapt")
    names = [module.name for module in pkgutil.walk_packages(package.__path__, "sigadapt.")]
    modules = {name: importlib.import_module(name) for name in names if not name.endswith("__main__")}
    modules["sigadapt"] = package
    run_readers()
    source = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    found, unknown = dict[Pattern, None](), list[str]()
    for place in places():
        module = modules[
            "sigadapt." + place.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        ]
        engine = regex if place.code.startswith("regex") else re
        lines = range(place.first, place.last + 1)
        known = {note for line in lines for note in notes.get((place.file, line), ())}
        if not known:
            try:
                text = eval(ast.unparse(place.argument), vars(module))
                known = {(engine, text, int(eval(place.flags, vars(module))))}
            except NameError:
                known = set()
        if not known and place.code not in OF_USERS:
            unknown.append(f"{place.file}:{place.first}: no pattern is known of {place.code}")
        searched = is_searched(place, source if not place.name.startswith("_") else text_of(place.file))
        where = f"{place.file}:{place.first}"
        found.update({Pattern(where, engine, text, flags, searched): None for engine, text, flags in known})
    return list(found), unknown


def text_of(file: str) -> str:
    """Return the source of a file of the package."""
    return (PACKAGE / file).read_text(encoding="utf-8")


def is_searched(place: Place, source: str) -> bool:
    """Return whether a pattern is searched for, and not only matched where a reader stands."""
    if place.method != "compile":
        return place.method in SEARCHING
    if not place.name:
        return place.code not in MATCHED
    if place.name in SEARCHED_IN_A_PIECE:
        return False
    name = re.escape(place.name)
    return (
        re.search(rf"\b{name}(?:\[\w+\])?\.(?:{'|'.join(SEARCHING)})\b|search\({name}\b", source) is not None
    )


# What could make them slow


def texts_of(parts: Any, turn: int = 0) -> str:
    """Return a text that a pattern's parts match, looking around aside; `turn` chooses among several."""
    text = ""
    for code, value in parts:
        if code is codes.LITERAL:
            text += chr(value)
        elif code in (codes.NOT_LITERAL, codes.ANY, codes.IN):
            characters = characters_of(code, value)
            text += characters[turn % len(characters)]
        elif code is codes.BRANCH:
            text += texts_of(value[1][turn % len(value[1])], turn)
        elif code is codes.SUBPATTERN:
            text += texts_of(value[3], turn)
        elif code in REPETITIONS:
            least, most, inner = value
            text += texts_of(inner, turn) * max(least, min(turn, most, 1))
    return text


REPETITIONS = (codes.MAX_REPEAT, codes.MIN_REPEAT, getattr(codes, "POSSESSIVE_REPEAT", None))


def characters_of(code: Any, value: Any) -> str:
    """Return some characters that a part of one character matches."""
    if code is codes.ANY:
        return CHARACTERS
    if code is codes.NOT_LITERAL:
        return CHARACTERS.replace(chr(value), "")
    matching = "".join(each for each in CHARACTERS if _is_in(value, each))
    return matching or next(
        chr(it if op is codes.LITERAL else it[0]) for op, it in value if op in ONE_OR_MORE
    )


ONE_OR_MORE = (codes.LITERAL, codes.RANGE)
CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}


def _is_in(members: Any, character: str) -> bool:
    is_negative, is_member = False, False
    for code, value in members:
        if code is codes.NEGATE:
            is_negative = True
        elif code is codes.LITERAL:
            is_member = is_member or chr(value) == character
        elif code is codes.RANGE:
            is_member = is_member or value[0] <= ord(character) <= value[1]
        else:
            is_member = is_member or re.match(CATEGORIES[value], character) is not None
    return is_member is not is_negative


def attacks(parts: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield what leads to a part of a pattern, and what to repeat there."""
    for code, value in parts:
        if code in REPETITIONS:
            inner = value[2]
            if value[1] > MANY:
                yield from ((before, texts_of(inner, turn)) for turn in range(3))
            if (
                value[1] > MANY
                and len(inner) == 1
                and inner[0][0] in (codes.IN, codes.ANY, codes.NOT_LITERAL)
            ):
                yield from ((before, character) for character in characters_of(*inner[0]))
            yield from attacks(inner, before)
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from attacks(branch, before)
        elif code is codes.SUBPATTERN:
            yield from attacks(value[3], before)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from attacks(value[1], before)
        before += texts_of([(code, value)], 1)
        yield "", before
        yield "", texts_of([(code, value)], 1)


def seconds(match: Callable[[Any], Any], text: Any, least: float = LEAST) -> float:
    """Return the processor time of a match, the least of three."""
    times: list[float] = []
    for _ in range(3):
        begun = time.process_time()
        match(text)
        times.append(time.process_time() - begun)
        if times[-1] < least:
            break
    return min(times)


def slow_text(pattern: Pattern) -> str | None:
    """Return a text whose match takes more than its length, in words; None if there is none."""
    text = pattern.text.decode("latin-1") if isinstance(pattern.text, bytes) else pattern.text
    # Only `regex` takes one name for two groups; and `re` takes no possessive repetition before Python 3.11.
    plain = re.sub(r"(?<=[^\\][+*?])\+", "", text)
    if pattern.engine is regex:
        plain = re.sub(r"\(\?P<\w+>", "(", plain).replace("(?P=q)", "[\"']")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = parser.parse(plain, pattern.flags)
    pumps = {*attacks(parts), *(("", character) for character in CHARACTERS)}
    compiled = pattern.engine.compile(pattern.text, pattern.flags)
    whole = compiled.search if pattern.is_searched else compiled.match
    methods: list[tuple[Any, tuple[str, ...]]] = [(whole, BEHIND)]
    if pattern.engine is regex:
        methods.append((partial(whole, partial=True), ("",)))
    for method, behinds in methods:
        for before, pump in sorted(each for each in pumps if each[1]):
            for behind in behinds:
                short, long = (before + pump * max(2, size // len(pump)) + behind for size in (SHORT, LONG))
                if isinstance(pattern.text, bytes):
                    short, long = (each.encode("latin-1", "replace") for each in (short, long))
                took = seconds(method, long)
                if took > LEAST and took > MOST_GROWTH * seconds(method, short):
                    return f"{before!r} + {pump!r} * n + {behind!r} ({took:.3f} s)"
    return None


def slow_formats() -> list[str]:
    """Return the formats of calls that are read slowly with a long run somewhere in the call, in words."""
    from sigadapt.response import choice_from_text
    from sigadapt.text.formats import FORMATS

    tools = [{"name": "get_weather", "parameters": {"type": "object"}}]
    read = partial(choice_from_text, tools=tools)
    faults: list[str] = []
    for each in FORMATS:
        parts = re.findall(r"\w+|\s+|[^\w\s]+", each.example)
        for place, run in product(range(len(parts) + 1), RUNS):
            before, behind = "".join(parts[:place]), "".join(parts[place:])
            short, long = (before + run * (size // len(run)) + behind for size in (SHORT, LONG))
            took = seconds(read, long, LEAST_OF_READING)
            if took > LEAST_OF_READING and took > MOST_GROWTH * seconds(read, short, LEAST_OF_READING):
                faults.append(f"{each.name} is slow on {before!r} + {run!r} * n + {behind!r} ({took:.3f} s)")
    return faults


def main() -> int:
    """Print the formats that are read slowly and the patterns that are slow; return whether there are any."""
    found, faults = patterns()
    for pattern in found:
        print(f"pumping {pattern.place}: {pattern.text!r}", file=sys.stderr, flush=True)
        slow = slow_text(pattern)
        if slow is not None:
            faults.append(f"{pattern.place}: {pattern.text!r} is slow on {slow}")
    faults += slow_formats()
    print("\n".join((*faults, f"{len(found)} patterns, {len(faults)} faults")))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
