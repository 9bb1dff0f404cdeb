"""Makes usage records, with costs, from lines of the journal. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from services.common.ids import RECORD
from services.common.messages.usage_batch import BIGGEST, SHARED, Own, Shared, UsageBatch
from services.common.money import MAX_PUSD
from services.inference.pricing.costs import Costs
from services.inference.pricing.counts import counts_from
from services.inference.pricing.price import TokenRates, Unit
from services.inference.usage.lines import SEPARATOR, SERVED, UsedModel
from services.inference.usage.model_names import ModelNames

# The id of a record: the time, the file's name, the number of the line, and that of the model in
# the line. It begins with the prefix of `ids.time_prefix`.
_ID = f"{RECORD}%011x_%s_%x_%x"
# Defaults of the values of a `UsedModel` that a whole line omits at its end.
_LEFT_OUT = (None, None, None, None, 0, 0, 0, 0, None, False, False)
_MODEL, _PROVIDER = SHARED.index("model"), SHARED.index("provider")
_UPSTREAM, _OUTCOME = SHARED.index("upstream_model"), SHARED.index("outcome")


class _Head(NamedTuple):
    """The parsed head that plain lines share.

    Attributes:
        shared: the values of the head.
        rates: the prices of tokens if they are constant, else None.
        is_priced: whether there is a price at all.
        rows: the rows of the batch for records with this head.
    """

    shared: Shared
    rates: TokenRates | None
    is_priced: bool
    rows: list[Own]


class BatchMaker:
    """Makes a batch of records from the lines of a file; see `lines` for the two kinds.

    The head of plain lines is parsed once for all lines with the same bytes.

    Args:
        file: the name of the journal's file; ids of records are derived from it and the number of
            the line, so that they are always the same.
        costs: the costs of answers.
        names: bounds the model names of users.

    Attributes:
        batch: the records so far.
    """

    def __init__(self, file: str, costs: Costs, names: ModelNames) -> None:
        self.batch = UsageBatch()
        self._file = file
        self._costs = costs
        self._names = names
        self._heads: dict[bytes, _Head] = {}

    def add(self, lines: Iterable[bytes], first: int) -> Sequence[Exception]:
        """Add the records of lines; return an error for each line that cannot be parsed.

        Args:
            lines: the lines.
            first: the number of the first line in the file.
        """
        errors: list[Exception] = []
        heads = self._heads
        for number, content in enumerate(lines, first):
            head, tab, tail = content.partition(SEPARATOR)
            try:
                if tab:
                    shared_head = heads.get(head) or self._read_head(head)
                    shared_head.rows.append(self._row(shared_head, number, orjson.loads(tail)))
                else:
                    self._add_whole(content, number)
            # Invalid JSON, or a wrong number or type of values.
            except (ValueError, TypeError) as error:
                errors.append(error)
        return errors

    def _row(self, head: "_Head", number: int, values: Sequence[Any]) -> Own:
        """Return the record's own values for a plain line."""
        (
            time_s,
            request_id,
            first_ms,
            duration_ms,
            input_tokens,
            output_tokens,
            cache_read,
            cache_write,
            reasoning,
        ) = values
        time_ms = int(time_s * 1000)
        cost: int | None = None
        if input_tokens is None:
            input_tokens = 0
            cost = _cost_untold(head.shared[_OUTCOME])
        elif head.rates is not None:
            input_rate, output_rate, cache_read_rate, cache_write_rate, reasoning_rate = head.rates
            thoughts = reasoning if reasoning < output_tokens else output_tokens
            cost = (
                input_tokens * input_rate
                + (output_tokens - thoughts) * output_rate
                + thoughts * reasoning_rate
            )
            if cache_read or cache_write:
                cost += cache_read * cache_read_rate + cache_write * cache_write_rate
            if cost > MAX_PUSD:
                cost = MAX_PUSD
        elif head.is_priced:
            names = head.shared[_MODEL], head.shared[_PROVIDER], head.shared[_UPSTREAM]
            cost = cost_of_used(UsedModel(*names, *values[4:]), self._costs, time_ms)
        if input_tokens + output_tokens + cache_read + cache_write + reasoning > BIGGEST:
            input_tokens, output_tokens, cache_read, cache_write, reasoning = _bounded(
                (input_tokens, output_tokens, cache_read, cache_write, reasoning)
            )
        return (
            _ID % (time_ms, self._file, number, 0),
            time_ms,
            request_id,
            first_ms,
            duration_ms,
            input_tokens,
            output_tokens,
            cache_read,
            cache_write,
            reasoning,
            cost,
            0,
        )

    def _read_head(self, head: bytes) -> "_Head":
        shared = tuple(orjson.loads(head))
        if len(shared) != len(SHARED):
            raise ValueError("more or fewer values than a plain line has in its head")
        names = shared[_PROVIDER], shared[_MODEL], shared[_UPSTREAM]
        shared_head = self._heads[head] = _Head(
            shared,
            self._costs.token_rates(*names),
            self._costs.is_priced(*names),
            self.batch.rows(self._names.bounded(shared)),
        )
        return shared_head

    def _add_whole(self, content: bytes, number: int) -> None:
        line = orjson.loads(content)
        time_s, request_id, user_id, team_id, key_id = line[:5]
        endpoint, requested, step, outcome, attempts = line[5:10]
        first_ms, duration_ms, is_part, models, *labels = line[10:]
        time_ms = int(time_s * 1000)
        rows: list[tuple[Shared, Own]] = []
        for place, values in enumerate(models):
            used = UsedModel(*values, *_LEFT_OUT[len(values) :])
            if used.input_tokens is None:
                cost = _cost_untold(outcome)
            else:
                cost = cost_of_used(used, self._costs, time_ms)
            tokens = (
                used.input_tokens or 0,
                used.output_tokens,
                used.cache_read_tokens,
                used.cache_write_tokens,
                used.reasoning_tokens,
            )
            shared = (
                *(user_id, team_id, key_id, endpoint, requested),
                *(used.model, used.provider, used.upstream, step),
                *((outcome, 0, 0) if is_part else (outcome, 1, attempts)),
            )
            own = (
                *(_ID % (time_ms, self._file, number, place), time_ms, request_id),
                *(None if is_part else first_ms, duration_ms, *_bounded(tokens), cost),
                int(used.is_estimated),
            )
            rows.append((shared, own))
            is_part = True  # all models but the first
        for shared, own in rows:
            self.batch.rows(self._names.bounded(shared)).append(own)
            if labels:
                self.batch.labels[own[0]] = tuple((name, value) for name, value in labels[0])


def _cost_untold(outcome: int) -> int | None:
    """Return the cost of a request without usage: unknown if it was served, else 0."""
    # Providers do not bill failures, and nothing was sent for the rest. Earlier versions wrote
    # such lines for answers without reported usage, too.
    return None if outcome == SERVED else 0


def _bounded(tokens: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([min(count, BIGGEST) for count in tokens])


def cost_of_used(used: UsedModel, costs: Costs, at_ms: int | None = None) -> int | None:
    """Return the cost of a model's usage in picodollars, or None if it is not known.

    A model of which nothing was used costs nothing, not even its price for a request.

    Args:
        used: the usage.
        costs: the costs of answers.
        at_ms: when the model was called, in Unix milliseconds; by default now.
    """
    if used.input_tokens is None:
        return 0
    other_units = {Unit(name): count for name, count in (used.other_units or {}).items()}
    counts = counts_from(
        used.input_tokens,
        used.output_tokens,
        used.cache_read_tokens,
        used.cache_write_tokens,
        used.reasoning_tokens,
        other_units,
    )
    return costs.cost_of_counts(
        counts, used.provider, used.model, used.upstream, at_ms, is_batch=used.is_batch
    )
