"""Serialize HTTP header fields."""

import re
from collections.abc import Collection

from services.common.errors import invalid

# Characters that end a header line or are not allowed in it (RFC 9110, section 5.5).
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def fields(headers: Collection[tuple[str, str]]) -> str:
    """Return header lines, each with its CRLF.

    Raises:
        GatewayError: invalid, if a header has characters that are not allowed.
    """
    for name, value in headers:
        text = name + value
        # Fast path for printable values.
        if not text.isprintable() and _UNSENDABLE.search(text):
            raise invalid(name, f"{name}: contains characters that are not allowed in a header")
    return "".join([f"{name}: {value}\r\n" for name, value in headers])
