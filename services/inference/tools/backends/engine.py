"""What one search engine has of its own, and the search that all of them share."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from services.inference.tools.backends.asking import Backend
from services.inference.tools.backends.filtering import checked_query, results
from services.inference.tools.domains import Domain, domain_of, permits
from services.inference.tools.search import SearchResult

# Takes the server, a query, how many results are wanted, and the allowed and blocked domains;
# returns what the answer has in place of the list of results.
Find = Callable[
    [Backend, str, int, Sequence[Domain], Sequence[Domain]],
    Awaitable[object],
]


@dataclass(frozen=True, slots=True)
class Engine:
    """A kind of search backend.

    Attributes:
        url: where it is; the path alone where only the operator knows.
        key_field: the header field that its key is in.
        key_value: of that field, with `{}` for the key.
        refusals: statuses that say what the operator should check, and what that is.
        max_characters: of a query.
        max_words: of a query.
        title: the field of a result that holds its title.
        text: that of its extract.
        ages: those of its age, the most precise first.
        find: asks it.
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
    """Searches with an engine; see `Searches`.

    Args:
        engine: its kind.
        backend: its server.
        max_results: of a search, as the operator allows.
    """

    def __init__(self, engine: Engine, backend: Backend, max_results: int) -> None:
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
        """Return what a search found; see `Searches.search`.

        The engine is asked for the domains as far as it can be; its results are filtered all
        the same.
        """
        engine = self._engine
        query = checked_query(query, engine.max_characters, engine.max_words)
        allowed = [domain_of(rule) for rule in allowed_domains]
        blocked = [domain_of(rule) for rule in blocked_domains]
        count = max(1, min(count, self._max_results))
        found = await engine.find(self._backend, query, count, allowed, blocked)
        return results(
            found,
            lambda item: (
                item.get(engine.title),
                item.get(engine.text),
                next((item[age] for age in engine.ages if item.get(age)), None),
            ),
            lambda url: permits(url, allowed, blocked),
            count,
        )
