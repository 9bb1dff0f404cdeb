import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.sandbox.model.images import ImageInfo, read_image

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + b"\0\0\x02\x80\0\0\x01\xe0" + b"\x08\x02\0\0\0"
GIF = b"GIF89a" + b"\x80\x02\xe0\x01" + b"\0\0\0"
JPEG = (
    b"\xff\xd8"
    + b"\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    + b"\xff\xff\xc4\0\x04\0\0"  # a fill byte, and a table that is no frame
    + b"\xff\xc2\0\x11\x08\x01\xe0\x02\x80\x03"
)
WEBP_LOSSY = (
    b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0" + b"\0\0\0\x9d\x01\x2a" + b"\x80\x02\xe0\x01" + bytes(4)
)
WEBP_LOSSLESS = (
    b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (639 | 479 << 14).to_bytes(4, "little") + bytes(8)
)
WEBP_EXTENDED = (
    b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0" + bytes(4) + b"\x7f\x02\0" + b"\xdf\x01\0" + bytes(4)
)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (PNG, "PNG"),
        (GIF, "GIF"),
        (JPEG, "JPEG"),
        (WEBP_LOSSY, "WebP"),
        (WEBP_LOSSLESS, "WebP"),
        (WEBP_EXTENDED, "WebP"),
    ],
)
def test_an_image_has_its_format_and_size(data, name):
    assert read_image(data) == ImageInfo(name, 640, 480)


@pytest.mark.parametrize("data", [PNG, GIF, JPEG, WEBP_LOSSY, WEBP_LOSSLESS, WEBP_EXTENDED])
def test_an_image_cut_short_is_an_image_or_none(data):
    for length in range(len(data)):
        image = read_image(data[:length])
        assert image is None or (image.width, image.height) == (640, 480)


@given(st.sampled_from([b"", PNG[:8], GIF[:6], JPEG[:2], WEBP_LOSSY[:16]]), st.binary(max_size=64))
def test_any_bytes_are_an_image_or_none(start, data):
    read_image(start + data)


def test_a_jpeg_of_endless_segments_is_given_up():
    frame = JPEG[-10:]
    assert read_image(b"\xff\xd8" + b"\xff\xe0\0\x02" * 200 + frame) is not None
    assert read_image(b"\xff\xd8" + b"\xff\xe0\0\x02" * 300 + frame) is None
