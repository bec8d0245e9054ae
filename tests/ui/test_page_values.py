"""What a page may show: links, files and errors."""

import pytest

from sigadapt import ToolResult
from sigadapt.server_tools import File
from sigadapt.ui.page.page_values import (
    address_of_file,
    safe_link,
    shown_file,
    words_of_error,
    words_of_failure,
)

BAD_LINKS = [
    *("javascript:alert(1)", "java\nscript:x", "//evil.example", "data:text/html,x", "https://", None),
    "ftp://a.example",
]


@pytest.mark.parametrize("url", BAD_LINKS)
def test_what_a_browser_could_run_is_no_link(url: str | None) -> None:
    """watching-runs: A page links to web pages alone"""
    assert safe_link(url) is None


def test_web_addresses_are_links() -> None:
    """watching-runs: A page links to web pages alone"""
    assert safe_link("HTTPS://a.example/x?q=javascript:1") == "HTTPS://a.example/x?q=javascript:1"


def test_a_file_has_a_type_that_no_browser_runs() -> None:
    """watching-runs: A page links to web pages alone"""
    assert address_of_file(File(data="QQ==", media_type="image/png")) == "data:image/png;base64,QQ=="
    assert address_of_file(File(data="QQ==", media_type="image/svg+xml")) == (
        "data:application/octet-stream;base64,QQ=="
    )
    assert address_of_file(File(data="<b>", media_type="image/png")) is None
    shown = shown_file(File(url="javascript:x", name="f", media_type="text/html"))
    assert shown == {"name": "f", "media_type": "application/octet-stream"}


def test_a_text_of_an_error_that_fails_costs_nothing() -> None:
    """watching-runs: An error is written by its type"""
    assert words_of_error(ValueError("secret"), lambda error: 1 / 0) == "ValueError"  # pyright: ignore[reportArgumentType, reportReturnType]
    assert words_of_error(ValueError("secret"), lambda error: "") == "ValueError"


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        ("ConnectionError: postgres://me:secret@db", "ConnectionError", "ConnectionError"),
        ("ConnectionError: postgres://me:secret@db", None, "ToolError"),
        ("Hunter2", None, "ToolError"),
        ({"error": "secret"}, None, "ToolError"),
    ],
)
def test_a_failed_tool_is_written_by_its_type(value: object, kind: str | None, words: str) -> None:
    """watching-runs: An error is written by its type"""
    result = ToolResult(call_id="c", name="f", value=value, is_error=True, error_type=kind)
    assert words_of_failure(result, lambda error: type(error).__name__) == words
