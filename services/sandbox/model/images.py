"""Formats and sizes of images, from the first bytes of a file.

Sources: the PNG specification (IHDR), ITU T.81 (JPEG markers), GIF89a (logical screen), and the
WebP container specification (VP8, VP8L, VP8X).
"""

from dataclasses import dataclass

# Maximum segments of a JPEG that are searched for its frame.
_MAX_SEGMENTS = 256
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """A format (PNG, JPEG, GIF or WebP) and a size in pixels."""

    format: str
    width: int
    height: int


def read_image(data: bytes) -> ImageInfo | None:
    """Return the format and size of an image, or None if the format is unknown."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        return ImageInfo("PNG", _big(data[16:20]), _big(data[20:24]))
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) >= 10:
        return ImageInfo("GIF", _little(data[6:8]), _little(data[8:10]))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp(data)
    if data.startswith(b"\xff\xd8"):
        return _jpeg(data)
    return None


def _webp(data: bytes) -> ImageInfo | None:
    if len(data) < 30:
        return None
    match data[12:16]:
        case b"VP8X":
            return ImageInfo("WebP", _little(data[24:27]) + 1, _little(data[27:30]) + 1)
        case b"VP8L" if data[20] == 0x2F:
            bits = _little(data[21:25])
            return ImageInfo("WebP", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            return ImageInfo("WebP", _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF)
    return None


def _jpeg(data: bytes) -> ImageInfo | None:
    position = 2
    for _ in range(_MAX_SEGMENTS):
        if position + 9 > len(data) or data[position] != 0xFF:
            return None
        marker = data[position + 1]
        if marker == 0xFF:  # a fill byte before a marker
            position += 1
        elif marker in _JPEG_FRAMES:
            height, width = _big(data[position + 5 : position + 7]), data[position + 7 :][:2]
            return ImageInfo("JPEG", _big(width), height)
        else:
            position += 2 + _big(data[position + 2 : position + 4])
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
