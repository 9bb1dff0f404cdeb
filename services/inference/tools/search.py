"""What the gateway expects of a search engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One finding.

    Attributes:
        url: an http or https address.
        title: the page's title; may be empty.
        text: what the page says, as far as the engine tells; may be empty.
        age: how old the page is, in the engine's words; may be empty.
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
        allowed_domains: Sequence[str],
        blocked_domains: Sequence[str],
    ) -> Sequence[SearchResult]:
        """Return at most `count` findings, the best first.

        Raises:
            GatewayError: the engine refuses the query, limits its rate, is down or too slow.
        """
        ...
