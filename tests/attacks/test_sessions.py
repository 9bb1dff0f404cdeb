"""Documents and sessions in numbers: each costs little, but nobody counted them."""

import aiohttp
import pytest

from tests.attacks.observer import Observer
from tests.e2e.gateway import Gateway
from tests.e2e.users import Answer, User

DOCUMENTS, SESSIONS = 100, 60


@pytest.fixture(scope="module")
def settings() -> str:
    return f"""
[articles]
max_sessions = {SESSIONS}

[articles.documents]
personal_free = {DOCUMENTS}
"""


@pytest.mark.soak
async def test_documents_and_sessions_without_end_are_harmless(
    target: Gateway, attacker_key: str, observer: Observer
) -> None:
    made: list[str] = []
    opened: list[Answer] = []
    async with aiohttp.ClientSession() as http:
        attacker = User(http, target.address, attacker_key)
        async with observer.watch() as measured:
            for _ in range(DOCUMENTS):
                made.append(await attacker.create_document())
            refused = await attacker.article("doc/create", group=0, name="")
            for document in made:
                opened.append(await attacker.article("session/create", docId=document))
        measured.assert_harmless()
        assert (refused.status, refused.code) == (403, 40303)
        assert "delete some" in refused.body["message"]
        too_many = opened[SESSIONS:]
        assert {(one.status, one.code) for one in too_many} == {(429, 42901)}
        assert all(one.retry_after_s for one in too_many)
        # The ways out that the messages name.
        assert (await attacker.article("doc/delete", docId=made[-1])).status == 200
        assert (await attacker.article("doc/create", group=0, name="")).status == 200
        session = opened[0].body["data"]["sessionId"]
        assert (await attacker.article("session/destroy", sessionId=session)).status == 200
        await attacker.open_document(made[0])
