"""Requests of random structure and size: none is answered badly, and none leaves anything."""

import random
from collections.abc import Iterator

import aiohttp
import pytest

from tests.attacks import valid
from tests.attacks.observer import Observer
from tests.attacks.send_attempts import make_names, send
from tests.attacks.structure import Attempt, Fuzzer
from tests.e2e.gateway import Gateway

SEED = 20_261_122
# A document that grows with each edit that is taken makes later ones slow.
OF_ONE_DOCUMENT = 5_000


async def fuzz(target: Gateway, key: str, seed: int, requests: int, largest: int) -> None:
    """Send so many requests in turns, each over a document of its own."""
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        for first in range(0, requests, OF_ONE_DOCUMENT):
            names = await make_names(http, target.address, key)
            fuzzer = Fuzzer(
                seed + first, list(valid.requests(names)), names.memory_id, largest=largest
            )
            count = min(OF_ONE_DOCUMENT, requests - first)
            faults = await send(http, target.address, key, drawn(fuzzer, count))
            assert not faults, f"seed {seed}+{first}:\n" + "\n".join(faults[:10])
    assert "unforeseen failure" not in target.process.output


def drawn(fuzzer: Fuzzer, count: int) -> Iterator[Attempt]:
    for _ in range(count):
        yield fuzzer.draw()


async def test_random_structures_are_answered(
    target: Gateway, attacker_key: str, observer: Observer
) -> None:
    async with observer.watch() as measured:
        await fuzz(target, attacker_key, SEED, 500, largest=20_000)
    assert not measured.failures
    assert measured.rss_growth_mb < 200, measured


@pytest.mark.soak
async def test_100_000_random_structures_are_answered(
    target: Gateway, attacker_key: str, observer: Observer
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    await fuzz(target, attacker_key, SEED, 1_500, largest=200_000)  # loads what is loaded once
    async with observer.watch() as measured:
        await fuzz(target, attacker_key, seed, 100_000, largest=200_000)
    assert measured.rss_growth_mb < 200, measured
    async with observer.watch() as measured:
        await fuzz(target, attacker_key, seed + 1, 100, largest=1_000)
    measured.assert_harmless()


def test_one_seed_draws_the_same_requests() -> None:
    requests = list(valid.requests(valid.Names("m", "1", "s", "b")))
    one, other = (list(drawn(Fuzzer(7, requests, "m", 10_000), 200)) for _ in range(2))
    assert one == other
