"""What becomes of each medium for each target."""

import pytest

from gateway.conversation.v1.conversation_pb2 import Media
from gateway.inference.v1.inference_pb2 import (
    AudioAdaptation,
    ImageAdaptation,
    Multimodal,
    PdfAdaptation,
    VideoAdaptation,
)
from services.inference.adaptation.rules import (
    AUDIO,
    DOCUMENT,
    IMAGE,
    VIDEO,
    Reader,
    Way,
    adapts,
    way_of,
)

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
OFF = Multimodal(enabled=False)


def reader(*inputs, fetches=(), refused=()) -> Reader:
    return Reader("m", frozenset(inputs), frozenset(refused), frozenset(fetches))


UNKNOWN = Reader("m", None, frozenset(), frozenset())


def pdf(**fields) -> Multimodal:
    return Multimodal(pdf=PdfAdaptation(**fields))


def document(mime_type: str, content: bytes = b"x") -> Media:
    return Media(kind=DOCUMENT, mime_type=mime_type, data=content)


@pytest.mark.parametrize(
    ("multimodal", "on"),
    [
        (Multimodal(), {IMAGE, DOCUMENT}),
        (Multimodal(enabled=True), {IMAGE, DOCUMENT}),
        (OFF, set()),
        (Multimodal(enabled=False, audio=AudioAdaptation()), set()),
        (Multimodal(image=ImageAdaptation(enabled=False)), {DOCUMENT}),
        (Multimodal(pdf=PdfAdaptation(enabled=False)), {IMAGE}),
        (Multimodal(audio=AudioAdaptation()), {IMAGE, DOCUMENT, AUDIO}),
        (Multimodal(audio=AudioAdaptation(enabled=False)), {IMAGE, DOCUMENT}),
        (Multimodal(video=VideoAdaptation(enabled=True)), {IMAGE, DOCUMENT, VIDEO}),
        (Multimodal(video=VideoAdaptation(enabled=False)), {IMAGE, DOCUMENT}),
    ],
)
def test_which_media_are_converted(multimodal, on):
    assert {kind for kind in (IMAGE, DOCUMENT, AUDIO, VIDEO) if adapts(multimodal, kind)} == on


@pytest.mark.parametrize("kind", [IMAGE, DOCUMENT, AUDIO, VIDEO])
def test_what_is_read_goes_untouched_whatever_is_asked_for(kind):
    everything = Multimodal(
        image=ImageAdaptation(model="embedded"),
        pdf=PdfAdaptation(mode=PdfAdaptation.MODE_TEXT),
        video=VideoAdaptation(),
        audio=AudioAdaptation(),
    )
    media = Media(kind=kind, data=b"x", mime_type=PDF if kind == DOCUMENT else "")
    assert way_of(media, everything, reader(kind)) is None
    assert way_of(media, everything, UNKNOWN) is None
    assert way_of(media, everything, reader()) is not None
    assert way_of(media, OFF, reader()) is None


def test_an_unknown_model_reads_all_until_it_refuses():
    media = Media(kind=IMAGE, data=b"x")
    refusing = Reader("m", None, frozenset({IMAGE}), frozenset())
    assert way_of(media, Multimodal(), refusing) == Way.DESCRIBE
    assert way_of(document(PDF), Multimodal(), refusing) is None


def test_an_address_is_left_to_a_provider_that_fetches():
    media = Media(kind=IMAGE, url="https://x/y.png")
    assert way_of(media, Multimodal(), reader(IMAGE, fetches=[IMAGE])) is None
    assert way_of(media, Multimodal(), reader(IMAGE, fetches=[DOCUMENT])) == Way.INLINE
    assert way_of(media, Multimodal(), reader(fetches=[IMAGE])) == Way.INLINE
    assert way_of(media, OFF, reader(IMAGE)) is None


def test_a_providers_own_file_is_left_alone():
    assert way_of(Media(kind=DOCUMENT, file_id="file-x"), Multimodal(), reader()) is None


@pytest.mark.parametrize(
    ("target", "mime_type", "multimodal", "way"),
    [
        (reader(IMAGE), PDF, Multimodal(), Way.PAGES),
        (reader(IMAGE, DOCUMENT), DOCX, Multimodal(), Way.PAGES),
        (reader(), PDF, Multimodal(), Way.TEXT),
        (reader(), DOCX, Multimodal(), Way.TEXT),
        (UNKNOWN, DOCX, Multimodal(), Way.TEXT),
        (reader(IMAGE), PDF, pdf(mode=PdfAdaptation.MODE_TEXT), Way.TEXT),
        (reader(), PDF, pdf(mode=PdfAdaptation.MODE_IMAGES), Way.DESCRIBED_PAGES),
        (UNKNOWN, DOCX, pdf(mode=PdfAdaptation.MODE_IMAGES), Way.PAGES),
        (reader(IMAGE), XLSX, pdf(mode=PdfAdaptation.MODE_IMAGES), Way.TEXT),
        (reader(IMAGE), XLSX, Multimodal(), Way.TEXT),
        (reader(DOCUMENT), XLSX, Multimodal(), Way.TEXT),
        (reader(DOCUMENT), "application/json", Multimodal(), Way.TEXT),
        (reader(DOCUMENT), "text/plain", Multimodal(), None),
    ],
)
def test_documents_become_what_the_model_reads_best(target, mime_type, multimodal, way):
    assert way_of(document(mime_type), multimodal, target) == way


def test_text_other_than_utf_8_is_always_converted():
    latin = document("text/plain", "Grüße".encode("cp1252"))
    assert way_of(latin, Multimodal(), reader(DOCUMENT)) == Way.TEXT
