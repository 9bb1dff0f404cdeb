"""Which responses are worth another attempt, and when."""

# Statuses of limits: the request waits until it is admitted, or the time of its batch is over.
_LIMITED = frozenset({429})
# Statuses of failures that may pass.
_TRANSIENT = frozenset({408, 500, 502, 503, 504, 529})
# Failed attempts of a request, of which the last is its result, and the first delay after one.
_MAX_FAILURES = 4
_FIRST_DELAY_S = 2.0
# The longest delay, after which a limit is tried again.
_MAX_DELAY_S = 300.0


def is_limited(status: int) -> bool:
    """Return whether a request was not admitted by a limit."""
    return status in _LIMITED


def retry_delay_s(status: int, retry_after_s: float | None, failures: int) -> float | None:
    """Return the seconds after which a request is repeated; None if the response is its result.

    Args:
        status: HTTP status of the response.
        retry_after_s: what the response says of the delay.
        failures: number of failed attempts, with this one; those at limits do not count.
    """
    if is_limited(status):
        return min(max(retry_after_s or 1.0, 1.0), _MAX_DELAY_S)
    if status not in _TRANSIENT or failures >= _MAX_FAILURES:
        return None
    return min(max(retry_after_s or 0.0, _FIRST_DELAY_S * 4.0 ** (failures - 1)), _MAX_DELAY_S)
