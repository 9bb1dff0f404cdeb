"""Resource limits of conversions: fixed ones, and those of a worker process."""

from dataclasses import dataclass

# Pixels of a decoded image.
MAX_PIXELS = 25_000_000
# Unpacked size of an archive (DOCX, PPTX, XLSX), in bytes.
MAX_UNPACKED = 200 << 20
# XML tags of an office document, as readers take microseconds for each: of its pages, sheets and
# slides by format, and of all else (styles, relations, settings) together.
MAX_TAGS = {"DOCX": 1_000_000, "PPTX": 1_000_000, "XLSX": 3_000_000}
MAX_OTHER_TAGS = 200_000
# Rows and cells of a workbook that are read, and the columns of a sheet.
MAX_ROWS = 200_000
MAX_CELLS = 500_000
MAX_COLUMNS = 1_000
# Objects that the pages of a PDF draw: for their text, and where they are rendered, which takes
# longer; and the objects of a page that are looked at for pictures.
MAX_OBJECTS = 1_000_000
MAX_RENDERED_OBJECTS = 200_000
MAX_SEARCHED_OBJECTS = 20_000
# Pixels of a picture in a PDF that is rendered (A4 at 1,200 dpi has 139 million), and of all
# pictures as often as its pages draw them, which takes some four seconds for a billion.
MAX_PICTURE_PIXELS = 200_000_000
MAX_DRAWN_PIXELS = 4_000_000_000
# Tags of a web page, comparisons of the attributes of a tag with one another, of all tags together,
# and the columns that a table cell spans.
MAX_PAGE_TAGS = 200_000
MAX_COMPARISONS = 200_000_000
MAX_SPAN = 100
# Size of a conversion's text, in bytes: more than any model reads.
MAX_TEXT = 8 << 20
# Size of a conversion's pictures and sound, in bytes.
MAX_RESULT = 128 << 20
# Seconds of sound decoded from a film or recording.
MAX_SOUND_S = 35 * 60
# Long side of a picture of a page or frame, in pixels; models downscale larger ones.
MAX_SIDE = 1_568


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits of a worker process.

    Attributes:
        seconds: per conversion.
        memory: bytes of its address space.
        threads: per library.
    """

    seconds: float
    memory: int
    threads: int
