"""The delays after which failed jobs are tried again. Pure."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from services.memory.jobs.job_queue import JobKind

# After so many failures of a model the job is done by rules.
MODEL_ATTEMPTS = 3
# Seconds until a summary that was made without its model is made again.
REDO_AFTER_S = 600.0


class _Backoff(NamedTuple):
    """Seconds that a job waits after its first failure, doubled with each further one."""

    first_s: float
    longest_s: float


_BACKOFFS: Mapping[JobKind, _Backoff] = {
    JobKind.SUMMARY: _Backoff(2, 60),
    JobKind.FACTS: _Backoff(2, 60),
    JobKind.EMBED: _Backoff(5, 3_600),
    JobKind.REDO: _Backoff(REDO_AFTER_S, 6 * 3_600),
}
# Turns without vectors are still found by their words.
_EMBED_ATTEMPTS = 10


def retry_after_s(
    kind: JobKind, failures: int, uniform: Callable[[float, float], float]
) -> float | None:
    """Return the seconds until a job is tried again, or None when it is given up.

    Args:
        kind: the kind of the job.
        failures: how often it failed, at least once.
        uniform: random source for jitter.
    """
    if kind is JobKind.EMBED and failures >= _EMBED_ATTEMPTS:
        return None
    if kind in (JobKind.SUMMARY, JobKind.FACTS) and failures == MODEL_ATTEMPTS:
        return 0.0  # no model takes part from now on
    backoff = _BACKOFFS[kind]
    return min(backoff.first_s * 2.0 ** min(failures - 1, 30), backoff.longest_s) * uniform(0.5, 1)
