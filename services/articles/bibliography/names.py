"""Names of persons: as BibTeX writes them, and in parts."""

import re
from typing import NamedTuple

_AND = re.compile(r"(?<=\s)and(?=\s)", re.IGNORECASE)


class NameParts(NamedTuple):
    """A family name with its particles, given names, and a suffix such as Jr."""

    family: str
    given_names: str = ""
    suffix: str = ""

    def __str__(self) -> str:
        """Return the name as BibTeX writes it, the family name first."""
        return ", ".join(filter(None, (self.family, self.suffix, self.given_names)))


def split_names(value: str) -> list[str]:
    """Return the names in a value of BibTeX, which "and" separates outside of braces."""
    names: list[str] = []
    start = depth = at = 0
    for match in _AND.finditer(value):
        depth += _depth(value[at : match.start()])
        at = match.start()
        if depth == 0:
            names.append(value[start : match.start()])
            start = match.end()
    names.append(value[start:])
    return [name for name in (each.strip() for each in names) if name]


def is_braced(name: str) -> bool:
    """Return whether one pair of braces encloses a whole value."""
    if not (name.startswith("{") and name.endswith("}")):
        return False
    depth = 0
    for position, character in enumerate(name):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return position == len(name) - 1
    return False


def parts_of(name: str) -> NameParts:
    """Return the parts of a name, by the rules of BibTeX."""
    parts = [part.strip() for part in name.split(",")]
    if len(parts) >= 3:
        return NameParts(parts[0], ", ".join(parts[2:]), parts[1])
    if len(parts) == 2:
        return NameParts(parts[0], parts[1])
    words = name.split()
    if len(words) < 2:
        return NameParts(name)
    first = next(
        (at for at, word in enumerate(words[:-1]) if at and word[:1].islower()), len(words) - 1
    )
    return NameParts(" ".join(words[first:]), " ".join(words[:first]))


def _depth(text: str) -> int:
    return text.count("{") - text.count("}")
