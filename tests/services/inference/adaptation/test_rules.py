"""The adaptation of each medium for each target."""

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
    Conversion,
    MediaCapabilities,
    adapts,
    conversion_for,
)
from tests.grid import each_row

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
OFF = Multimodal(enabled=False)


def capabilities(*inputs, fetches=(), refused=()) -> MediaCapabilities:
    return MediaCapabilities("m", frozenset(inputs), frozenset(refused), frozenset(fetches))


UNKNOWN = MediaCapabilities("m", None, frozenset(), frozenset())


def pdf(**fields) -> Multimodal:
    return Multimodal(pdf=PdfAdaptation(**fields))


def document(mime_type: str, content: bytes = b"x") -> Media:
    return Media(kind=DOCUMENT, mime_type=mime_type, data=content)


@each_row(
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
    assert conversion_for(media, everything, capabilities(kind)) is None
    assert conversion_for(media, everything, UNKNOWN) is None
    assert conversion_for(media, everything, capabilities()) is not None
    assert conversion_for(media, OFF, capabilities()) is None


def test_an_unknown_model_reads_all_until_it_refuses():
    media = Media(kind=IMAGE, data=b"x")
    refusing = MediaCapabilities("m", None, frozenset({IMAGE}), frozenset())
    assert conversion_for(media, Multimodal(), refusing) == Conversion.DESCRIBE
    assert conversion_for(document(PDF), Multimodal(), refusing) is None


def test_an_address_is_left_to_a_provider_that_fetches():
    media = Media(kind=IMAGE, url="https://x/y.png")
    assert conversion_for(media, Multimodal(), capabilities(IMAGE, fetches=[IMAGE])) is None
    assert (
        conversion_for(media, Multimodal(), capabilities(IMAGE, fetches=[DOCUMENT]))
        == Conversion.INLINE
    )
    assert conversion_for(media, Multimodal(), capabilities(fetches=[IMAGE])) == Conversion.INLINE
    assert conversion_for(media, OFF, capabilities(IMAGE)) is None


def test_a_providers_own_file_is_left_alone():
    assert (
        conversion_for(Media(kind=DOCUMENT, file_id="file-x"), Multimodal(), capabilities()) is None
    )


@each_row(
    ("target", "mime_type", "multimodal", "conversion"),
    [
        (capabilities(IMAGE), PDF, Multimodal(), Conversion.PAGES),
        (capabilities(IMAGE, DOCUMENT), DOCX, Multimodal(), Conversion.PAGES),
        (capabilities(), PDF, Multimodal(), Conversion.TEXT),
        (capabilities(), DOCX, Multimodal(), Conversion.TEXT),
        (UNKNOWN, DOCX, Multimodal(), Conversion.TEXT),
        (capabilities(IMAGE), PDF, pdf(mode=PdfAdaptation.MODE_TEXT), Conversion.TEXT),
        (capabilities(), PDF, pdf(mode=PdfAdaptation.MODE_IMAGES), Conversion.DESCRIBED_PAGES),
        (UNKNOWN, DOCX, pdf(mode=PdfAdaptation.MODE_IMAGES), Conversion.PAGES),
        (capabilities(IMAGE), XLSX, pdf(mode=PdfAdaptation.MODE_IMAGES), Conversion.TEXT),
        (capabilities(IMAGE), XLSX, Multimodal(), Conversion.TEXT),
        (capabilities(DOCUMENT), XLSX, Multimodal(), Conversion.TEXT),
        (capabilities(DOCUMENT), "application/json", Multimodal(), Conversion.TEXT),
        (capabilities(DOCUMENT), "text/plain", Multimodal(), None),
    ],
)
def test_documents_become_what_the_model_reads_best(target, mime_type, multimodal, conversion):
    assert conversion_for(document(mime_type), multimodal, target) == conversion


def test_text_other_than_utf_8_is_always_converted():
    latin = document("text/plain", "Grüße".encode("cp1252"))
    assert conversion_for(latin, Multimodal(), capabilities(DOCUMENT)) == Conversion.TEXT
