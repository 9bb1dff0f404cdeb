"""The definition of a search engine, and the search shared by all engines."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from services.inference.tools.backends.asking import Backend
from services.inference.tools.backends.filtering import checked_query, results
from services.inference.tools.domains import Domain, domain_of, permits
from services.inference.tools.search import SearchResult

# Called with the server, the query, the number of results, and the allowed and blocked domains;
# returns the response's list of results, unchecked.
Find = Callable[
    [Backend, str, int, Sequence[Domain], Sequence[Domain]],
    Awaitable[object],
]


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """A kind of search engine.

    Attributes:
        url: endpoint URL; only the path if the host is configured.
        key_field: header of the API key.
        key_value: header value, with `{}` for the key.
        refusals: advice to the operator by HTTP status.
        max_characters: maximum characters of a query.
        max_words: maximum words of a query.
        title: the field of a result's title.
        text: the field of a result's extract.
        ages: the fields of a result's age, most precise first.
        find: sends the query.
    """

    url: str
    key_field: str
    key_value: str
    refusals: Mapping[int, str]
    max_characters: int
    max_words: int
    title: str
    text: str
    ages: Sequence[str]
    find: Find


class EngineSearches:
    """A search backend of one engine; see `Searches`.

    Args:
        engine: the kind of engine.
        backend: the server.
        max_results: maximum results per search.
    """

    def __init__(self, engine: SearchEngine, backend: Backend, max_results: int) -> None:
        self._engine = engine
        self._backend = backend
        self._max_results = max_results

    async def search(
        self,
        query: str,
        *,
        count: int,
        allowed_domains: Sequence[str] = (),
        blocked_domains: Sequence[str] = (),
    ) -> Sequence[SearchResult]:
        """Return search results; see `Searches.search`.

        Domains are part of the query as far as the engine supports them; results are filtered in
        any case.
        """
        engine = self._engine
        query = checked_query(query, engine.max_characters, engine.max_words)
        allowed = [domain_of(rule) for rule in allowed_domains]
        blocked = [domain_of(rule) for rule in blocked_domains]
        count = max(1, min(count, self._max_results))
        pages = await engine.find(self._backend, query, count, allowed, blocked)
        return results(
            pages,
            lambda item: (
                item.get(engine.title),
                item.get(engine.text),
                next((item[age] for age in engine.ages if item.get(age)), None),
            ),
            lambda url: permits(url, allowed, blocked),
            count,
        )
