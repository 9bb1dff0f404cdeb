"""Bounds of a conversion: what a setting moves, and what is fixed."""

from dataclasses import dataclass

# Pixels of an image once it is decoded.
MAX_PIXELS = 25_000_000
# Bytes of an archive's members (DOCX, PPTX, XLSX) once they are unpacked.
MAX_UNPACKED = 200 << 20
# Bytes of text that come back from a conversion: more than any model reads.
MAX_TEXT = 8 << 20
# Bytes of pictures and sound that come back.
MAX_RESULT = 128 << 20
# Seconds of sound that are decoded of a film or recording.
MAX_SOUND_S = 35 * 60
# The long side of a picture of a page or frame, in pixels; models scale larger ones down.
MAX_SIDE = 1_568


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a worker process may use.

    Attributes:
        seconds: that one conversion may take.
        memory: bytes of its address space.
        threads: that a library may compute with at once.
    """

    seconds: float
    memory: int
    threads: int
