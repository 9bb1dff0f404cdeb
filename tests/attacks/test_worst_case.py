"""The figures of the worst case in `docs/limits.md`."""

from services.common.settings import parse
from tests.attacks.worst_case import MIB, gateway_bytes, worker_bytes
from tests.documents import read


def test_the_worst_case_is_that_of_the_document() -> None:
    text = " ".join(read("docs/limits.md").split())
    usual = parse({}, "the defaults")
    limits = {
        "max_parallel_conversions": 1,
        "conversion_memory_bytes": 1 << 30,
        "max_buffered_bytes": 256 * MIB,
    }
    small = parse({"limits": limits}, "a small machine")
    conversions = usual.limits.max_parallel_conversions * usual.limits.conversion_memory_bytes
    assert f"this is {gateway_bytes(usual, 1, 10_000) // MIB:,} MiB, of" in text
    assert f"{conversions // MIB:,} MiB are conversions" in text
    assert f"adds {worker_bytes(usual, 10_000) // MIB:,} MiB" in text
    assert f"2,000: {gateway_bytes(small, 1, 2_000) // MIB:,} MiB for one worker" in text
