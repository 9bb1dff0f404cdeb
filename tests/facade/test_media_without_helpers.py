"""Images where nobody is named to describe them, and what one user's conversions tell others."""

import pytest
import pytest_asyncio

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.facade.conversations import png
from tests.facade.media import CHAT, MESSAGES, by_value, gateway_with_media

ENDPOINTS = pytest.mark.parametrize("path", [CHAT, MESSAGES])
TEXT = {"name": "blind", "provider": "openai", "upstream": "text", "inputs": ["text"]}
SEES = {"name": "sees", "provider": "openai", "upstream": "vision", "inputs": ["text", "image"]}
# Of which nobody knows that it reads images.
UNKNOWN = {"name": "unknown", "provider": "openai", "upstream": "echo"}
PART = png(7, 4242)


@ENDPOINTS
async def test_without_a_model_that_sees_it_is_said_what_to_set(tmp_path, path):
    sections = {"models": [TEXT, UNKNOWN], "roles": {}}
    async with gateway_with_media(tmp_path, **sections) as media:
        answer = await media.ask(path, "blind", [by_value(path, PART, "image/png")])
        assert answer.status == 400
        assert answer.text.startswith("messages[0].content[1]: ")
        for way in ("multimodal.image.model", "[roles] describe_image", "embedded"):
            assert way in answer.text
        if path == CHAT:
            assert answer.more["code"] == "no_vision_model"
        assert await media.sent() == []


async def test_the_first_of_the_settings_that_sees_describes(tmp_path):
    sections = {"models": [TEXT, UNKNOWN, SEES, {**SEES, "name": "too"}], "roles": {}}
    async with gateway_with_media(tmp_path, **sections) as media:
        answer = await media.ask(CHAT, "blind", [by_value(CHAT, PART, "image/png")])
        assert answer.status == 200, answer.text
        assert answer.helpers[0]["model"] == "sees"


@pytest_asyncio.fixture
async def two_users(tmp_path):
    sections = {"models": [TEXT, SEES], "roles": {}}
    async with gateway_with_media(tmp_path, **sections) as media:
        database = open_engine(Storage(data_dir=tmp_path))
        key = await AccountRepository(database).create_key("stranger")
        await database.dispose()
        yield media, key


async def test_descriptions_are_not_shared_between_users(two_users):
    media, key = two_users
    part = by_value(CHAT, PART, "image/png")
    for user, helpers in (("", 1), ("", 0), (key, 1), (key, 0)):
        answer = await media.ask(CHAT, "blind", [part], key=user)
        assert (answer.status, len(answer.helpers)) == (200, helpers), answer.text
    counted = media.gateway.counters.get_sample_value
    made = {"conversion": "image-described", "outcome": "made"}
    assert counted("gateway_adaptations_total", made) == 4
    assert counted("gateway_adaptation_cache_total", {"result": "hit"}) == 2
    tokens = {"task": "describe_image", "provider": "openai", "direction": "output"}
    assert counted("gateway_helper_tokens_total", tokens) > 0
