"""Mask what a recording must not hold: whatever is not known to be harmless, wherever it comes back.

A list of bad names is never whole, so these are lists of good ones: headers, names in a query, members of a
body, and members of a tool. A value under any other name is a secret. It is masked, and so is each echo of it
in the request and the response (`echoes.py`).
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

from sigadapt.json_values import Json, is_array, is_object, pointer
from sigadapt.providers import PROVIDERS
from sigadapt.trust.echoes import MASK, octets_of

LOOPBACK_KEY = "loopback"
"""The key that a loopback provider is asked with unless a test gives another; no secret."""
_OWN = frozenset((LOOPBACK_KEY, f"Bearer {LOOPBACK_KEY}"))

HARMLESS_QUERY = frozenset({"alt", "api-version", "beta"})
_HEADERS = frozenset(
    str.split("""
    accept accept-encoding accept-language anthropic-beta anthropic-version cache-control connection
    content-encoding content-length content-type host openai-beta origin pragma referer http-referer
    te transfer-encoding user-agent x-goog-api-client x-title
    """)
)
_HEADER_FAMILIES = ("x-stainless-", "sec-fetch-")
# What each provider documents as settings, as the conversation and of tools stands in its own file.
_DOCUMENTED = [provider.members for provider in PROVIDERS]
_MEMBERS = frozenset(chain.from_iterable(each.body for each in _DOCUMENTED))
_CONVERSATION = frozenset(each.conversation for each in _DOCUMENTED)
_TOOLS = frozenset(chain.from_iterable(each.tool_lists for each in _DOCUMENTED))
_PARTS_OF_TOOLS = frozenset(chain.from_iterable(each.tool_groups for each in _DOCUMENTED))
_MEMBERS_OF_TOOLS = frozenset(chain.from_iterable(each.tool for each in _DOCUMENTED))
_SCHEMA_NAMES = frozenset(("properties", "patternProperties", "$defs", "definitions"))
_SCHEMA_VALUES = frozenset(("default", "const", "example"))
_SCHEMA_LISTS = frozenset(("enum", "examples"))
_ADDRESSES = frozenset(("url", "server_url", "serverUrl", "base_url"))

_SECRET_MEMBER = re.compile(
    r"authorization|api[-_]?key|passw|secret|credential|cookie|^token$"
    r"|(?:access|auth|authorization|bearer|id|refresh|session)[-_]?token",
    re.IGNORECASE,
)  # also inside of what is harmless, such as a message
_SECRET_IN_TEXT = re.compile(
    r"://[^/\s:@]*:([^/\s@]+)@|\b[Bb]earer\s+([^\s\"',]+)"
    r"|\b((?:sk|gh[pousr]|xox[abprs]|AKIA|AIza)[-_]?[\w-]{16,})"  # the keys of large services say so
)
_QUOTES = "\"'{}[]()<>"
_SHORTEST_SECRET = 8  # characters; what is shorter, such as `ollama` or `EMPTY`, is a word of the messages


class Masking:
    """What is masked of one exchange, by JSON Pointers to the places in its line.

    Args:
        headers: the headers of the request.
        path: its path with the query.
    """

    def __init__(self, headers: Mapping[str, str], path: str) -> None:
        self.places: dict[str, None] = {}
        self._secrets: set[str] = set()
        self._texts: set[str] = set()  # which may hold secrets in pieces
        for name, value in headers.items():
            if name not in _HEADERS and not name.startswith(_HEADER_FAMILIES):
                self._texts.add(value)
                self._secrets |= {value, *re.findall(r"^[\w-]+ +(.+)", value)}  # behind a scheme, as Bearer
        url = urlsplit(path)
        for name, value in query_of(f"{url.query}&{url.fragment}"):
            if name not in HARMLESS_QUERY:
                self.places["/path"] = None
                self._secrets.add(value)

    def request(self, body: Json) -> Json:
        """Return a body with what is harmless."""
        harmless: Json = {}
        for key, part in body.items():
            place = "request", key
            if key in _MEMBERS:
                harmless[key] = self._conversation(part, place) if key in _CONVERSATION else part
            else:
                harmless[key] = self._tools(part, place) if key in _TOOLS else self._mask(part, place)
        self._secrets.update(secrets_in(harmless))
        return harmless

    def _conversation(self, value: Any, place: tuple[str, ...]) -> Any:
        """Return messages, in which tools may stand that were found or offered late."""
        if is_array(value):
            return [self._conversation(part, (*place, str(number))) for number, part in enumerate(value)]
        if not is_object(value):
            return value
        harmless: Json = {}
        for key, part in value.items():
            mask_inside = self._tools if key == "tools" else self._conversation
            harmless[key] = mask_inside(part, (*place, key))
        return harmless

    def _tools(self, value: Any, place: tuple[str, ...]) -> Any:
        if is_array(value):
            return [self._tools(part, (*place, str(number))) for number, part in enumerate(value)]
        if not is_object(value):
            return self._mask(value, place)
        harmless: Json = {}
        for key, part in value.items():
            inner = *place, key
            if key in _MEMBERS_OF_TOOLS:
                harmless[key] = self._schema(part, inner)
            elif key in _PARTS_OF_TOOLS:
                harmless[key] = self._tools(part, inner)
            elif key in _ADDRESSES and isinstance(part, str):
                harmless[key] = self._address(part, inner)
            else:
                harmless[key] = self._mask(part, inner)
        return harmless

    def _schema(self, value: Any, place: tuple[str, ...], *, is_secret: bool = False) -> Any:
        """Return a schema without the values of parameters that are named as credentials."""
        if is_array(value):
            return [self._schema(part, (*place, str(n)), is_secret=is_secret) for n, part in enumerate(value)]
        if not is_object(value):
            return value
        harmless: Json = {}
        for key, part in value.items():
            inner = *place, key
            # The default or an example of a parameter such as `api_key` may be a real key.
            if is_secret and key in _SCHEMA_VALUES:
                harmless[key] = self._mask(part, inner)
            elif is_secret and key in _SCHEMA_LISTS and is_array(part):
                harmless[key] = [MASK] if self._mask(part, inner) == MASK else part
            elif key in _SCHEMA_VALUES or key in _SCHEMA_LISTS:
                harmless[key] = part
            elif key in _SCHEMA_NAMES and is_object(part):
                harmless[key] = self._named_schemas(part, inner, is_secret=is_secret)
            else:
                harmless[key] = self._schema(part, inner, is_secret=is_secret)
        return harmless

    def _named_schemas(self, schemas: Json, place: tuple[str, ...], *, is_secret: bool) -> Json:
        """Return the schemas of an object's members; what is inside of a credential is one, too."""
        harmless: Json = {}
        for name, schema in schemas.items():
            is_credential = is_secret or bool(_SECRET_MEMBER.search(name))
            harmless[name] = self._schema(schema, (*place, name), is_secret=is_credential)
        return harmless

    def _address(self, url: str, place: tuple[str, ...]) -> str:
        """Return the scheme and the host: some servers have their key in the path."""
        try:
            parts = urlsplit(url)
            origin = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        except ValueError:
            return self._mask(url, place)
        if url.rstrip("/") == origin:
            return url
        self._mask(url, place)
        self._secrets |= {value for _, value in query_of(f"{parts.query}&{parts.fragment}")}
        self._secrets |= {unquote(part) for part in (parts.username, parts.password) if part}
        # A word in small letters, such as `messages`, is no key.
        words = map(unquote, parts.path.split("/"))
        self._secrets |= {word for word in words if not word.islower() or _NUMBER.search(word)}
        return f"{origin}/{MASK}" if parts.hostname else MASK

    def _mask(self, value: Any, place: tuple[str, ...]) -> Any:
        """Return a mask in the place of a value; true, false, null and what is empty are no secrets."""
        if value is None or isinstance(value, bool) or value in ("", [], {}):
            return value
        self.places[pointer(place)] = None
        pending = [value]
        while pending:
            part = pending.pop()
            if is_object(part) or is_array(part):
                pending += part.values() if is_object(part) else part
            elif not isinstance(part, bool):
                self._texts.add(str(part))
        return MASK

    @property
    def secrets(self) -> set[str]:
        """The texts to be masked wherever they stand."""
        pieces = {piece for text in self._texts for piece in re.split(r"[\s,;]+", text)}
        cookies = {piece.partition("=")[2] for piece in pieces}
        pieces |= cookies
        # What stands in quotes, as in Digest or JSON, without the quotes of the text around it.
        quotes = re.compile(f"[{re.escape(_QUOTES)}]+")
        pieces |= {part for each in pieces | self._texts for part in quotes.split(each)}
        words = self._secrets | self._texts | {piece.strip(_QUOTES) for piece in pieces}
        words |= {cookie for cookie in cookies if not cookie.startswith(('"', "'"))}
        for word in [word for word in words if len(word) % 4 == 0 and _IN_BASE64.fullmatch(word)]:
            # The password of Basic.
            words |= {*b64decode(word).decode("utf-8", "surrogateescape").split(":", 1)}
        words |= {octets_of(word).decode("latin-1") for word in words}  # as some write headers
        words -= _MEMBERS | _TOOLS | _PARTS_OF_TOOLS | _MEMBERS_OF_TOOLS  # what JSON is made of
        return {word for word in words if len(word) >= _SHORTEST_SECRET and word not in _OWN}


def query_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a query. What stands alone in it is a value without a name."""
    for part in re.split("[&;]", text):
        name, _, value = map(unquote_plus, part.partition("="))
        if part:
            yield (name, value) if value else ("", name)


def secrets_in_settings(settings: Mapping[str, Any]) -> set[str]:
    """Return the keys in the settings of a language model, or in an environment."""
    headers: Any = settings.get("extra_headers")
    masking = Masking(headers if is_object(headers) else {}, "")
    return masking.secrets | long_secrets_in(dict(settings))


def long_secrets_in(value: Any) -> set[str]:
    """Return the texts of `secrets_in` that are too long to be words."""
    return {text for text in secrets_in(value) if len(text) >= _SHORTEST_SECRET and text not in _OWN}


_NUMBER = re.compile(r"\d")
_IN_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def secrets_in(body: Any) -> Iterator[str]:
    """Yield the texts in a body that stand under the name of a secret, or in an address, at any depth."""
    pending: list[tuple[str, Any]] = [("", body)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, str):
            if _SECRET_MEMBER.search(name):
                yield value
            for groups in _SECRET_IN_TEXT.findall(value):
                yield from filter(None, groups)
            with suppress(ValueError, RecursionError):  # arguments and results are JSON in a text
                pending += [(name, json.loads(value))] if value.lstrip().startswith(("{", "[")) else []
        elif is_object(value):
            pending += value.items()
            if _SECRET_MEMBER.search(name):  # the schema of such a parameter
                pending += [(name, value[key]) for key in _SCHEMA_VALUES | _SCHEMA_LISTS if key in value]
        elif is_array(value):
            pending += [(name, item) for item in value]
