"""Web search options shared by both dialects: the user's location and domains."""

from collections.abc import Sequence

from services.common.errors import invalid

_PARTS = ("city", "region", "country", "timezone")
_MAX_PART = 100  # maximum length of each part of a location
_MAX_DOMAINS = 1_000


def location_in_words(location: object, path: str) -> str:
    """Return the user's location as text for a model, "" if it is not given.

    Args:
        location: an object with city, region, country and timezone, each optional, or None.
        path: path of the object.

    Raises:
        GatewayError: invalid.
    """
    if location is None:
        return ""
    if not isinstance(location, dict):
        raise invalid(
            path, f"{path}: must be an object, such as {{'city': 'Bern', 'country': 'CH'}}"
        )
    parts = []
    for name in _PARTS:
        part = location.get(name)
        if not part and part in (None, ""):
            continue
        if not isinstance(part, str) or len(part) > _MAX_PART or not part.isprintable():
            where = f"{path}.{name}"
            raise invalid(
                where, f"{where}: must be a string of at most {_MAX_PART} printable characters"
            )
        parts.append(f"time zone {part}" if name == "timezone" else part)
    return ", ".join(parts)


def domains(names: object, path: str) -> Sequence[str]:
    """Return a list of domains, empty if none are given.

    Raises:
        GatewayError: invalid.
    """
    if names is None:
        return ()
    if (
        not isinstance(names, list)
        or len(names) > _MAX_DOMAINS
        or not all(isinstance(one, str) and one for one in names)
    ):
        raise invalid(path, f"{path}: must be a list of at most {_MAX_DOMAINS:,} domains")
    return names
