"""Query parameters shared by several list endpoints."""

from collections.abc import Mapping

from services.common.errors import invalid
from services.common.text.texts import parse_digits


def parse_limit(
    query: Mapping[str, str], *, default: int, largest: int, name: str = "limit"
) -> int:
    """Parse the limit of a list, the parameter `name`.

    Raises:
        GatewayError: invalid, if it is not a whole number from 1 to `largest`.
    """
    text = query.get(name)
    if text is None:
        return default
    # Nine digits already exceed the range, and int() of many digits is slow.
    number = parse_digits(text) or 0
    if not 1 <= number <= largest:
        raise invalid(name, f"{name}: must be an integer from 1 to {largest}")
    return number


def parse_cursor(query: Mapping[str, str], name: str) -> str | None:
    """Parse the id of a page cursor; return None if the parameter is missing.

    Raises:
        GatewayError: invalid, if it is not an id.
    """
    cursor = query.get(name)
    if cursor is not None and not (cursor and cursor.isascii()):
        raise invalid(name, f"{name}: must be the id of a file")
    return cursor
