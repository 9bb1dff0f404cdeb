"""Usage records made of lines of the journal, with their costs. Pure."""

import orjson

from services.common.ids import RECORD
from services.common.money import MAX_PUSD
from services.common.usage_batch import BIGGEST, SHARED, Own, Shared, UsageBatch
from services.inference.pricing.costs import Costs
from services.inference.pricing.counts import counts_from
from services.inference.pricing.price import TokenRates, Unit
from services.inference.usage.lines import FAILED, SEPARATOR, UsedModel

# An id of a record: the time, the file's name, and the number of the line and of the model in it.
# It begins as `ids.time_prefix` says.
_ID = f"{RECORD}%011x_%s_%x_%x"
# What a whole line leaves out of the values of a `UsedModel`.
_LEFT_OUT = (None, None, None, None, 0, 0, 0, 0, None)
_MODEL, _PROVIDER = SHARED.index("model"), SHARED.index("provider")
_UPSTREAM, _OUTCOME = SHARED.index("upstream_model"), SHARED.index("outcome")


class BatchMaker:
    """Makes a batch of records of the lines of a file; see `lines` for the two kinds.

    What plain lines share is read once for all lines that have it in the same bytes.

    Args:
        file: name of the journal's file; with a line's number it makes ids that are always the
            same.
        costs: what answers cost.

    Attributes:
        batch: the records so far.
    """

    def __init__(self, file: str, costs: Costs) -> None:
        self.batch = UsageBatch()
        self._file = file
        self._costs = costs
        self._heads: dict[bytes, tuple[Shared, TokenRates | None]] = {}
        self._rows: dict[bytes, list[Own]] = {}

    def add(self, content: bytes, number: int) -> None:
        """Add the records of a line.

        Args:
            content: the line.
            number: of the line in the file.

        Raises:
            ValueError: the content is no JSON, or has more or fewer values; nothing is added.
            TypeError: it is no line; nothing is added.
        """
        head, tab, tail = content.partition(SEPARATOR)
        if not tab:
            self._add_whole(content, number)
            return
        values = orjson.loads(tail)
        time_s, request_id, first_ms, duration_ms, read, wrote, cached, anew, reasoning = values
        shared, rates = self._heads.get(head) or self._read_head(head)
        time_ms = int(time_s * 1000)
        if read is None:
            read = 0
            cost = _cost_untold(shared[_OUTCOME])
        elif rates is None:
            names = shared[_MODEL], shared[_PROVIDER], shared[_UPSTREAM]
            cost = cost_of_used(UsedModel(*names, *values[4:]), self._costs, time_ms)
        else:
            for_read, for_wrote, for_cached, for_anew, for_reasoning = rates
            thoughts = reasoning if reasoning < wrote else wrote
            cost = read * for_read + (wrote - thoughts) * for_wrote + thoughts * for_reasoning
            if cached or anew:
                cost += cached * for_cached + anew * for_anew
            if cost > MAX_PUSD:
                cost = MAX_PUSD
        if read + wrote + cached + anew + reasoning > BIGGEST:
            read, wrote, cached, anew, reasoning = _bounded((read, wrote, cached, anew, reasoning))
        own = (
            _ID % (time_ms, self._file, number, 0),
            time_ms,
            request_id,
            first_ms,
            duration_ms,
            read,
            wrote,
            cached,
            anew,
            reasoning,
            cost,
        )
        rows = self._rows.get(head)
        if rows is None:
            rows = self._rows[head] = self.batch.rows(shared)
        rows.append(own)

    def _read_head(self, head: bytes) -> tuple[Shared, TokenRates | None]:
        shared = tuple(orjson.loads(head))
        if len(shared) != len(SHARED):
            raise ValueError("more or fewer values than a plain line has in its head")
        rates = self._costs.token_rates(shared[_PROVIDER], shared[_MODEL], shared[_UPSTREAM])
        self._heads[head] = shared, rates
        return shared, rates

    def _add_whole(self, content: bytes, number: int) -> None:
        line = orjson.loads(content)
        time_s, request_id, user_id, team_id, key_id = line[:5]
        endpoint, requested, step, outcome, attempts = line[5:10]
        first_ms, duration_ms, is_part, models = line[10:]
        time_ms = int(time_s * 1000)
        made: list[tuple[Shared, Own]] = []
        for place, values in enumerate(models):
            used = UsedModel(*values, *_LEFT_OUT[len(values) :])
            if used.read is None:
                cost = _cost_untold(outcome)
            else:
                cost = cost_of_used(used, self._costs, time_ms)
            tokens = (used.read or 0, used.wrote, used.cached, used.cached_anew, used.reasoning)
            shared = (
                *(user_id, team_id, key_id, endpoint, requested),
                *(used.model, used.provider, used.upstream, step),
                *((outcome, 0, 0) if is_part else (outcome, 1, attempts)),
            )
            own = (
                *(_ID % (time_ms, self._file, number, place), time_ms, request_id),
                *(None if is_part else first_ms, duration_ms, *_bounded(tokens), cost),
            )
            made.append((shared, own))
            is_part = True  # which all but the first are
        for shared, own in made:
            self.batch.rows(shared).append(own)


def _cost_untold(outcome: int) -> int | None:
    """Return the cost of an answer whose usage its provider did not tell."""
    # Providers bill no failures, but such answers.
    return 0 if outcome == FAILED else None


def _bounded(tokens: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([min(one, BIGGEST) for one in tokens])


def cost_of_used(used: UsedModel, costs: Costs, at_ms: int | None = None) -> int | None:
    """Return the cost of what a model used in picodollars, or None where it is not known.

    Args:
        used: what it used.
        costs: what answers cost.
        at_ms: when it was asked, in Unix milliseconds; by default now.
    """
    further = {Unit(name): count for name, count in (used.further or {}).items()}
    counts = counts_from(
        used.read or 0, used.wrote, used.cached, used.cached_anew, used.reasoning, further
    )
    return costs.cost_of_counts(counts, used.provider, used.model, used.upstream, at_ms)
