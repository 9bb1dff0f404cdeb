"""Data that one user stores without end: each plan has room for so much."""

from pathlib import Path
from stat import S_ISREG

import aiohttp
import pytest

from tests.attacks.observer import Observer
from tests.e2e.gateway import Gateway
from tests.e2e.users import Answer, User

QUOTA = 4 << 20
TEXT = "x" * 40_000
# What SQLite keeps beside the rows: a journal of its own, and pages that are half full.
OVERHEAD = 16 << 20


@pytest.fixture(scope="module")
def settings() -> str:
    return f"""
[articles.quota]
personal_free = {QUOTA}

[memory.storage]
personal_free = {QUOTA}
"""


def stored(target: Gateway) -> int:
    """Return the bytes of all files of the data folder."""
    return sum(map(_size, Path(target.data_dir).rglob("*")))


def _size(path: Path) -> int:
    """Return the bytes of a file; none where the gateway has deleted it since it was listed."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0
    return status.st_size if S_ISREG(status.st_mode) else 0


async def replace(user: User, session: str, block: str, turn: int) -> Answer:
    # The same text again would change nothing, and be free.
    leaves = [{"type": "default", "text": f"{turn} {TEXT}"}] * 5
    for number, leaf in enumerate(leaves):
        leaves[number] = leaf | {"bold": bool(number % 2)}
    return await user.article(
        "block/text/replace", sessionId=session, blockId=block, children=leaves
    )


@pytest.mark.soak
async def test_replacing_a_text_over_and_over_is_harmless(
    target: Gateway, attacker_key: str, observer: Observer
) -> None:
    before = stored(target)
    async with aiohttp.ClientSession() as http:
        attacker = User(http, target.address, attacker_key)
        document = await attacker.create_document()
        session = await attacker.open_document(document)
        [block] = (await attacker.insert(session, "x")).body["data"]["ids"]
        async with observer.watch() as measured:
            answers = [await replace(attacker, session, block, turn) for turn in range(50)]
        measured.assert_harmless()
        assert [one.status for one in answers[:5]] == [200] * 5
        # A snapshot that is taken meanwhile makes room for some more.
        refused = [one for one in answers if one.status != 200]
        assert len(refused) >= 20 and {(one.status, one.code) for one in refused} == {(403, 40303)}
        assert "delete documents" in refused[-1].body["message"]
        assert stored(target) - before < QUOTA + OVERHEAD
        # Reading goes on, and deleting is the way out.
        assert len(await attacker.read(session)) == 1
        assert (await attacker.article("doc/delete", docId=document)).status == 200
        again = await attacker.open_document(await attacker.create_document())
        assert (await attacker.insert(again, "x")).status == 200


@pytest.mark.soak
async def test_a_memory_that_grows_without_end_is_harmless(
    target: Gateway, attacker_key: str, observer: Observer
) -> None:
    before = stored(target)
    async with aiohttp.ClientSession() as http:
        attacker = User(http, target.address, attacker_key)
        async with observer.watch() as measured:
            answers = [
                await attacker.chat(f"{number} {TEXT}", memory_id=f"m{number % 5}", max_tokens=5)
                for number in range(60)
            ]
        measured.assert_harmless()
        assert [one.status for one in answers[:10]] == [200] * 10
        assert {(one.status, one.code) for one in answers[-5:]} == {
            (403, "memory_storage_exceeded")
        }
        assert "DELETE /v1/memories" in answers[-1].body["error"]["message"]
        assert stored(target) - before < QUOTA + OVERHEAD
        assert (await attacker.delete_memory("m1")).status == 200
        assert (await attacker.chat("short", memory_id="m1")).status == 200
