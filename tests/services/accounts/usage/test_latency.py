"""Percentiles from counts in buckets are close to those of the durations."""

import math
import random
from itertools import pairwise

import pytest

from services.accounts.usage.latency import (
    BOUNDS,
    BUCKETS,
    DURATION,
    MAXIMA,
    count_in_buckets,
    latencies_of,
)

# The largest factor between two bounds, by which a percentile may be off.
WORST = 1.4


def row_of(durations: list[int]) -> dict[str, int | None]:
    counts = [count or None for count in count_in_buckets(durations)]
    return {
        **dict(zip(BUCKETS[DURATION], counts, strict=True)),
        DURATION: sum(durations),
        MAXIMA[DURATION]: max(durations),
    }


def exact(durations: list[int], share: int) -> int:
    return sorted(durations)[math.ceil(len(durations) * share / 100) - 1]


@pytest.mark.parametrize("sigma", [0.2, 0.8, 2.0])
@pytest.mark.parametrize("median", [60, 900, 12_000])
def test_percentiles_of_many_requests_are_close(median: int, sigma: float) -> None:
    random_numbers = random.Random(f"{median} {sigma}")
    durations = [
        max(1, min(700_000, int(random_numbers.lognormvariate(math.log(median), sigma))))
        for _ in range(5_000)
    ]
    latencies = latencies_of(row_of(durations), DURATION)
    assert latencies is not None
    for share in (50, 95, 99):
        estimated, real = getattr(latencies, f"p{share}_ms"), exact(durations, share)
        # Latencies that lie in two or three buckets are the least exact.
        closest = 1.15 if sigma < 0.5 else 1.08
        assert 1 / closest < estimated / real < closest, (share, estimated, real)
    assert latencies.mean_ms == sum(durations) / len(durations)


def test_no_percentile_is_off_by_more_than_a_bucket() -> None:
    random_numbers = random.Random(1)
    for _ in range(300):
        number = random_numbers.randrange(1, 30)
        durations = [int(10 ** random_numbers.uniform(1, 5.8)) for _ in range(number)]
        latencies = latencies_of(row_of(durations), DURATION)
        assert latencies is not None
        for share in (50, 95, 99):
            estimated, real = getattr(latencies, f"p{share}_ms"), exact(durations, share)
            assert 1 / WORST <= estimated / real <= WORST, (durations, share)


def test_one_request_is_exact_at_every_duration() -> None:
    for duration in (0, 1, 9, 10, 11, 500, 750_000, 750_001, 10**9):
        latencies = latencies_of(row_of([duration]), DURATION)
        assert latencies is not None
        assert (latencies.p50_ms, latencies.p99_ms, latencies.max_ms) == (duration,) * 3


def test_bounds_are_close_to_each_other() -> None:
    factors = [longer / shorter for shorter, longer in pairwise(BOUNDS)]
    assert 1 < min(factors) <= max(factors) < WORST


def test_nothing_measured_has_no_latencies() -> None:
    assert latencies_of(dict.fromkeys(row_of([1])), DURATION) is None
