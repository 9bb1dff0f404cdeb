"""Opaque page tokens: positions in a list. Pure."""

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
        GatewayError: invalid_request, when the token is not valid.
    """
    milliseconds, separator, name = _read(token).partition(_SEPARATOR)
    # PostgreSQL accepts no NUL, and ids have none.
    if not (separator and name and name.isprintable()):
        raise _invalid_token()
    return _to_int(milliseconds), name


def read_number(token: str) -> int:
    """Return the position that `write_token` was given: a number.

    Raises:
        GatewayError: invalid_request, when the token is not valid.
    """
    return _to_int(_read(token))


def _read(token: str) -> str:
    try:
        padded = token + "=" * (-len(token) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError) as error:
        raise _invalid_token() from error


def _to_int(text: str) -> int:
    # Larger numbers fit no column.
    if not text.isdecimal() or len(text) > len(str(1 << 62)) - 1:
        raise _invalid_token()
    return int(text)


def _invalid_token() -> GatewayError:
    return invalid("page_token", "page_token: takes `next_page_token` of the page before")
