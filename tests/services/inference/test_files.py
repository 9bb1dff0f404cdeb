"""Files that requests name, put in their places."""

import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, ToolResult
from gateway.inference.v1.inference_pb2 import GenerateRequest, Multimodal
from services.common.errors import GatewayError
from services.common.process.byte_budget import Charge, open_budget
from services.common.settings import Limits
from services.inference.files import place_files, texts_as_blocks
from services.inference.media import find_media
from services.inference.providers.base import Target
from tests.services.inference.fake_files import FakeFiles

DOCUMENT = conversation.MEDIA_KIND_DOCUMENT
OFF = Multimodal(enabled=False)
PICTURE = f"file-{'1' * 26}"
NOTES = f"file-{'2' * 26}"
STORE = {
    PICTURE: ("cat.png", "image/png", b"\x89PNG"),
    NOTES: ("notes.md", "text/markdown", "Grüße".encode()),
}


def named(file_id: str, name: str = "") -> Block:
    return Block(media=Media(kind=DOCUMENT, file_id=file_id, name=name))


def asked(*blocks: Block, dialect=conversation.DIALECT_OPENAI) -> GenerateRequest:
    message = Message(role=conversation.ROLE_USER, blocks=blocks)
    return GenerateRequest(messages=[message], dialect=dialect)


async def placed(
    request: GenerateRequest, at_most: int = 100, keep_foreign: bool = False
) -> FakeFiles:
    kept = FakeFiles(STORE)
    charge = Charge(open_budget(Limits()), "user")
    media = find_media(request)
    await place_files(media, kept, charge, at_most=at_most, keep_foreign=keep_foreign)
    return kept


async def test_a_file_s_stored_type_wins_over_the_caller_s():
    request = asked(named(PICTURE))
    await placed(request)
    media = request.messages[0].blocks[0].media
    assert media.kind == conversation.MEDIA_KIND_IMAGE
    assert (media.mime_type, media.name, media.data) == ("image/png", "cat.png", b"\x89PNG")
    assert not media.file_id


async def test_the_callers_own_title_stays():
    request = asked(named(NOTES, "My notes"))
    await placed(request)
    assert request.messages[0].blocks[0].media.name == "My notes"


async def test_a_file_named_twice_is_read_once():
    result = Block(tool_result=ToolResult(tool_use_id="t", blocks=[named(PICTURE)]))
    request = asked(named(PICTURE), result)
    kept = await placed(request)
    assert kept.asked == [PICTURE]
    assert request.messages[0].blocks[1].tool_result.blocks[0].media.data == b"\x89PNG"


@pytest.mark.parametrize("unknown", [f"file-{'9' * 26}", "file-x", "someone-elses"])
async def test_another_user_s_file_is_not_found(unknown):
    path = "messages[0].blocks[1]"
    with pytest.raises(GatewayError) as refused:
        await placed(asked(Block(text="a"), named(unknown)))
    assert (refused.value.http_status, refused.value.param) == (404, path)
    assert refused.value.message.startswith(path)


async def test_provider_file_ids_pass_to_providers_that_take_them():
    request = asked(named("file-abc123"), named(PICTURE))
    await placed(request, keep_foreign=True)
    assert request.messages[0].blocks[0].media.file_id == "file-abc123"
    assert request.messages[0].blocks[1].media.data


async def test_all_files_of_a_request_together_are_bounded():
    await placed(asked(named(PICTURE), named(PICTURE)), at_most=8)
    with pytest.raises(GatewayError) as refused:
        await placed(asked(named(PICTURE), named(PICTURE), named(NOTES)), at_most=8)
    assert refused.value.http_status == 413


async def test_text_is_a_text_block_for_who_reads_no_documents():
    request = asked(named(NOTES), named(PICTURE))
    await placed(request)
    remaining, _ = texts_as_blocks(find_media(request), Target("t", "p", "t"), OFF)
    assert request.messages[0].blocks[0].text == "[notes.md]\nGrüße"
    assert [one.block for one in remaining] == [request.messages[0].blocks[1]]


async def test_text_stays_a_document_for_who_reads_them():
    request = asked(named(NOTES))
    await placed(request)
    texts_as_blocks(find_media(request), Target("t", "p", "t", inputs=frozenset({DOCUMENT})), OFF)
    assert request.messages[0].blocks[0].media.mime_type == "text/markdown"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_text_is_read_in_the_encoding_it_shows(encoding):
    assert text_of("Grüße, café".encode(encoding)) == "Grüße, café"


def test_any_bytes_are_read_as_some_text():
    assert text_of(bytes(range(256)))


def test_text_in_an_unknown_charset_is_left_to_who_converts_it():
    request = asked(text("Grüße".encode("cp1252")), text(b"plain"))
    remaining, paths = texts_as_blocks(find_media(request), Target("t", "p", "t"), Multimodal())
    assert [one.block for one in remaining] == [request.messages[0].blocks[0]]
    assert paths == ["messages[0].blocks[1]"]


def text(content: bytes) -> Block:
    return Block(media=Media(kind=DOCUMENT, data=content, mime_type="text/plain"))


def text_of(content: bytes) -> str:
    request = asked(text(content))
    texts_as_blocks(find_media(request), Target("t", "p", "t"), OFF)
    return request.messages[0].blocks[0].text
