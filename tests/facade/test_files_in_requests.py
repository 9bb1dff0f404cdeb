"""Files of the store, named in chats and messages."""

import io
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from tests.facade.conftest import MODELS
from tests.facade.conversations import png
from tests.gateway_in_process import Gateway, running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/beta/v1/chat/completions"
MESSAGES = "/beta/v1/messages"
PICTURE = png(7, 5)
SEEN = 'Sandbox vision: you said "See". Medium 1 is an image, named "cat.png", PNG of 7x5 pixels'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stranger(tmp_path_factory):
    """Return a gateway, and the key of a user who has no files."""
    folder = tmp_path_factory.mktemp("gateway")
    async with running_gateway(folder, models=MODELS) as gateway:
        database = open_engine(Storage(data_dir=folder))
        key = await AccountRepository(database).create_key("stranger")
        await database.dispose()
        yield gateway, key


async def keep(gateway: Gateway, name: str, content: bytes) -> str:
    form = aiohttp.FormData()
    form.add_field("purpose", "assistants")
    form.add_field("file", io.BytesIO(content), filename=name)
    address = f"{gateway.url}/beta/v1/files"
    async with gateway.http.post(address, headers=gateway.bearer(), data=form) as answer:
        assert answer.status == 200, await answer.text()
        return (await answer.json())["id"]


async def ask(gateway: Gateway, path: str, model: str, parts: list[Any], key: str = "") -> Any:
    body = {
        "model": model,
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "See"}, *parts]}],
    }
    headers = {"x-api-key": key or gateway.key, "compat-version": "2023-06-01"}
    async with gateway.http.post(gateway.url + path, headers=headers, json=body) as answer:
        answer_body = await answer.json()
    if answer.status != 200:
        return answer.status, answer_body["error"]
    if path == CHAT:
        return 200, answer_body["choices"][0]["message"]["content"]
    return 200, "".join(block["text"] for block in answer_body["content"])


def naming(path: str, file_id: str) -> list[dict[str, Any]]:
    if path == CHAT:
        return [{"type": "file", "file": {"file_id": file_id}}]
    return [{"type": "document", "source": {"type": "file", "file_id": file_id}}]


@pytest.mark.parametrize("model", ["sandbox/vision", "see-openai", "see-anthropic"])
@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_a_picture_of_the_store_is_seen(stranger, path, model):
    gateway, _ = stranger
    file_id = await keep(gateway, "cat.png", PICTURE)
    status, answer = await ask(gateway, path, model, naming(path, file_id))
    assert status == 200, answer
    # Providers behind HTTP are sent no name with an image: their dialects have no place for it.
    assert answer.replace(', named "cat.png"', "").startswith(SEEN.replace(', named "cat.png"', ""))


async def test_a_picture_is_named_as_an_image_too(stranger):
    gateway, _ = stranger
    file_id = await keep(gateway, "cat.png", PICTURE)
    image = {"type": "image", "source": {"type": "file", "file_id": file_id}}
    image_url = {"type": "image_url", "image_url": {"url": file_id}}
    assert (await ask(gateway, MESSAGES, "see-anthropic", [image]))[0] == 200
    assert (await ask(gateway, CHAT, "see-openai", [image_url]))[0] == 200


@pytest.mark.parametrize("model", ["sandbox/text", "openai/text", "anthropic/text"])
@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_a_text_file_is_readable_for_a_text_only_model(stranger, path, model):
    gateway, _ = stranger
    file_id = await keep(gateway, "notes.txt", "Grüße an alle".encode())
    status, answer = await ask(gateway, path, model, naming(path, file_id))
    assert status == 200, answer
    assert "Grüße an alle" in answer
    assert "notes.txt" in answer


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_another_users_file_is_as_unknown_as_one_that_never_was(stranger, path):
    gateway, key = stranger
    theirs = await keep(gateway, "cat.png", PICTURE)
    unknown = f"file-{'0' * 26}"
    told = []
    for file_id in (theirs, unknown):
        status, error = await ask(gateway, path, "sandbox/vision", naming(path, file_id), key)
        assert (status, error["param"]) == (404, "messages[0].content[1]")
        told.append(error["message"].replace(file_id, "that"))
    assert told[0] == told[1]


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_what_is_no_id_of_a_file_names_none(stranger, path):
    gateway, _ = stranger
    status, error = await ask(gateway, path, "openai/vision", naming(path, "file-nothing"))
    assert (status, error["param"]) == (404, "messages[0].content[1]")


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_a_file_that_was_deleted_is_gone(stranger, path):
    gateway, _ = stranger
    file_id = await keep(gateway, "cat.png", PICTURE)
    address = f"{gateway.url}/beta/v1/files/{file_id}"
    async with gateway.http.delete(address, headers=gateway.bearer()) as answer:
        assert answer.status == 200
    status, _ = await ask(gateway, path, "sandbox/vision", naming(path, file_id))
    assert status == 404
