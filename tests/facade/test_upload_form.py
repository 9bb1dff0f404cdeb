"""Fields of an upload form, in any order."""

import itertools

import pytest

from facade.transfers.upload_form import MAX_FIELD, UploadForm
from gateway.files.v1 import files_pb2
from services.common.errors import GatewayError
from tests.grid import each_row

FILE = b'Content-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\ncontent'
ANCHORED = {"expires_after[anchor]": "created_at"}
WEEK = '{"anchor":"created_at","seconds":604800}'


def text(name, value):
    return f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}'.encode()


def read(*parts, max_file_bytes=100, anthropic_client=False):
    form = UploadForm(b"b", max_file_bytes=max_file_bytes, anthropic_client=anthropic_client)
    body = b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + b"--b--\r\n"
    pieces = [piece for at in range(0, len(body), 5) for piece in form.feed(body[at : at + 5])]
    return pieces, form.close()


def refused(*parts, param, **options):
    with pytest.raises(GatewayError) as caught:
        read(*parts, **options)
    assert caught.value.param == param
    assert caught.value.message.startswith(f"{param}: ")
    return caught.value


def test_fields_may_come_in_any_order():
    fields = [FILE, text("purpose", "batch"), text("expires_after", WEEK), text("other", "1")]
    for parts in itertools.permutations(fields):
        (header, *content), trailer = read(*parts)
        assert header == files_pb2.FileHeader(filename="a.txt")
        assert b"".join(content) == b"content"
        assert trailer == files_pb2.FileTrailer(
            purpose=files_pb2.PURPOSE_BATCH, expires_after_s=604_800
        )


@pytest.mark.parametrize(
    ("written", "purpose"),
    [
        ("assistants", files_pb2.PURPOSE_ASSISTANTS),
        ("batch", files_pb2.PURPOSE_BATCH),
        ("fine-tune", files_pb2.PURPOSE_FINE_TUNE),
        ("vision", files_pb2.PURPOSE_VISION),
        ("user_data", files_pb2.PURPOSE_USER_DATA),
        ("evals", files_pb2.PURPOSE_EVALS),
    ],
)
def test_a_purpose_is_one_that_clients_send(written, purpose):
    assert read(FILE, text("purpose", written))[1] == files_pb2.FileTrailer(purpose=purpose)


@pytest.mark.parametrize(
    "written", ["", "assistants_output", "fine_tune", "Batch", " batch", "batch\r\n", "purpose"]
)
def test_another_purpose_is_refused(written):
    refused(text("purpose", written), param="purpose")


def test_a_purpose_is_needed_but_from_anthropics_clients():
    refused(FILE, param="purpose")
    trailer = read(FILE, anthropic_client=True)[1]
    assert trailer == files_pb2.FileTrailer(purpose=files_pb2.PURPOSE_ASSISTANTS)


@pytest.mark.parametrize("seconds", ["1", "3600", "31536000"])
def test_an_expiry_may_be_json_or_bracketed(seconds):
    policy = f'{{"seconds": {seconds}, "anchor": "created_at"}}'
    bracketed = [
        text("expires_after[anchor]", "created_at"),
        text("expires_after[seconds]", seconds),
    ]
    for written in ([text("expires_after", policy)], bracketed):
        trailer = read(FILE, text("purpose", "batch"), *written)[1]
        assert trailer.expires_after_s == int(seconds)


@each_row(
    ("policy", "param"),
    [
        ("", "expires_after"),
        ("{", "expires_after"),
        ("3600", "expires_after"),
        ("[]", "expires_after"),
        ("null", "expires_after"),
        ('{"seconds": 1}', "expires_after.anchor"),
        ('{"anchor": "last_active_at", "seconds": 1}', "expires_after.anchor"),
        ('{"anchor": ["created_at"], "seconds": 1}', "expires_after.anchor"),
        ('{"anchor": "created_at"}', "expires_after.seconds"),
        ('{"anchor": "created_at", "seconds": 0}', "expires_after.seconds"),
        ('{"anchor": "created_at", "seconds": -1}', "expires_after.seconds"),
        ('{"anchor": "created_at", "seconds": 31536001}', "expires_after.seconds"),
        ('{"anchor": "created_at", "seconds": 1e3}', "expires_after.seconds"),
        ('{"anchor": "created_at", "seconds": "60"}', "expires_after.seconds"),
        ('{"anchor": "created_at", "seconds": true}', "expires_after.seconds"),
        ('{"anchor": "created_at", "seconds": 60, "x": 1}', "expires_after.x"),
    ],
)
def test_a_wrong_expiry_is_refused_by_its_field(policy, param):
    refused(text("expires_after", policy), param=param)


@each_row("seconds", ["", "0", "-1", "1.5", "31536001", "9" * 5000, "\uff11", "x"])
@each_row("name", ["expires_after[seconds]", "expires_in_seconds"])
def test_wrong_seconds_are_refused(name, seconds):
    refused(text(name, seconds), param=name, anthropic_client=True)


def test_a_bracketed_expiry_takes_both_fields():
    purpose = text("purpose", "batch")
    seconds, anchor = (
        text("expires_after[seconds]", "60"),
        text("expires_after[anchor]", "created_at"),
    )
    refused(FILE, purpose, seconds, param="expires_after[anchor]")
    refused(FILE, purpose, anchor, param="expires_after[seconds]")
    refused(text("expires_after[anchor]", "now"), param="expires_after[anchor]")


def test_anthropics_clients_say_seconds_their_way():
    seconds = text("expires_in_seconds", "3600")
    assert read(FILE, seconds, anthropic_client=True)[1].expires_after_s == 3600
    refused(seconds, param="expires_in_seconds")


@pytest.mark.parametrize(
    "ways",
    [
        [text("expires_after", WEEK), text("expires_in_seconds", "60")],
        [text("expires_after", WEEK), text("expires_after[seconds]", "60")],
        [text("expires_in_seconds", "60"), text("expires_after[anchor]", "created_at")],
    ],
)
def test_an_expiry_is_said_in_one_way(ways):
    refused(FILE, *ways, param="expires_after", anthropic_client=True)


def test_a_field_is_there_once():
    refused(text("purpose", "batch"), text("purpose", "batch"), param="purpose")
    refused(FILE, FILE, param="file")


def test_a_file_is_needed_and_is_a_file():
    refused(text("purpose", "batch"), param="file")
    assert "filename" in refused(text("file", "content"), param="file").message
    refused(FILE.replace(b'"file"', b'"mask"'), param="mask")


def test_a_file_is_refused_at_the_byte_that_is_too_much():
    purpose = text("purpose", "batch")
    assert read(FILE, purpose, max_file_bytes=7)
    assert refused(FILE, purpose, param="file", max_file_bytes=6).code == "too_large"


@pytest.mark.parametrize("written", [b"", b'; filename=""'])
def test_a_file_of_anthropics_clients_may_have_no_name(written):
    part = FILE.replace(b'; filename="a.txt"', written)
    (header, *content), _ = read(part, anthropic_client=True)
    assert (header.filename, b"".join(content)) == ("unnamed", b"content")


def test_an_empty_file_is_a_file():
    pieces, _ = read(FILE.replace(b"content", b""), text("purpose", "batch"))
    assert pieces == [files_pb2.FileHeader(filename="a.txt")]


@pytest.mark.parametrize("name", ["purpose", "unknown"])
def test_a_text_is_bounded(name):
    refused(text(name, "x" * (MAX_FIELD + 1)), param=name)


def test_a_text_is_utf_8():
    refused(text("purpose", "").replace(b"\r\n\r\n", b"\r\n\r\n\xff"), param="purpose")


@each_row(
    ("written", "mime_type"),
    [
        ("text/plain", "text/plain"),
        ("Text/HTML; charset=utf-8", "text/html"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",) * 2,
        ("nothing", ""),
        ("text/", ""),
        ("text/pl ain", ""),
        ("text/plain\0", ""),
        ("text/" + "x" * 200, ""),
    ],
)
def test_the_type_that_is_claimed_goes_along_when_it_is_one(written, mime_type):
    part = FILE.replace(b"\r\n\r\n", f"\r\nContent-Type: {written}\r\n\r\n".encode())
    (header, *_), _ = read(part, text("purpose", "batch"))
    assert header.mime_type == mime_type
