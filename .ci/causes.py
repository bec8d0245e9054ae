"""Say on one screen which tests failed and why: `causes.py JUNIT.XML`, which pytest's `--junitxml` writes.

Tests that fail with the same error are one row: how many, the error, and the file with most of them. The exit
status says whether any failed.
"""

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

MOST_ROWS = 30
WIDTH = 110
_VARIES = re.compile(r"0x[0-9a-f]+|\d+")
_PLACE = re.compile(r"^E\s+")
_ERROR = re.compile(r"E\s+[\w.]*(Error|Exception|Warning|Invalid|Failed)\w*")


def cause_of(fault: ET.Element) -> str:
    """Return the error of a test that failed, without what differs between two runs."""
    text = fault.text or ""
    lines = [line for line in text.splitlines() if _PLACE.match(line)]
    errors = [line for line in lines if _ERROR.match(line)]
    told = (errors or lines or [fault.get("message", "") or text])[0]
    return _VARIES.sub("#", _PLACE.sub("", told)).strip()[:WIDTH]


def causes(report: Path) -> tuple[int, dict[str, Counter[str]]]:
    """Return how many tests ran, and the files of those that failed, by cause."""
    files: defaultdict[str, Counter[str]] = defaultdict(Counter)
    cases = [*ET.parse(report).iter("testcase")]  # noqa: S314  (pytest wrote it)
    for case in cases:
        for fault in (*case.iter("failure"), *case.iter("error")):
            place = str(case.get("classname") or case.get("name")).removeprefix("tests.")
            files[cause_of(fault)][place] += 1
    return len(cases), files


def lines(count: int, files: dict[str, Counter[str]]) -> list[str]:
    """Return the screen."""
    rows = sorted(files.items(), key=lambda row: -row[1].total())
    failed = sum(places.total() for _, places in rows)
    screen = [f"{count} tests, {failed} failed, {len(rows)} causes"]
    for cause, places in rows[:MOST_ROWS]:
        (place, _), *others = places.most_common()
        beside = f" and {len(others)} more" if others else ""
        screen += [f"{places.total():>5}  {cause}", f"       {place}{beside}"]
    if rows[MOST_ROWS:]:
        screen.append(f"       ... and {len(rows) - MOST_ROWS} more causes")
    return screen


if __name__ == "__main__":
    found = causes(Path(sys.argv[1]))
    print("\n".join(lines(*found)))
    sys.exit(1 if found[1] else 0)
