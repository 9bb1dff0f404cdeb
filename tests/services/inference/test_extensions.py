"""Requests that need what is not built yet are refused, all others are not."""

import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, MediaKind, Message, ToolResult
from gateway.inference.v1.inference_pb2 import (
    AudioAdaptation,
    GenerateRequest,
    ImageAdaptation,
    Memory,
    Multimodal,
    PdfAdaptation,
    VideoAdaptation,
)
from services.common.errors import GatewayError
from services.inference import extensions
from services.inference.media import find_media
from services.inference.providers.base import Target

IMAGE = conversation.MEDIA_KIND_IMAGE
DOCUMENT = conversation.MEDIA_KIND_DOCUMENT
AUDIO = conversation.MEDIA_KIND_AUDIO
VIDEO = conversation.MEDIA_KIND_VIDEO
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def check(request: GenerateRequest, to: Target) -> None:
    extensions.check_media(find_media(request), request.multimodal, to)


def target(*inputs: MediaKind.ValueType) -> Target:
    return Target("fast", "p", "m", inputs=frozenset(inputs))


def media(kind: MediaKind.ValueType, mime_type: str = "") -> Block:
    return Block(media=Media(kind=kind, url="https://x/y", mime_type=mime_type))


def user(*blocks: Block) -> Message:
    return Message(role=conversation.ROLE_USER, blocks=blocks)


def asked(*blocks: Block, multimodal: Multimodal | None = None) -> GenerateRequest:
    return GenerateRequest(messages=[user(*blocks)], multimodal=multimodal)


def refusal(request: GenerateRequest, to: Target) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        check(request, to)
    assert caught.value.code == "not_implemented"
    assert caught.value.message.startswith(f"{caught.value.param}: ")
    return caught.value


def test_a_plain_request_needs_nothing() -> None:
    check(asked(Block(text="Hi")), target())
    check(GenerateRequest(messages=[user(Block(text="Hi"))], memory=Memory()), target())


@pytest.mark.parametrize("kind", [IMAGE, DOCUMENT])
def test_images_and_documents_are_converted_unless_that_is_off(
    kind: MediaKind.ValueType,
) -> None:
    error = refusal(asked(media(kind)), target())
    assert "fast cannot read" in error.message
    assert refusal(asked(media(kind), multimodal=Multimodal(enabled=True)), target())
    check(asked(media(kind), multimodal=Multimodal(enabled=False)), target())
    check(asked(media(kind)), target(kind))
    only_it_off = Multimodal(
        image=ImageAdaptation(enabled=kind != IMAGE), pdf=PdfAdaptation(enabled=kind != DOCUMENT)
    )
    check(asked(media(kind), multimodal=only_it_off), target())
    only_others_off = Multimodal(
        image=ImageAdaptation(enabled=kind == IMAGE), pdf=PdfAdaptation(enabled=kind == DOCUMENT)
    )
    assert refusal(asked(media(kind), multimodal=only_others_off), target())


@pytest.mark.parametrize(
    ("kind", "on"),
    [
        (AUDIO, Multimodal(audio=AudioAdaptation())),
        (VIDEO, Multimodal(video=VideoAdaptation())),
    ],
)
def test_sound_and_film_are_converted_only_where_their_object_is_there(
    kind: MediaKind.ValueType, on: Multimodal
) -> None:
    check(asked(media(kind)), target())
    check(asked(media(kind), multimodal=Multimodal(enabled=True)), target())
    assert "leave out" in refusal(asked(media(kind), multimodal=on), target()).message
    check(asked(media(kind), multimodal=on), target(kind))
    off = Multimodal()
    off.CopyFrom(on)
    off.enabled = False
    check(asked(media(kind), multimodal=off), target())


def test_office_documents_need_conversion_where_pdf_does_not() -> None:
    reads = target(DOCUMENT)
    for mime_type in (PDF, "", "text/plain", "text/markdown"):
        check(asked(media(DOCUMENT, mime_type)), reads)
    assert "of this format" in refusal(asked(media(DOCUMENT, DOCX)), reads).message
    off = Multimodal(pdf=PdfAdaptation(enabled=False))
    check(asked(media(DOCUMENT, DOCX), multimodal=off), reads)


RESULT = Block(tool_result=ToolResult(tool_use_id="t", blocks=[Block(text="x"), media(IMAGE)]))
SYSTEM = Message(role=conversation.ROLE_SYSTEM, blocks=[Block(text="Be")])


@pytest.mark.parametrize(
    ("dialect", "messages", "path"),
    [
        (
            conversation.DIALECT_OPENAI,
            [SYSTEM, user(Block(text="a"), media(IMAGE))],
            "messages[1].content[1]",
        ),
        (conversation.DIALECT_OPENAI, [user(RESULT)], "messages[0].content[1]"),
        (
            conversation.DIALECT_ANTHROPIC,
            [SYSTEM, user(Block(text="a"), media(IMAGE))],
            "messages[0].content[1]",
        ),
        (conversation.DIALECT_ANTHROPIC, [user(media(IMAGE))], "messages[0].content[0]"),
        (
            conversation.DIALECT_ANTHROPIC,
            [user(Block(text="a")), user(Block(text="b"), RESULT)],
            "messages[1].content[1].content[1]",
        ),
        (conversation.DIALECT_UNSPECIFIED, [SYSTEM, user(media(IMAGE))], "messages[1].blocks[0]"),
        (
            conversation.DIALECT_UNSPECIFIED,
            [user(RESULT)],
            "messages[0].blocks[0].tool_result.blocks[1]",
        ),
    ],
)
def test_a_part_is_named_by_its_path_in_the_callers_dialect(
    dialect: conversation.Dialect.ValueType, messages: list[Message], path: str
) -> None:
    request = GenerateRequest(dialect=dialect, messages=messages)
    assert refusal(request, target()).param == path
