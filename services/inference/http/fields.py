"""Headers as they go on the wire."""

import re
from collections.abc import Collection

from services.common.errors import invalid

# What would end a line of the head, or never stands in one (RFC 9110, section 5.5).
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def fields(headers: Collection[tuple[str, str]]) -> str:
    """Return headers as lines of a head, each with its CRLF.

    Raises:
        GatewayError: invalid, when one holds what no header can.
    """
    for name, value in headers:
        text = name + value
        # Most are printable, which is seen much faster.
        if not text.isprintable() and _UNSENDABLE.search(text):
            raise invalid(name, f"{name}: holds characters that cannot be sent")
    return "".join([f"{name}: {value}\r\n" for name, value in headers])
