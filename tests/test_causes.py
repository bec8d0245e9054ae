"""`tasks.py test --dspy X` says on one screen what fails and why."""

from pathlib import Path
from xml.sax.saxutils import escape

import causes

GONE = "E   AttributeError: module 'dspy' has no attribute 'x' at 0x7f\n\ntests/a.py:3: AttributeError"
ODD = "E   assert 3 == 4\nE    +  where 3 = len([1])"


def report(path: Path, faults: list[tuple[str, str]], passed: int = 0) -> Path:
    failure = "<failure message='m'>{}</failure>"
    rows = [
        f'<testcase classname="tests.{place}" name="t">{failure.format(escape(text))}</testcase>'
        for place, text in faults
    ]
    rows += ['<testcase classname="tests.ok" name="t"/>'] * passed
    file = path / "tests.xml"
    file.write_text(f"<testsuites><testsuite>{''.join(rows)}</testsuite></testsuites>", encoding="utf-8")
    return file


def test_tests_with_the_same_error_are_one_row(tmp_path: Path) -> None:
    faults = [("a", GONE), ("b", GONE.replace("0x7f", "0x12")), ("b", GONE), ("c", ODD)]
    assert causes.lines(*causes.causes(report(tmp_path, faults, passed=2))) == [
        "6 tests, 4 failed, 2 causes",
        "    3  AttributeError: module 'dspy' has no attribute 'x' at #",
        "       b and 1 more",
        "    1  assert # == #",
        "       c",
    ]


def test_any_number_of_causes_is_one_screen(tmp_path: Path) -> None:
    words = [f"{one}{two}" for one in "abcdefghij" for two in "abcdefghij"]
    faults = [("a", f"E   ValueError: {word}") for word in words]
    screen = causes.lines(*causes.causes(report(tmp_path, faults)))
    assert len(screen) == 2 * causes.MOST_ROWS + 2
    assert screen[-1].strip() == f"... and {len(words) - causes.MOST_ROWS} more causes"
