"""Model names in usage records, of which callers can invent any number.

Each day, the first unknown names of a user are recorded as they are; further ones are summed up as
one. Without a bound, one row of the daily sums would be stored for each name.
"""

from collections.abc import Callable

from services.common.messages.usage_batch import SHARED, Shared

# The name that replaces further unknown names.
OTHER = "other"
# Unknown names of a user that a process records in a day (UTC).
MAX_UNKNOWN = 50
# Users whose names are counted; the one that was added first is counted anew.
_MAX_USERS = 10_000
_DAY_S = 86_400

_USER, _REQUESTED = SHARED.index("user_id"), SHARED.index("requested_model")
_MODEL, _UPSTREAM = SHARED.index("model"), SHARED.index("upstream_model")


class ModelNames:
    """Bounds the model names of each user.

    Args:
        is_offered: returns whether a name is that of a configured model, or of one that its
            provider reports.
        now: returns the time in Unix seconds.
    """

    def __init__(self, is_offered: Callable[[str], bool], now: Callable[[], float]) -> None:
        self._is_offered = is_offered
        self._now = now
        self._day = 0
        self._unknown: dict[str, set[str]] = {}

    def bounded(self, shared: Shared) -> Shared:
        """Return the values of a record with its model names replaced if they are too many.

        Raises:
            TypeError: a name is not text.
        """
        day = int(self._now()) // _DAY_S
        if day != self._day:
            self._day = day
            self._unknown.clear()
        values = list(shared)
        user = values[_USER]
        "".join((user, values[_REQUESTED], values[_MODEL]))
        values[_REQUESTED] = self._shown(user, values[_REQUESTED])
        model = self._shown(user, values[_MODEL])
        if model != values[_MODEL]:
            values[_MODEL] = values[_UPSTREAM] = model
        return tuple(values)

    def _shown(self, user: str, name: str) -> str:
        names = self._unknown.get(user)
        if not name or (names is not None and name in names) or self._is_offered(name):
            return name
        if names is None:
            if len(self._unknown) >= _MAX_USERS:
                del self._unknown[next(iter(self._unknown))]
            names = self._unknown[user] = set()
        if len(names) >= MAX_UNKNOWN:
            return OTHER
        names.add(name)
        return name
