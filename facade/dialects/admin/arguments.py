"""The validated parts of a request of administration."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Arguments(NamedTuple):
    """The validated parts of a request.

    Attributes:
        ids: the ids in the path, by name.
        query: the query, of the endpoint's type.
        body: the body, of the endpoint's type; None if it has no body.
    """

    ids: Mapping[str, str]
    query: Any
    body: Any
