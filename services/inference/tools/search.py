"""The interface of web search."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A search result.

    Attributes:
        url: http or https.
        title: may be empty.
        text: an extract of the page, without markup; may be empty.
        age: time of publication or change, in the backend's format; may be empty.
    """

    url: str
    title: str
    text: str
    age: str


class Searches(Protocol):
    """A web search backend."""

    async def search(
        self,
        query: str,
        *,
        count: int,
        allowed_domains: Sequence[str] = (),
        blocked_domains: Sequence[str] = (),
    ) -> Sequence[SearchResult]:
        """Return search results, best first.

        Args:
            query: the search query.
            count: maximum results; the operator may set a lower limit.
            allowed_domains: if not empty, results are only from these; see `domains`.
            blocked_domains: no results are from these.

        Raises:
            GatewayError: invalid_request, if the query or a domain is malformed; an upstream reason
                if the backend failed. The message names the backend and contains no secrets.
        """
        ...
