"""Descriptions of images without a model, through a real worker."""

import struct
import zlib

import pytest
from PIL import Image, ImageDraw

from services.common.errors import GatewayError
from services.media.conversion.parts import Source
from tests.grid import each_row
from tests.services.media.conversion import papers

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def facts(converter, image: Image.Image, format: str = "PNG", **options):
    content = papers.packed(image, format, **options)
    return await converter.image_facts(Source(content, "image/unknown"))


async def refusal(converter, content: bytes) -> str:
    with pytest.raises(GatewayError) as caught:
        await converter.image_facts(Source(content, "image/png"))
    assert caught.value.code == "invalid_request"
    return caught.value.message


async def test_size_format_colours_and_text_are_reported(converter):
    content = papers.rendered(papers.pdf("#set page(width: 8cm, height: 3cm)\nHarbour office"))
    described = await converter.image_facts(Source(content, ""))
    assert (described.width, described.height, described.format) == (473, 178, "PNG")
    assert described.colours[0] == "white"
    assert described.text == "Harbour office"


async def test_the_most_frequent_colour_comes_first(converter):
    image = Image.new("RGB", (90, 90), "navy")
    ImageDraw.Draw(image).rectangle((0, 0, 90, 30), "orange")
    assert (await facts(converter, image, "WEBP", lossless=True)).colours == ("blue", "orange")


@each_row(
    ("colour", "name"),
    [
        ("#000000", "black"),
        ("#ffffff", "white"),
        ("#808080", "grey"),
        ("#d02020", "red"),
        ("#8b4513", "brown"),
        ("#ffff00", "yellow"),
        ("#228b22", "green"),
        ("#00bcd4", "cyan"),
        ("#800080", "purple"),
        ("#ff69b4", "pink"),
    ],
)
async def test_colours_have_plain_names(converter, colour, name):
    assert (await facts(converter, Image.new("RGB", (64, 64), colour))).colours == (name,)


async def test_what_is_transparent_is_white(converter):
    described = await facts(converter, Image.new("RGBA", (64, 64), (0, 0, 0, 0)))
    assert described.colours == ("white",)


async def test_a_turned_photograph_has_the_size_that_is_seen(converter):
    exif = Image.Exif()
    exif[0x0112] = 6
    described = await facts(converter, Image.new("RGB", (60, 40)), "JPEG", exif=exif)
    assert (described.width, described.height) == (40, 60)


@pytest.mark.parametrize("side", [5_001, 60_000])
async def test_a_decompression_bomb_is_refused(converter, side):
    def chunk(kind: bytes, held: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + held))
        return struct.pack(">I", len(held)) + kind + held + check

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
    bomb = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(1 << 20)))
    assert "25 megapixels" in await refusal(converter, bomb)


@pytest.mark.parametrize("content", [b"no image", b"", None], ids=["no image", "empty", "cut"])
async def test_a_damaged_image_is_refused(converter, content):
    if content is None:
        content = papers.rendered(papers.pdf("x"))[:500]
    assert "damaged" in await refusal(converter, content)
