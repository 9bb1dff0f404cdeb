"""Recall, speed and memory of conversions, beside a peer: `make bench-media`.

Documents are set here by Typst, with words that are known; scans are their pages rendered,
turned by 2 degrees and made noisy. Each reader works in a process of its own, whose imports are
done; seconds are of one CPU, in steps of 0.01. The peer reads no scans: no package does without
models that it downloads.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry

from services.common.settings import Limits
from services.media.conversion.parts import Ocr, Source
from services.media.conversion.pool import ConversionPool, PooledConverter
from tests.bench import processes
from tests.services.media.conversion import papers

PAGES = 100
# The peer: takes a PDF's path, and tells its CPU seconds, its greatest memory in KiB, the text.
_PEER = """
import sys, time
import pypdf
started = time.process_time()
pages = [page.extract_text() for page in pypdf.PdfReader(sys.argv[1]).pages]
seconds = time.process_time() - started
sys.stdout.reconfigure(encoding="utf-8", errors="replace")
peak = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(seconds, *peak)
print("\\n".join(pages))
"""
_COLUMNS = " ".join((papers.TITLE, papers.LEFT, *sum(papers.TABLE, ()), papers.RIGHT))
_ORDER = (papers.TITLE, "harbour master", "happily through puddles", "Ropes 7 18.25", "comforting")


@dataclass(frozen=True, slots=True)
class Document:
    """A document, and what is in it.

    Attributes:
        expected: its words.
        order: texts that follow one another.
        letters: whether its script has no spaces, so that letters are counted for words.
    """

    name: str
    content: bytes
    pages: int
    expected: str
    order: Sequence[str] = ()
    letters: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """Results of one reader for a document; seconds are of a CPU."""

    reader: str
    recall: float
    in_order: bool
    seconds_a_page: float
    megabytes: float


def documents() -> Sequence[Document]:
    """Return the documents, digital ones first."""
    columns = papers.two_columns()
    formula = f"{papers.LEFT}\n\n$ sum_(k=1)^n k = (n (n + 1)) / 2 $\n\n{papers.RIGHT}"
    hyphens = f'#set page(columns: 3)\n#set text(hyphenate: true, lang: "en")\n{_prose(12)}'
    chinese = "\n\n".join([papers.CHINESE, papers.JAPANESE] * 12)
    large = f'#set text(font: "{papers.CJK_FONT}", size: 14pt)\n{chinese}'
    arabic = f'#set text(font: "DejaVu Sans", lang: "ar", dir: rtl)\n{papers.ARABIC}\n\n'
    hebrew = f'#set text(lang: "he")\n{papers.HEBREW}'
    many = f"#for _ in range({PAGES}) [#columns(2)[{_prose(4)}] #pagebreak(weak: true)]"
    scan = papers.scan
    return (
        Document("two columns, table", columns, 1, _COLUMNS, _ORDER),
        Document("formulas", papers.pdf(formula), 1, f"{papers.LEFT} {papers.RIGHT}"),
        Document("3 columns, hyphens", papers.pdf(hyphens), 2, _prose(12)),
        Document("Chinese, Japanese", papers.pdf(large), 1, chinese, letters=True),
        Document(
            "Arabic, Hebrew", papers.pdf(arabic + hebrew), 1, f"{papers.ARABIC} {papers.HEBREW}"
        ),
        Document(f"{PAGES} pages", papers.pdf(many), PAGES, _prose(4 * PAGES)),
        Document("scan: two columns, table", scan(columns), 1, _COLUMNS, _ORDER),
        Document("scan: 10 pt, dense", scan(papers.pdf(_dense())), 1, _prose(10)),
        Document("scan: Chinese, Japanese", scan(papers.pdf(large)), 1, chinese, letters=True),
    )


def _prose(times: int) -> str:
    return "\n\n".join([papers.LEFT, papers.RIGHT][number % 2] for number in range(times))


def _dense() -> str:
    return f"#set page(margin: 2cm, columns: 2)\n#set text(size: 10pt)\n{_prose(10)}"


async def ours(document: Document) -> Figures:
    """Return what a worker makes of a document; its libraries are imported before."""
    limits = Limits(max_parallel_conversions=1, conversion_timeout_s=600)
    pool = ConversionPool(limits, CollectorRegistry())
    converter = PooledConverter(pool, lambda: "bench")
    try:
        small = papers.scan(papers.pdf("#set page(height: 2cm)\nx"))
        await converter.pages_as_text(Source(small, ""), max_pages=1, ocr=Ocr.AUTO)
        (pid,) = pool.workers()
        before = processes.cpu_seconds([pid])
        pages = await converter.pages_as_text(
            Source(document.content, ""), max_pages=document.pages + 9, ocr=Ocr.AUTO
        )
        seconds = processes.cpu_seconds([pid]) - before
        megabytes = _peak_kib(pid) / 1024
    finally:
        await pool.close()
    return _figures("gateway", document, "\n".join(page.text for page in pages), seconds, megabytes)


def peer(document: Document) -> Figures:
    """Return what pypdf makes of a document."""
    with tempfile.NamedTemporaryFile(suffix=".pdf") as written:
        written.write(document.content)
        written.flush()
        completed = subprocess.run(
            (sys.executable, "-c", _PEER, written.name), capture_output=True, text=True, check=True
        )
    head, _, text = completed.stdout.partition("\n")
    seconds, kib = map(float, head.split())
    return _figures("pypdf", document, text, seconds, kib / 1024)


def _figures(
    reader: str, document: Document, text: str, seconds: float, megabytes: float
) -> Figures:
    expected = document.expected
    if document.letters:
        expected, text = " ".join(expected), " ".join(text)
    return Figures(
        reader,
        papers.recall(expected, text),
        papers.in_order(document.order, text),
        seconds / document.pages,
        megabytes,
    )


def _peak_kib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1])
    return 0.0


async def main() -> None:
    """Print a line for each document and reader."""
    print(f"{'document':26} {'reader':8} {'recall':>7} {'order':>6} {'CPU s/page':>11} {'MB':>6}")
    for document in documents():
        for one in (await ours(document), await asyncio.to_thread(peer, document)):
            order = "" if not document.order else "kept" if one.in_order else "lost"
            print(
                f"{document.name:26} {one.reader:8} {one.recall:7.3f} {order:>6}"
                f" {one.seconds_a_page:11.3f} {one.megabytes:6.0f}",
                flush=True,
            )


if __name__ == "__main__":
    asyncio.run(main())
