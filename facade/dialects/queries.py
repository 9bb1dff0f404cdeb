"""Query parameters that several lists have."""

from collections.abc import Mapping

from services.common.errors import invalid


def parse_limit(query: Mapping[str, str], *, default: int, largest: int) -> int:
    """Return the `limit` of a list.

    Raises:
        GatewayError: invalid, when it is not a whole number from 1 to `largest`.
    """
    text = query.get("limit")
    if text is None:
        return default
    # Nine digits are enough to be out of range, and int() of very many is slow.
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 1 <= number <= largest:
        raise invalid("limit", f"limit: must be an integer from 1 to {largest}")
    return number


def parse_cursor(query: Mapping[str, str], name: str) -> str | None:
    """Return the id that a page lies beside, or None where no `name` is given.

    Raises:
        GatewayError: invalid, for one that is no id.
    """
    cursor = query.get(name)
    if cursor is not None and not (cursor and cursor.isascii()):
        raise invalid(name, f"{name}: takes the id of a file")
    return cursor
