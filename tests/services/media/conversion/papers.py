"""PDFs set by Typst, and scans of them: pages rendered, turned and made noisy."""

import functools
import io
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import cvttf_NotoSansCJK_Regular
import numpy as np
import pypdf
import pypdfium2 as pdfium
import typst
from PIL import Image

FONTS = Path(cvttf_NotoSansCJK_Regular.__file__).parent
CJK_FONT = "Noto Sans CJK TC"
# Many different words, each once, in an order that can be checked.
LEFT = (
    "Every morning the harbour master counted ships before breakfast, writing their names down "
    "slowly with blue ink. Fishermen complained about tariffs while gulls circled above crates "
    "full of mackerel. Nobody remembered when that lighthouse had last been painted, although "
    "several visitors asked. Rain arrived around noon, drumming on copper roofs until gutters "
    "overflowed and children splashed happily through puddles."
)
RIGHT = (
    "Meanwhile, across town, a clockmaker repaired seventeen watches using tweezers, patience and "
    "borrowed lamplight. Customers waited outside discussing politics, weather, football results "
    "and rising bread prices. Her apprentice swept brass shavings into paper envelopes because "
    "scrap still sold well. By evening every pendulum swung together, filling narrow rooms with "
    "steady ticking that neighbours found strangely comforting."
)
TITLE = "Notes From Two Quiet Streets"
TABLE = (("Item", "Count", "Price"), ("Anchors", "12", "340.50"), ("Ropes", "7", "18.25"))
CHINESE = "港口的早晨非常安静渔民们正在准备出海的船只"
JAPANESE = "時計屋は古い時計を丁寧に修理しています"
ARABIC = "وصلت السفن إلى الميناء قبل شروق الشمس"
HEBREW = "השען תיקן שעונים ישנים בסבלנות רבה"


def pdf(source: str) -> bytes:
    """Return a PDF of a Typst source."""
    return typst.compile(source.encode(), format="pdf", font_paths=[str(FONTS)])


@functools.cache
def two_columns(left: str = LEFT, right: str = RIGHT, *, size: str = 'paper: "a4"') -> bytes:
    """Return a page with a title, two columns and a table under the first."""
    cells = ", ".join(f"[{cell}]" for row in TABLE for cell in row)
    return pdf(
        f"#set page({size}, margin: 2cm)\n#set par(justify: true)\n#set text(size: 11pt)\n"
        f"#align(center)[#text(17pt)[{TITLE}]]\n"
        f"#columns(2)[{left}\n\n#table(columns: 3, {cells})\n#colbreak()\n{right}]"
    )


def rendered(document: bytes, *, dpi: int = 150, degrees: float = 0, noise: float = 0) -> bytes:
    """Return a PNG of the first page."""
    page = pdfium.PdfDocument(document)[0]
    image = page.render(scale=dpi / 72).to_pil().convert("RGB")
    image = image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor="white")
    pixels = np.asarray(image).astype(np.int16)
    pixels = pixels + np.random.default_rng(1).normal(0, noise, pixels.shape)
    return packed(Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)), "PNG")


def packed(image: Image.Image, format: str, **options: object) -> bytes:
    """Return an image as a file."""
    written = io.BytesIO()
    image.save(written, format, **options)
    return written.getvalue()


def scan(document: bytes, *, dpi: int = 150, degrees: float = 2, noise: float = 12) -> bytes:
    """Return a PDF whose page is a picture of the first page of another."""
    image = Image.open(io.BytesIO(rendered(document, dpi=dpi, degrees=degrees, noise=noise)))
    return packed(image, "PDF", resolution=dpi)


def encrypted() -> bytes:
    """Return a PDF that opens with a password."""
    writer = pypdf.PdfWriter(io.BytesIO(pdf("a secret")))
    writer.encrypt("password", algorithm="AES-256")
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def words(text: str) -> Sequence[str]:
    """Return the words of a text, in lower case and without punctuation."""
    return re.findall(r"\w+", text.lower())


def recall(expected: str, text: str) -> float:
    """Return the share of the expected words that were found, each as often as expected."""
    expected_words = Counter(words(expected))
    return (expected_words & Counter(words(text))).total() / expected_words.total()


def in_order(expected: Sequence[str], read_text: str) -> bool:
    """Return whether texts are found one after the other, whatever stands between them."""
    seen = words(read_text)
    place = 0
    for text in expected:
        expected_words = list(words(text))
        following = [
            at
            for at in range(place, len(seen))
            if list(seen[at : at + len(expected_words)]) == expected_words
        ]
        if not following:
            return False
        place = following[0] + len(expected_words)
    return True
