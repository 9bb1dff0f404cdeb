"""Media of few bytes that are large once they are read. Pure."""

import struct
import zlib
from collections.abc import Callable, Mapping
from functools import partial

# A compressed stream of zeros.
_ZEROS_MB = 64


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int) -> bytes:
    """Return a picture of one colour, whose rows are made of zeros."""
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    packer = zlib.compressobj(9)
    row, pixels = bytes(1 + (width + 7) // 8), bytearray()
    for _ in range(min(height, _ZEROS_MB * (1 << 20) // len(row))):
        pixels += packer.compress(row)
    pixels += packer.flush()
    chunks = _png_chunk(b"IHDR", header) + _png_chunk(b"IDAT", bytes(pixels))
    return b"\x89PNG\r\n\x1a\n" + chunks + _png_chunk(b"IEND", b"")


def gif(width: int, height: int, frames: int) -> bytes:
    """Return an animation whose frames are each as large as a picture can be."""
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6)
    frame = b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x02\x4c\x01\x00"
    return head + frame * frames + b";"


def pdf(*objects: bytes) -> bytes:
    """Return a document of these objects, the first of which is its catalogue."""
    out, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer <</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
    return bytes(out)


_CATALOGUE = b"<</Type/Catalog/Pages 2 0 R>>"


def deep_pdf(levels: int) -> bytes:
    """Return a document whose tree of pages is so many levels deep."""
    nodes = [b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % (number + 3) for number in range(levels)]
    page = b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 9 9]>>" % (levels + 1)
    return pdf(_CATALOGUE, *nodes, page)


def wide_pdf(side: int) -> bytes:
    """Return a document of one page that is a square of so many points."""
    pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents 4 0 R>>" % (side, side)
    content = b"0 0 %d %d re f" % (side, side)
    stream = b"<</Length %d>>stream\n%b\nendstream" % (len(content), content)
    return pdf(_CATALOGUE, pages, page, stream)


def vast_pdf(user_unit: int) -> bytes:
    """Return a document of a page as large as any may be, in units of so many points."""
    pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 14400 14400]/UserUnit %d/Contents 4 0 R>>"
    content = b"0 0 14400 14400 re f"
    stream = b"<</Length %d>>stream\n%b\nendstream" % (len(content), content)
    return pdf(_CATALOGUE, pages, page % user_unit, stream)


def picture_pdf(side: int, times: int, *, is_annotation: bool = False) -> bytes:
    """Return a document whose page, or an annotation of it, draws a square picture repeatedly."""
    packer = zlib.compressobj(1)  # a third of the time of the best compression
    row = bytes(side * 3)
    pixels = b"".join([packer.compress(row) for _ in range(side)]) + packer.flush()
    picture = (
        b"<</Type/XObject/Subtype/Image/Width %d/Height %d/BitsPerComponent 8"
        b"/ColorSpace/DeviceRGB/Filter/FlateDecode/Length %d>>stream\n%b\nendstream"
    ) % (side, side, len(pixels), pixels)
    resources = b"/Resources<</XObject<</I 4 0 R>>>>"
    drawn = b"q 600 0 0 800 0 0 cm /I Do Q\n" * times
    kind = b"/Type/XObject/Subtype/Form/BBox[0 0 600 800]" if is_annotation else b""
    content = b"<<%b%b/Length %d>>stream\n%b\nendstream" % (kind, resources, len(drawn), drawn)
    own = b"/Annots[6 0 R]" if is_annotation else b"/Contents 5 0 R" + resources
    return pdf(
        _CATALOGUE,
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]%b>>" % own,
        picture,
        content,
        b"<</Type/Annot/Subtype/Stamp/Rect[0 0 600 800]/F 4/AP<</N 5 0 R>>>>",
    )


def endless_pdf(pages: int) -> bytes:
    """Return a document that counts one page, and the tree above it, as its own kids."""
    return pdf(
        _CATALOGUE,
        b"<</Type/Pages/Kids[%b 2 0 R]/Count %d>>" % (b"3 0 R " * pages, pages + 1),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
    )


def packed_pdf() -> bytes:
    """Return a document whose page is drawn by a packed stream of packed zeros."""
    inner = zlib.compress(zlib.compress(b"0 0 9 9 re f\n" * 5_000_000, 9), 9)
    stream = b"<</Length %d/Filter[/FlateDecode/FlateDecode]>>stream\n%b\nendstream"
    return pdf(
        _CATALOGUE,
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>",
        stream % (len(inner), inner),
    )


def wav(data: bytes, *, said_bytes: int, rate: int) -> bytes:
    """Return sound of one channel whose header says that it has so many bytes."""
    form = struct.pack("<HHIIHH", 1, 1, rate, rate, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form
    body += b"data" + struct.pack("<I", said_bytes) + data
    return b"RIFF" + struct.pack("<I", min(said_bytes + 36, 0xFFFFFFFF)) + body


def _box(kind: bytes, *content: bytes) -> bytes:
    data = b"".join(content)
    return struct.pack(">I", 8 + len(data)) + kind + data


def mp4(width: int, height: int, samples: int) -> bytes:
    """Return a film that says it has so many frames of a size, and holds one empty one."""
    matrix = struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
    header = struct.pack(">IIIII", 0, 0, 0, 1000, samples) + struct.pack(">IH10x", 0x10000, 0x100)
    mvhd = _box(b"mvhd", header, matrix, bytes(24), struct.pack(">I", 2))
    tkhd = _box(
        b"tkhd",
        struct.pack(">IIIIII", 7, 0, 0, 1, 0, samples),
        bytes(16),
        matrix,
        struct.pack(">II", width << 16, height << 16),
    )
    mdhd = _box(b"mdhd", struct.pack(">IIIIIHH", 0, 0, 0, 1000, samples, 0, 0))
    hdlr = _box(b"hdlr", struct.pack(">II", 0, 0), b"vide", bytes(13))
    entry = _box(
        b"mp4v",
        bytes(6),
        struct.pack(">H", 1),
        bytes(16),
        struct.pack(">HH", width, height),
        bytes(14 + 32),
        struct.pack(">Hh", 24, -1),
    )
    table = _box(
        b"stbl",
        _box(b"stsd", struct.pack(">II", 0, 1), entry),
        _box(b"stts", struct.pack(">IIII", 0, 1, samples, 1)),
        _box(b"stsc", struct.pack(">IIIII", 0, 1, 1, samples, 1)),
        _box(b"stsz", struct.pack(">III", 0, 1, samples)),
        _box(b"stco", struct.pack(">III", 0, 1, 48)),
    )
    media = _box(b"mdia", mdhd, hdlr, _box(b"minf", _box(b"vmhd", bytes(12)), table))
    ftyp = _box(b"ftyp", b"isom", struct.pack(">I", 0), b"isommp42")
    return ftyp + _box(b"moov", mvhd, _box(b"trak", tkhd, media)) + _box(b"mdat", bytes(64))


def silence() -> bytes:
    """Return 40 minutes of silence at the lowest rate that players know."""
    data = bytes([128]) * (40 * 60 * 1000)
    return wav(data, said_bytes=len(data), rate=1000)


# The type of each, and what makes it.
BOMBS: Mapping[str, tuple[str, Callable[[], bytes]]] = {
    "a picture of 900 megapixels": ("image/png", partial(png, 30_000, 30_000)),
    "a picture of 4 gigapixels": ("image/png", partial(png, 65_535, 65_535)),
    "a picture of one endless row": ("image/png", partial(png, 0x7FFFFFFF, 1)),
    "an animation of huge frames": ("image/gif", partial(gif, 65_535, 65_535, 10_000)),
    "a deep tree of pages": ("application/pdf", partial(deep_pdf, 50_000)),
    "a page of a square kilometre": ("application/pdf", partial(wide_pdf, 2_834_645)),
    "a page of the largest size and unit": ("application/pdf", partial(vast_pdf, 75_000)),
    "a page with a picture of 400 megapixels": ("application/pdf", partial(picture_pdf, 20_000, 1)),
    "a page that draws a picture 1,000 times": (
        "application/pdf",
        partial(picture_pdf, 4_000, 1_000),
    ),
    "a tree of pages within itself": ("application/pdf", partial(endless_pdf, 20_000)),
    "a page packed twice": ("application/pdf", packed_pdf),
    "sound that says it has 4 GiB": (
        "audio/wav",
        partial(wav, b"", said_bytes=0xFFFFFFFF, rate=8000),
    ),
    "40 minutes of silence": ("audio/wav", silence),
    "a film of huge frames": ("video/mp4", partial(mp4, 65_535, 65_535, 1)),
    "a film of 4 billion frames": ("video/mp4", partial(mp4, 64, 64, 0xFFFFFFFF)),
}
