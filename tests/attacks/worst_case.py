"""The most memory that a gateway takes, as `docs/limits.md` states it."""

from services.common.settings import Limits, Settings

MIB = 1 << 20
# MiB of a process that serves nothing, with everything loaded.
WORKER_MIB, CONVERTER_MIB, SUPERVISOR_MIB = 350, 150, 100
# What a body takes, in all processes together, while it is translated.
PARSED_FACTOR = 6
# Heads, connections and TLS.
CONNECTIONS_MIB = 256
# What waits for a reader, and for the answers of a provider.
STALLED_READER_MIB = 2


def process_bytes(settings: Settings) -> int:
    """Return the bound of one worker with its parser and conversion processes, in bytes."""
    limits = settings.limits
    return (
        WORKER_MIB * MIB
        + CONNECTIONS_MIB * MIB
        + limits.max_buffered_bytes
        + _parsed(limits)
        + limits.max_stalled_readers * STALLED_READER_MIB * MIB
        + 2 * limits.max_answer_bytes
        + settings.articles.cache_bytes
        + limits.max_parallel_conversions * (limits.conversion_memory_bytes + CONVERTER_MIB * MIB)
    )


def _parsed(limits: Limits) -> int:
    return limits.max_parallel_parses * PARSED_FACTOR * limits.max_body_bytes


def gateway_bytes(settings: Settings, workers: int) -> int:
    """Return the bound of a whole gateway, in bytes."""
    return SUPERVISOR_MIB * MIB + workers * process_bytes(settings)
