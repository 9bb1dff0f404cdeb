"""When an erasure looks again for a user's data. Pure."""

# Seconds from the end of an erasure to each of the further passes: other workers may accept the
# user's key for some seconds, requests that are in progress go on, and usage is stored late.
_AGAIN_AFTER_S = (60, 3_600, 86_400)


def next_pass_ms(finished_at_ms: int, now_ms: int) -> int | None:
    """Return the time of the next pass in Unix milliseconds, or None after the last one.

    Args:
        finished_at_ms: end of the first pass that found nothing.
        now_ms: end of the last pass.
    """
    times = (finished_at_ms + 1000 * seconds for seconds in _AGAIN_AFTER_S)
    return next((time_ms for time_ms in times if time_ms > now_ms), None)
