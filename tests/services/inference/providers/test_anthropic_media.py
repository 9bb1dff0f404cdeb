"""Media of the canonical conversation in requests to Anthropic."""

import base64

import pytest

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media
from tests.services.inference.providers.anthropic_calls import (
    ANTHROPIC,
    USER,
    body_of,
    call_of,
    content_of,
    opaque,
    refusal_of,
    says,
)
from tests.services.inference.providers.caller_paths import dropped_of

IMAGE = conversation_pb2.MEDIA_KIND_IMAGE

DOCUMENT = conversation_pb2.MEDIA_KIND_DOCUMENT

PNG = Block(media=Media(kind=IMAGE, data=b"\x89PNG", mime_type="image/png"))

PNG_SENT = {
    "type": "image",
    "source": {
        "type": "base64",
        "media_type": "image/png",
        "data": base64.b64encode(b"\x89PNG").decode(),
    },
}


def document(data: bytes, mime_type: str, name: str = "") -> Block:
    return Block(media=Media(kind=DOCUMENT, data=data, mime_type=mime_type, name=name))


def test_an_image_travels_in_base64() -> None:
    assert content_of(PNG) == [PNG_SENT]


def test_jpg_is_another_word_for_jpeg() -> None:
    image = Block(media=Media(kind=IMAGE, data=b"x", mime_type="image/jpg"))
    assert content_of(image)[0]["source"]["media_type"] == "image/jpeg"


@pytest.mark.parametrize("kind", [IMAGE, DOCUMENT])
def test_a_url_is_passed_to_a_provider_that_fetches(kind: int) -> None:
    block = Block(media=Media(kind=kind, url="https://a.example/x"))
    call = call_of(says(USER, "look", block))
    sent = body_of(call, fetches_urls=True)["messages"][0]["content"][1]
    assert sent["source"] == {"type": "url", "url": "https://a.example/x"}
    assert refusal_of(call, fetches_urls=False) == ("UNSUPPORTED", "messages[0].content[1]")


def test_a_pdf_travels_in_base64_with_its_title() -> None:
    assert content_of(document(b"%PDF", "application/pdf", "a.pdf")) == [
        {
            "type": "document",
            "source": {
                "type": "base64",
                "media_type": "application/pdf",
                "data": base64.b64encode(b"%PDF").decode(),
            },
            "title": "a.pdf",
        }
    ]


def test_a_text_document_stays_one_for_callers_who_know_them() -> None:
    sent = content_of(document("ä".encode(), "text/plain", "a.txt"), dialect=ANTHROPIC)
    assert sent == [
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "ä"},
            "title": "a.txt",
        }
    ]


def test_a_text_file_of_chat_becomes_plain_text_under_its_name() -> None:
    sent = content_of(document(b"\xef\xbb\xbfa,b", "text/csv; charset=utf-8", "a.csv"), PNG)
    assert sent[0] == {"type": "text", "text": "[a.csv]\na,b"}


def test_fields_of_a_document_without_a_name_here_go_on() -> None:
    block = document(b"%PDF", "application/pdf")
    block.extra.CopyFrom(opaque({"citations": {"enabled": True}, "context": "c", "source": 1}))
    (sent,) = content_of(block, dialect=ANTHROPIC)
    assert sent["citations"] == {"enabled": True}
    assert sent["context"] == "c"
    assert sent["source"]["type"] == "base64"


@pytest.mark.parametrize(
    "media",
    [
        Media(kind=conversation_pb2.MEDIA_KIND_AUDIO, data=b"x", mime_type="audio/wav"),
        Media(kind=conversation_pb2.MEDIA_KIND_VIDEO, data=b"x", mime_type="video/mp4"),
        Media(kind=IMAGE, data=b"x", mime_type="image/tiff"),
        Media(kind=DOCUMENT, data=b"x", mime_type="application/msword"),
        Media(kind=DOCUMENT, data=b"\xff\xfe", mime_type="text/plain"),
    ],
)
def test_unreadable_media_are_refused_with_their_path(media: Media) -> None:
    refused = refusal_of(call_of(says(USER, "a"), says(USER, "b", Block(media=media))))
    assert refused == ("UNSUPPORTED", "messages[1].content[1]")


@pytest.mark.parametrize("kind", [IMAGE, DOCUMENT])
def test_a_medium_without_bytes_is_refused(kind: int) -> None:
    block = Block(media=Media(kind=kind, data=b"", mime_type="image/png"))
    assert refusal_of(call_of(says(USER, block))) == ("INVALID_REQUEST", "messages[0].content[0]")


def test_a_file_kept_at_the_provider_needs_the_operators_leave() -> None:
    block = Block(media=Media(kind=IMAGE, file_id="file_011"))
    call = call_of(says(USER, block), dialect=ANTHROPIC)
    assert refusal_of(call) == ("INVALID_REQUEST", "messages[0].content[0]")
    sent = body_of(call, pass_stateful=True)["messages"][0]["content"][0]
    assert sent["source"] == {"type": "file", "file_id": "file_011"}


@pytest.mark.parametrize("detail", ["low", "high"])
def test_detail_of_an_image_is_dropped_and_reported_once(detail: str) -> None:
    block = Block(media=Media(kind=IMAGE, data=b"x", mime_type="image/png", detail=detail))
    call = call_of(says(USER, block, block))
    body_of(call)
    assert dropped_of(call) == ["messages[].content[].image_url.detail"]
