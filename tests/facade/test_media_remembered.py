"""Media of remembered conversations, for models that do not read them."""

import pytest
import pytest_asyncio

from tests.facade.conversations import png
from tests.facade.media import (
    CHAT,
    MESSAGES,
    by_id,
    by_value,
    gateway_with_media,
    media_of,
    texts_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENDPOINTS = pytest.mark.parametrize("path", [CHAT, MESSAGES])
_number = iter(range(10_000))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def media(tmp_path_factory):
    async with gateway_with_media(tmp_path_factory.mktemp("gateway")) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def forgotten(media):
    await media.sent()


def image() -> bytes:
    return png(7, 3000 + next(_number))


def memory() -> str:
    return f"talk-{next(_number)}"


@ENDPOINTS
@pytest.mark.parametrize("stream", [False, True])
async def test_a_file_of_an_earlier_turn_is_described(media, path, stream):
    talk = memory()
    part = by_id(path, await media.keep("cat.png", image()))
    answer = await media.ask(path, "sees-openai", [part], memory_id=talk)
    assert answer.status == 200, answer.text
    await media.sent()
    again = await media.ask(path, "blind-openai", [], memory_id=talk, stream=stream)
    assert again.status == 200, again.text
    described, sent = await media.sent()
    assert media_of(described) == ["image_url"]
    assert media_of(sent) == []
    assert "[Image 1 (cat.png): described by the model sees-openai." in texts_of(sent)
    assert again.adapted == ["memory_id:image-described"]
    # A model that reads images is shown it.
    shown = await media.ask(path, "sees-anthropic", [], memory_id=talk)
    assert shown.adapted == []
    assert media_of((await media.sent())[0]) == ["image"]


@ENDPOINTS
async def test_what_was_said_of_an_image_that_is_gone_is_remembered(media, path):
    talk = memory()
    part = by_value(path, image(), "image/png")
    answer = await media.ask(path, "blind-openai", [part], memory_id=talk)
    assert answer.adapted == ["messages[0].content[1]:image-described"], answer.text
    await media.sent()
    for model in ("blind-openai", "sees-anthropic"):
        again = await media.ask(path, model, [], memory_id=talk)
        (sent,) = await media.sent()
        assert "> Sandbox vision:" in texts_of(sent)
        assert again.adapted == ["memory_id:image-recalled"]


@ENDPOINTS
async def test_a_deleted_undescribed_image_fails_nothing(media, path):
    talk = memory()
    part = by_value(path, image(), "image/png")
    assert (await media.ask(path, "sees-openai", [part], memory_id=talk)).status == 200
    await media.sent()
    again = await media.ask(path, "blind-openai", [], memory_id=talk)
    (sent,) = await media.sent()
    assert "[image, image/png: no longer kept]" in texts_of(sent)
    assert again.adapted == []


@ENDPOINTS
async def test_a_failing_helper_does_not_end_a_conversation(media, path):
    talk = memory()
    part = by_id(path, await media.keep("cat.png", image()))
    assert (await media.ask(path, "sees-openai", [part], memory_id=talk)).status == 200
    await media.sent()
    failing = {"image": {"model": "sandbox/fail-500"}}
    again = await media.ask(path, "blind-openai", [], memory_id=talk, multimodal=failing)
    assert again.status == 200, again.text
    assert "no longer kept" in texts_of((await media.sent())[0])


@ENDPOINTS
async def test_an_undescribable_image_is_not_remembered(media, path):
    talk = memory()
    part = by_value(path, image(), "image/png")
    failing = {"image": {"model": "sandbox/fail-500"}}
    answer_body = await media.ask(path, "blind-openai", [part], memory_id=talk, multimodal=failing)
    assert answer_body.status == 502
    url = f"{media.gateway.url}/beta/v1/memories/{talk}"
    async with media.gateway.http.get(url, headers=media.gateway.bearer()) as answer:
        assert answer.status == 404
