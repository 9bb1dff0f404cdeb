"""Opaque page tokens: positions in a list. Pure."""

import base64

from services.common.errors import GatewayError, invalid

_SEPARATOR = "."


def write_token(*position: int | str) -> str:
    """Return the token of a position in a list."""
    text = _SEPARATOR.join(map(str, position))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_time_and_id(token: str) -> tuple[int, str]:
    """Parse the token of a position that is a time and an id.

    Raises:
        GatewayError: invalid_request, when the token is not valid.
    """
    milliseconds, separator, name = read_text(token).partition(_SEPARATOR)
    if not (separator and name and name.isprintable()):
        raise invalid_token()
    return _to_int(milliseconds), name


def read_number(token: str) -> int:
    """Parse the token of a position that is a number.

    Raises:
        GatewayError: invalid_request, when the token is not valid.
    """
    return _to_int(read_text(token))


def read_text(token: str) -> str:
    """Parse the token of a position that is a text without NUL.

    Raises:
        GatewayError: invalid_request, when the token is not valid.
    """
    try:
        padded = token + "=" * (-len(token) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except ValueError:
        raise invalid_token() from None
    # PostgreSQL accepts no NUL.
    if "\0" in text:
        raise invalid_token()
    return text


def _to_int(text: str) -> int:
    # Larger numbers do not fit into a column.
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(1 << 62)) - 1:
        raise invalid_token()
    return int(text)


def invalid_token() -> GatewayError:
    """Return the error for an invalid page token."""
    return invalid("page_token", "page_token: must be the `next_page_token` of the previous page")
