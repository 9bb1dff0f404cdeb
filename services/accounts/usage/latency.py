"""Distributions of latencies as counts in fixed buckets, which sums of usage have. Pure.

Counts of the same buckets merge by addition, so that a database adds them in the statement that
adds the other sums. A digest of a library (t-digest, DDSketch) is a value that a program has to
read, merge and write back, under a lock.

The buckets end at the values of `BOUNDS`, which are at most 1.4 apart as factors. A percentile is
interpolated within its bucket, so it is off by less than that factor, and for latencies spread over
several buckets by a few percent.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from gateway.accounts.v1.usage_pb2 import Latencies

# Upper ends of the buckets in milliseconds, inclusive; one more bucket has all longer ones. Columns
# are named after them, so they are fixed.
BOUNDS = tuple(
    digits * 10**exponent for exponent in range(5) for digits in (10, 13, 18, 24, 32, 42, 56, 75)
)
# The measured columns of a record.
FIRST_CONTENT, DURATION = MEASURES = ("first_content_ms", "duration_ms")
# Columns of a row of sums, by measure: the total, the counts of the buckets, and the maximum. They
# are NULL if nothing was counted.
TOTALS = MEASURES
BUCKETS: Mapping[str, Sequence[str]] = {
    measure: (*(f"{measure}_le_{bound}" for bound in BOUNDS), f"{measure}_longer")
    for measure in MEASURES
}
MAXIMA: Mapping[str, str] = {measure: f"{measure}_max" for measure in MEASURES}
# The columns that are added up, in this order.
ADDED = (*TOTALS, *BUCKETS[FIRST_CONTENT], *BUCKETS[DURATION])


def count_in_buckets(durations: Sequence[int]) -> list[int]:
    """Return the number of durations in each bucket."""
    counts = [0] * (len(BOUNDS) + 1)
    for duration in durations:
        counts[bisect_left(BOUNDS, duration)] += 1
    return counts


def latencies_of(row: Mapping[Any, Any], measure: str) -> Latencies | None:
    """Return the distribution of a measure in a row of sums, or None if nothing was counted."""
    counts = [int(row[name] or 0) for name in BUCKETS[measure]]
    shorter = list(accumulate(counts, initial=0))
    number = shorter[-1]
    if not number:
        return None
    longest = int(row[MAXIMA[measure]] or 0)
    return Latencies(
        count=number,
        mean_ms=float(row[measure] or 0) / number,
        p50_ms=_percentile(shorter, 50, longest),
        p95_ms=_percentile(shorter, 95, longest),
        p99_ms=_percentile(shorter, 99, longest),
        max_ms=longest,
    )


def _percentile(shorter: Sequence[int], share: int, longest: int) -> int:
    """Return the estimated smallest duration that `share` percent of all do not exceed.

    Args:
        shorter: the number of durations below each bucket, and of all durations.
        share: the percentage.
        longest: the longest duration.
    """
    rank = -(-shorter[-1] * share // 100)
    bucket = bisect_left(shorter, rank) - 1
    low = min(BOUNDS[bucket - 1], longest) if bucket else 0
    high = min(BOUNDS[bucket], longest) if bucket < len(BOUNDS) else longest
    count = shorter[bucket + 1] - shorter[bucket]
    return int(low + (high - low) * (rank - shorter[bucket]) / count + 0.5)
