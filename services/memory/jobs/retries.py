"""The delays after which failed jobs are retried. Pure."""

from collections.abc import Callable, Mapping

from services.memory.jobs.job_queue import JobKind

# Number of failures of a model after which a job is done by rules.
MODEL_ATTEMPTS = 3
# Seconds until a summary that was made without its model is made again.
REDO_AFTER_S = 600.0

# Seconds that a job waits after its first failure, doubled with each further one; their maximum.
_BACKOFFS: Mapping[JobKind, tuple[float, float]] = {
    JobKind.SUMMARY: (2, 60),
    JobKind.FACTS: (2, 60),
    JobKind.EMBED: (5, 3_600),
    JobKind.REDO: (REDO_AFTER_S, 6 * 3_600),
    JobKind.INDEX: (5, 600),
    JobKind.UNINDEX: (5, 3_600),
}
# Failures after which a file of a vector store is marked as failed.
INDEX_ATTEMPTS = 8
# Turns without vectors are still found by their words.
_EMBED_ATTEMPTS = 10


def retry_after_s(
    kind: JobKind, failures: int, uniform: Callable[[float, float], float]
) -> float | None:
    """Return the seconds until a job is retried, or None when it is given up.

    Args:
        kind: the kind of the job.
        failures: number of failures of the job, at least 1.
        uniform: random source for jitter.
    """
    if kind is JobKind.EMBED and failures >= _EMBED_ATTEMPTS:
        return None
    if kind in (JobKind.SUMMARY, JobKind.FACTS) and failures == MODEL_ATTEMPTS:
        return 0.0  # no model takes part from now on
    first_s, longest_s = _BACKOFFS[kind]
    return min(first_s * 2.0 ** min(failures - 1, 30), longest_s) * uniform(0.5, 1)
