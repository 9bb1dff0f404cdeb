"""Parts of web search options that both dialects have: the user's location, and domains."""

from collections.abc import Sequence

from services.common.errors import invalid

_PARTS = ("city", "region", "country", "timezone")
_MAX_PART = 100  # characters of each part of a location
_MAX_DOMAINS = 1_000


def location_in_words(given: object, path: str) -> str:
    """Return where the user is, in words for a model; "" where it is not said.

    Args:
        given: an object with city, region, country and timezone, each optional, or None.
        path: where it stands.

    Raises:
        GatewayError: invalid.
    """
    if given is None:
        return ""
    if not isinstance(given, dict):
        raise invalid(path, f"{path}: takes an object, such as {{'city': 'Bern', 'country': 'CH'}}")
    parts = []
    for name in _PARTS:
        part = given.get(name)
        if not part and part in (None, ""):
            continue
        if not isinstance(part, str) or len(part) > _MAX_PART or not part.isprintable():
            where = f"{path}.{name}"
            raise invalid(where, f"{where}: takes at most {_MAX_PART} printable characters")
        parts.append(f"time zone {part}" if name == "timezone" else part)
    return ", ".join(parts)


def domains(given: object, path: str) -> Sequence[str]:
    """Return a list of domains; none where nothing is given.

    Raises:
        GatewayError: invalid.
    """
    if given is None:
        return ()
    if (
        not isinstance(given, list)
        or len(given) > _MAX_DOMAINS
        or not all(isinstance(one, str) and one for one in given)
    ):
        raise invalid(path, f"{path}: takes a list of at most {_MAX_DOMAINS:,} domains")
    return given
