"""References: the fields of a bibliographic entry, and the numbers of citations."""

import re
from collections.abc import Callable, Mapping

from services.articles.tree.errors import EditError, EditErrorCode, join_pointer
from services.articles.tree.nodes import Json
from services.articles.tree.values import array, mapping, schema_error, string
from services.common.articles import limits

Reference = Mapping[str, Json]

# Fields that hold one string; `author` holds several; any other may hold either.
_STRINGS = frozenset(
    "name tag title journal year type volume issue pages publisher doi url isbn abstract".split()
)
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)


def parse_reference(value: object, pointer: str, new_id: Callable[[], str]) -> Reference:
    """Parse a new ArticleReference; without an id it gets a new id.

    Raises:
        EditError: a key or a value is wrong.
    """
    fields = _checked(value, pointer)
    identifier = fields.get("id", None) if "id" in fields else new_id()
    return {"id": identifier, **{key: v for key, v in fields.items() if v is not None}}


def parse_patch(value: object, pointer: str) -> tuple[str, Reference]:
    """Parse a change of a reference into its id and a merge patch of the other fields.

    Raises:
        EditError: the id is missing, or a key or a value is wrong.
    """
    fields = _checked(value, pointer)
    identifier = fields.get("id")
    if not isinstance(identifier, str):
        raise EditError(
            EditErrorCode.FIELDS, join_pointer(pointer, "id"), "is required to update a reference"
        )
    return identifier, {key: v for key, v in fields.items() if key != "id"}


def citation_numbers(cites: tuple[str, ...]) -> dict[str, int]:
    """Return the number of each cited reference, 1 for the first that appears.

    Args:
        cites: ids of references in order of first appearance, as `BlockSequence.cites` returns.
    """
    return {reference_id: number for number, reference_id in enumerate(cites, 1)}


def _checked(value: object, pointer: str) -> Reference:
    fields: dict[str, Json] = {}
    for key, entry in mapping(value, pointer).items():
        entry_pointer = join_pointer(pointer, str(key))
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise schema_error(
                entry_pointer, "invalid field name: must be a letter, then letters, digits, _ or -"
            )
        if key == "id":
            fields[key] = string(entry, entry_pointer, limits.IDENTIFIER, empty=False)
        else:
            fields[key] = None if entry is None else _field(key, entry, entry_pointer)
    return fields


def _field(key: str, entry: object, pointer: str) -> Json:
    if key == "author" or (isinstance(entry, list | tuple) and key not in _STRINGS):
        return [
            string(item, join_pointer(pointer, index), limits.LEAF_TEXT)
            for index, item in enumerate(array(entry, pointer))
        ]
    if not isinstance(entry, str) and key not in _STRINGS:
        raise schema_error(pointer, "must be a string or an array of strings")
    return string(entry, pointer, limits.LEAF_TEXT)
