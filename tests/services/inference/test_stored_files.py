"""Files whose content is read while a request is sent."""

import asyncio
import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, ToolResult
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError
from services.common.process.byte_budget import ByteBudget, Charge
from services.inference.stored_files import CONTENT_COST, WINDOW, StoredFiles, StoredFilesBody
from tests.services.inference.fake_files import FakeFiles

DOCUMENT = conversation.MEDIA_KIND_DOCUMENT


def file_id(number: int) -> str:
    return f"file-{number:026}"


def request(*ids: str) -> GenerateRequest:
    """Return a request with files, of which the last is in a tool result."""
    blocks = [Block(media=Media(kind=DOCUMENT, file_id=one)) for one in ids]
    result = Block(tool_result=ToolResult(tool_use_id="t", blocks=blocks[-1:]))
    return GenerateRequest(messages=[Message(blocks=[*blocks[:-1], result])])


def adapted(given_request: GenerateRequest) -> bytes:
    """Return the body that an adapter writes."""
    blocks = given_request.messages[0].blocks
    media = [block.media for block in blocks[:-1]] + [blocks[-1].tool_result.blocks[0].media]
    return json.dumps([base64.b64encode(one.data).decode() for one in media]).encode()


async def stored(*contents: bytes, total: int = 1 << 30) -> tuple[StoredFiles, Charge, FakeFiles]:
    files = FakeFiles(
        {file_id(n): ("a.pdf", "application/pdf", content) for n, content in enumerate(contents)}
    )
    charge = Charge(ByteBudget(total, total, 10), "user")
    kept = StoredFiles(files, charge)
    for one in files.files:
        kept.add(await files.find(one))
    return kept, charge, files


async def sent(body: bytes | StoredFilesBody) -> bytes:
    assert isinstance(body, StoredFilesBody)
    whole = b"".join([piece async for piece in body.pieces()])
    assert len(whole) == body.size
    return whole


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=4))
def test_a_body_has_the_content_of_its_files(contents: list[bytes]) -> None:
    async def check() -> None:
        kept, _, files = await stored(*contents)
        ids = [*files.files, *reversed(files.files)]  # each twice
        body = await sent(kept.body(adapted(kept.with_tokens(request(*ids)))))
        expected = [base64.b64encode(one).decode() for one in [*contents, *reversed(contents)]]
        assert json.loads(body) == expected

    asyncio.run(check())


async def test_content_is_read_when_it_is_sent_and_again_for_a_retry() -> None:
    kept, _, files = await stored(b"content")
    written = adapted(kept.with_tokens(request(file_id(0))))
    assert files.asked == []
    first = await sent(kept.body(written))
    assert await sent(kept.body(written)) == first
    assert files.asked == [file_id(0)] * 2


async def test_the_request_keeps_the_ids_of_its_files() -> None:
    kept, _, _ = await stored(b"content")
    original = request(file_id(0))
    kept.with_tokens(original)
    assert original == request(file_id(0))


async def test_files_of_a_provider_stay_as_they_are() -> None:
    kept, _, _ = await stored(b"content")
    others = request("file-abc123")
    assert kept.with_tokens(others) is others
    assert kept.body(b"[]") == b"[]"


async def test_pieces_take_room_until_they_are_sent() -> None:
    kept, charge, _ = await stored(b"content")
    body = kept.body(adapted(kept.with_tokens(request(file_id(0)))))
    assert isinstance(body, StoredFilesBody)

    async def send_all() -> int:
        held = charge.size
        await sent(body)
        return held - charge.size

    async def fail() -> int:
        raise ConnectionResetError

    assert await body.admitted(send_all()) == WINDOW
    with pytest.raises(ConnectionResetError):
        await body.admitted(fail())
    assert charge.size == 0


async def test_loaded_content_takes_room() -> None:
    kept, charge, _ = await stored(b"content")
    assert await kept.load(file_id(0)) == b"content"
    assert charge.size == CONTENT_COST * len(b"content")


async def test_a_file_that_was_cut_off_ends_the_request() -> None:
    kept, _, files = await stored(b"content")
    body = kept.body(adapted(kept.with_tokens(request(file_id(0)))))
    files.files[file_id(0)] = ("a.pdf", "application/pdf", b"cont")
    with pytest.raises(GatewayError) as caught:
        await sent(body)
    assert caught.value.http_status == 503
