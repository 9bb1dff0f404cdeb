"""Recordings as OpenAI's form, and what comes back."""

from email.parser import BytesParser

import pytest

from services.common.errors import GatewayError, UpstreamError
from services.inference.providers.base import Transcript
from services.inference.providers.openai.transcriptions import form, read_transcript
from services.media.conversion.parts import Source

SOUND = b"RIFF\r\n--b\r\nsound"


def fields(body: bytes) -> dict[str, tuple[str | None, bytes]]:
    """Read a form as another library does: file name and bytes by the name of the field."""
    message = BytesParser().parsebytes(
        b"Content-Type: multipart/form-data; boundary=b-1\r\n\r\n" + body
    )
    read = {}
    for part in message.get_payload():
        name = part.get_param("name", header="content-disposition")
        read[name] = (part.get_filename(), part.get_payload(decode=True))
    return read


@pytest.mark.parametrize(
    ("mime_type", "name", "told"),
    [
        ("audio/wav", "", "recording.wav"),
        ("Audio/MPEG; rate=1", "x.wav", "recording.mp3"),
        ("application/octet-stream", "talk.FLAC", "recording.flac"),
        ("", 'a".exe', "recording.wav"),
    ],
)
def test_a_recording_is_sent_with_its_format_in_its_name(mime_type, name, told):
    read = fields(form("whisper-1", Source(SOUND, mime_type, name), "", "b-1"))
    assert read == {
        "model": (None, b"whisper-1"),
        "response_format": (None, b"json"),
        "file": (told, SOUND),
    }


@pytest.mark.parametrize(
    ("language", "code"), [("de", b"de"), ("pt-BR", b"pt"), ("", None), ("e\r\nn", None)]
)
def test_of_a_language_the_first_part_goes(language, code):
    read = fields(form("m", Source(SOUND, "audio/wav"), language, "b-1"))
    assert read.get("language") == (None if code is None else (None, code))


def test_a_name_that_would_break_the_form_is_refused():
    with pytest.raises(GatewayError) as refused:
        form('m\r\n--b-1\r\nContent-Disposition: form-data; name="x"', Source(b"", ""), "", "b-1")
    assert refused.value.code == "unsupported"


@pytest.mark.parametrize(
    ("answer", "heard"),
    [
        ({"text": "Hi"}, Transcript("Hi")),
        ({"text": "", "usage": None}, Transcript("")),
        (
            {"text": "Hi", "usage": {"type": "duration", "seconds": 9}},
            Transcript("Hi", seconds=9.0),
        ),
        ({"text": "Hi", "usage": {"input_tokens": 3, "output_tokens": 2}}, Transcript("Hi", 3, 2)),
        ({"text": "Hi", "usage": {"input_tokens": "many"}}, Transcript("Hi")),
    ],
)
def test_a_transcript_is_read(answer, heard):
    assert read_transcript(answer, "p") == heard


@pytest.mark.parametrize("answer", [{}, {"text": None}, {"text": ["Hi"]}])
def test_an_answer_without_a_text_is_broken(answer):
    with pytest.raises(UpstreamError):
        read_transcript(answer, "p")
