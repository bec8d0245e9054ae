"""A secret is found in every form, however long it is and however many there are."""

import html
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import work

from sigadapt.trust.echoes import Echoes

ODD = "k%25e/y&amp;é\\\"'+ <>"
LONG = "".join(chr(97 + (i * 7 + i // 26) % 26) for i in range(2_000)) + ODD * 100
FORMS: dict[str, Callable[[str], str]] = {
    "text": str,
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON twice": lambda key: json.dumps(json.dumps(key))[3:-3],
    "escapes alone": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "an address": quote,
    "an address twice": lambda key: quote(quote(key)),
    "HTML": html.escape,
    "base64": lambda key: b64encode(key.encode()).decode(),
    "base64 behind a name": lambda key: b64encode(f"user:{key}".encode()).decode(),
    "base64 of addresses": lambda key: urlsafe_b64encode(key.encode()).decode(),
    "digits": lambda key: key.encode().hex(),
    "large digits": lambda key: key.encode().hex().upper(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("key", [LONG, LONG[:30], ODD], ids=["long", "short", "odd"])
def test_a_key_is_found_in_every_form(form: str, key: str) -> None:
    """loopback-provider: A key that comes back is not recorded."""
    written = FORMS[form](key)
    hidden = Echoes([key]).without_secrets(f"<p>It is {written}!</p>")
    assert hidden.endswith("!</p>")
    assert "***" in hidden
    assert written not in hidden
    assert len(hidden) < 30


@given(
    st.lists(st.text("ab%&\\", min_size=8, max_size=12), min_size=1, max_size=3),
    st.text("ab%&\\", max_size=9),
)
def test_characters_that_begin_their_own_escapes_are_found(keys: list[str], around: str) -> None:
    """loopback-provider: A key that comes back is not recorded."""
    for form in (str, quote, html.escape):
        written = form(keys[0])
        assert written not in Echoes(keys).without_secrets(f"{around} {written} {around}")


def test_a_long_key_costs_what_its_length_costs() -> None:
    """loopback-provider: A key that comes back is not recorded."""
    text = f"It is {LONG}, {quote(LONG)}, and {LONG[:1_500]}"

    def mask(length: int) -> int:
        return work(lambda: Echoes([LONG[:length]]).without_secrets(text))

    mask(10)
    assert mask(2_000) < 5 * mask(500)


def test_many_secrets_cost_no_more_for_each_text() -> None:
    """loopback-provider: A key that comes back is not recorded."""
    few, many = (Echoes([f"secret-number-{n:09}" for n in range(count)]) for count in (100, 1_600))
    text = "Nothing of this is one. " * 50
    few.without_secrets(text)
    assert work(lambda: many.without_secrets(text)) < 2 * work(lambda: few.without_secrets(text))
    assert many.without_secrets("It is secret-number-000001599.") == "It is ***."


def test_the_longest_secret_counts() -> None:
    """loopback-provider: A key that comes back is not recorded."""
    assert (
        Echoes(["key-12345678", "key-12345678-abc"]).without_secrets("a key-12345678-abc key-12345678-x")
        == "a *** ***-x"
    )
    assert Echoes(["12345678"]).without_secrets('{"n": 12345678}') == '{"n": 99999999}'
    assert Echoes([]).without_secrets("x") == "x"
