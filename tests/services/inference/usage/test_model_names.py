"""Model names in usage records: known ones, and a bounded number of invented ones."""

from services.common.messages.usage_batch import SHARED, Shared
from services.inference.usage import model_names
from services.inference.usage.model_names import MAX_UNKNOWN, OTHER, ModelNames

DAY_S = 86_400


class Names:
    """Model names on a day that a test decides."""

    def __init__(self) -> None:
        self.now = 20_000.0 * DAY_S
        self._names = ModelNames({"fast", "p/known"}.__contains__, lambda: self.now)

    def of(self, user: str, requested: str, model: str | None = None) -> tuple[str, str, str]:
        """Return the requested and answering model of a record, and the provider's name of it."""
        model = requested if model is None else model
        values = dict.fromkeys(SHARED, "") | {"user_id": user, "requested_model": requested}
        values |= {"model": model, "upstream_model": f"{model} upstream"}
        bounded: Shared = self._names.bounded(tuple(values[name] for name in SHARED))
        columns = dict(zip(SHARED, bounded, strict=True))
        return columns["requested_model"], columns["model"], columns["upstream_model"]

    def invent(self, user: str) -> list[str]:
        return [self.of(user, f"p/{number}")[1] for number in range(MAX_UNKNOWN + 10)]


EXPECTED = [*(f"p/{number}" for number in range(MAX_UNKNOWN)), *[OTHER] * 10]


def test_invented_names_of_a_user_are_bounded() -> None:
    names = Names()
    assert names.invent("one") == EXPECTED
    assert names.of("one", "p/x") == (OTHER, OTHER, OTHER)
    # Those that were recorded stay themselves, and so do known ones.
    assert names.of("one", "p/0") == ("p/0", "p/0", "p/0 upstream")
    assert names.of("one", "fast") == ("fast", "fast", "fast upstream")
    assert names.of("one", "p/x", "fast") == (OTHER, "fast", "fast upstream")
    assert names.of("one", "fast", "") == ("fast", "", " upstream")


def test_each_user_has_names_of_their_own() -> None:
    names = Names()
    names.invent("one")
    assert names.invent("two") == EXPECTED


def test_the_next_day_begins_anew() -> None:
    names = Names()
    names.invent("one")
    names.now += DAY_S - 1
    assert names.of("one", "p/x")[1] == OTHER
    names.now += 1
    assert names.of("one", "p/x")[1] == "p/x"


def test_the_counted_users_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr(model_names, "_MAX_USERS", 2)
    names = Names()
    for user in ("one", "two", "three"):
        names.invent(user)
    assert len(names._names._unknown) == 2
    assert names.of("three", "p/x")[1] == OTHER
