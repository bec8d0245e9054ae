"""Addresses of the web, which a page may open and a provider may ask."""

from urllib.parse import urlsplit


def is_web_address(address: str) -> bool:
    """Return whether an address is one: `javascript:` and its kin run in the page itself."""
    if not address.isprintable() or " " in address:  # browsers leave out tabs and line ends
        return False
    try:
        parts = urlsplit(address)
    except ValueError:  # half of the brackets around an IPv6 address
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
