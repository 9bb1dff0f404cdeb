"""Resource limits of conversions: fixed ones, and those of a worker process."""

from dataclasses import dataclass

# Pixels of a decoded image.
MAX_PIXELS = 25_000_000
# Unpacked size of an archive (DOCX, PPTX, XLSX), in bytes.
MAX_UNPACKED = 200 << 20
# Size of a conversion's text, in bytes: more than any model reads.
MAX_TEXT = 8 << 20
# Size of a conversion's pictures and sound, in bytes.
MAX_RESULT = 128 << 20
# Seconds of sound decoded from a film or recording.
MAX_SOUND_S = 35 * 60
# Long side of a picture of a page or frame, in pixels; models downscale larger ones.
MAX_SIDE = 1_568


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a worker process.

    Attributes:
        seconds: per conversion.
        memory: bytes of its address space.
        threads: per library.
    """

    seconds: float
    memory: int
    threads: int
