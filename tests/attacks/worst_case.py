"""The most memory that a gateway takes: the formula of `docs/limits.md`."""

from services.common.settings import Settings

MIB = 1 << 20
SUPERVISOR_BYTES, WORKER_BYTES = 64 * MIB, 256 * MIB
CONNECTION_BYTES = 64 << 10
# What a body takes while it is translated, as a multiple of its size.
PARSED_FACTOR = 6
# What requests hold for each byte that is charged for them: bodies are charged once.
HELD_FACTOR = 3


def worker_bytes(settings: Settings, connections: int, answers: int = 0) -> int:
    """Return the bound of one worker with its parsers and conversions, in bytes.

    Args:
        settings: of the gateway.
        connections: at most so many are open.
        answers: at most so many whole answers arrive from providers at the same time.
    """
    limits = settings.limits
    return (
        WORKER_BYTES
        + connections * CONNECTION_BYTES
        + HELD_FACTOR * limits.max_buffered_bytes
        + limits.max_parallel_parses * PARSED_FACTOR * limits.max_body_bytes
        + settings.articles.cache_bytes
        + limits.max_parallel_conversions * limits.conversion_memory_bytes
        + answers * limits.max_answer_bytes
    )


def gateway_bytes(settings: Settings, workers: int, connections: int, answers: int = 0) -> int:
    """Return the bound of a whole gateway, in bytes; arguments as of `worker_bytes`."""
    return SUPERVISOR_BYTES + workers * worker_bytes(settings, connections, answers)
