"""Web searches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A page that a search found.

    Attributes:
        url: http or https.
        title: may be empty.
        text: an extract of the page, without markup; may be empty.
        age: when it was published or changed, as the backend says it; may be empty.
    """

    url: str
    title: str
    text: str
    age: str


class Searches(Protocol):
    """Searches the web."""

    async def search(
        self,
        query: str,
        *,
        count: int,
        allowed_domains: Sequence[str] = (),
        blocked_domains: Sequence[str] = (),
    ) -> Sequence[SearchResult]:
        """Return what a search found, the best first.

        Args:
            query: in the words of a search engine.
            count: results at most; fewer where the operator allows fewer.
            allowed_domains: where all results are from, when given; see `domains`.
            blocked_domains: where no result is from.

        Raises:
            GatewayError: invalid_request, when the query or a domain is none that can be
                searched for; a reason of an upstream's, when the backend failed. The message
                names the backend and no secret.
        """
        ...
