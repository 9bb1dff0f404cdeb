"""Page tokens: where a list goes on, as text that means nothing to whoever carries it."""

import base64
import binascii

from services.common.errors import GatewayError, invalid

_SEPARATOR = "."


def write_token(*position: int | str) -> str:
    """Return the token of a position in a list."""
    text = _SEPARATOR.join(map(str, position))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_time_and_id(token: str) -> tuple[int, str]:
    """Return the position that `write_token` was given: a time and an id.

    Raises:
        GatewayError: invalid_request, when it is no such token.
    """
    milliseconds, separator, name = _read(token).partition(_SEPARATOR)
    # PostgreSQL takes no NUL, and no id has one.
    if not (separator and name and name.isprintable()):
        raise _no_token()
    return _to_int(milliseconds), name


def read_number(token: str) -> int:
    """Return the position that `write_token` was given: a number.

    Raises:
        GatewayError: invalid_request, when it is no such token.
    """
    return _to_int(_read(token))


def _read(token: str) -> str:
    try:
        padded = token + "=" * (-len(token) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError) as error:
        raise _no_token() from error


def _to_int(text: str) -> int:
    # Larger ones are no column's.
    if not text.isdecimal() or len(text) > len(str(1 << 62)) - 1:
        raise _no_token()
    return int(text)


def _no_token() -> GatewayError:
    return invalid("page_token", "page_token: takes `next_page_token` of the page before")
