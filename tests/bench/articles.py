"""Measure document editing on SQLite, over gRPC: `python -m tests.bench.articles`.

Times are those of a caller on the same machine, so they hold the call as well as the
edit. The rate of fsyncs that the disk does stands beside the rate of durable edits.
"""

import asyncio
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import orjson
from google.protobuf.message import Message

from gateway.articles.v1 import articles_pb2 as wire
from gateway.articles.v1.articles_pb2_grpc import ArticleEditorServiceStub
from gateway.articles.v1.edits_pb2 import (
    BIBLIOGRAPHY_FORMAT_BIBTEX,
    AppendText,
    ApplyEdits,
    DeleteBlock,
    Edit,
    ImportReferences,
    InsertBlocks,
    SetBlockStyle,
    WriteMarkdown,
)
from services.accounts.repository import AccountRepository
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import Metadata, open_channel
from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate
from tests.services.articles.editor_services import paragraph
from tests.services.articles.killed_processes import editor_process

SMALL, LARGE = 100, 9_900
_HEADING_EVERY = 50
_TOGETHER = 100
# A paper: sections, each with a formula, a table, citations, and text.
_SECTIONS, _PARAGRAPHS = 25, 5
_REFERENCES = 70
_FORMATS = (
    wire.DOCUMENT_FORMAT_LATEX,
    wire.DOCUMENT_FORMAT_DOCX,
    wire.DOCUMENT_FORMAT_PDF,
)
_AN_INSERT = 500
_EDITS = 400
_ROUNDS = 5
_DOCUMENTS = 8
_FOR_S = 3.0
_MAX_MESSAGE = 80 << 20
_SENTENCE = "A block of a line or so of plain text"

# What each figure must reach, as `Figures` names them.
BUDGETS = {
    "p50_ratio": "<= 1.5",
    "p99_ms": "<= 20",
    "longest_ms": "<= 40",
    "cpu_ms": "<= 15",
    "together_ratio": "<= 3",
    "outline_ms": "<= 100",
    "export_s": "<= 5",
    "read_ms": "<= 300",
    "cold_open_ms": "<= 500",
    "edits_per_s": ">= 300",
}


@dataclass(frozen=True)
class Figures:
    """Measured figures.

    Attributes:
        p50_ratio: median time of an edit on the large document, by that on the small one.
        p99_ms: of an edit on the large document, in the median round.
        longest_ms: of any edit on the large document, in the median round.
        cpu_ms: processor time of the service for an edit on the large document.
        together_ratio: time of 100 edits in one request, by that of one edit.
        outline_ms: to return the headings of the large document.
        export_s: to export a paper of 200 blocks, in the format that takes longest.
        read_ms: to read the large document.
        cold_open_ms: to open it in a process that has just started.
        edits_per_s: durable edits over several documents.
        fsyncs_per_s: what the disk does, for comparison.
    """

    p50_ratio: float
    p99_ms: float
    longest_ms: float
    cpu_ms: float
    together_ratio: float
    outline_ms: float
    export_s: float
    read_ms: float
    cold_open_ms: float
    edits_per_s: float
    fsyncs_per_s: float


class _Writer:
    """One document, and who edits it."""

    def __init__(
        self, stub: ArticleEditorServiceStub, metadata: Metadata, chance: random.Random
    ) -> None:
        self._stub = stub
        self._metadata = metadata
        self._chance = chance
        self.article_id = self._session_id = ""
        self._ids: list[str] = []

    async def fill(self, blocks: int) -> None:
        """Make the document."""
        made = await self._stub.CreateArticle(wire.CreateArticleRequest(), metadata=self._metadata)
        self.article_id = made.article.id
        await self.open()
        for start in range(0, blocks, _AN_INSERT):
            await self._insert(start, min(_AN_INSERT, blocks - start))

    async def open(self) -> None:
        """Open the document."""
        opened = await self._stub.CreateSession(
            wire.CreateSessionRequest(article_id=self.article_id), metadata=self._metadata
        )
        self._session_id = opened.session_id

    async def read(self) -> None:
        """Read it whole."""
        await self._stub.ReadArticle(
            wire.ReadArticleRequest(session_id=self._session_id), metadata=self._metadata
        )

    async def append(self) -> None:
        """Append to some block."""
        block_id = self._chance.choice(self._ids)
        await self._apply(append_text=AppendText(block_id=block_id, text=b'" x"'))

    async def append_to_many(self) -> None:
        """Append to as many blocks as a request may."""
        edits = [
            Edit(append_text=AppendText(block_id=block_id, text=b'" x"'))
            for block_id in self._chance.sample(self._ids, _TOGETHER)
        ]
        await self._apply(apply_edits=ApplyEdits(edits=edits))

    async def outline(self) -> None:
        """Return its headings."""
        request = wire.ReadOutlineRequest(session_id=self._session_id)
        await self._stub.ReadOutline(request, metadata=self._metadata)

    async def write_paper(self) -> None:
        """Write a paper into the empty document."""
        entries = [
            f"@book{{k{n}, author = {{Author, A. and B, C.}}, title = {{On {n}}}, year = 1900}}"
            for n in range(_REFERENCES)
        ]
        library = ImportReferences(format=BIBLIOGRAPHY_FORMAT_BIBTEX, text="\n".join(entries))
        await self._apply(import_references=library)
        sections = []
        for number in range(_SECTIONS):
            paragraphs = [
                f"{_SENTENCE * 8} [@k{(number * _PARAGRAPHS + n) % _REFERENCES}, p. {n}] $x^{n}$."
                for n in range(_PARAGRAPHS)
            ]
            table = "| a | b |\n|---|---|\n" + "| 1 | *two* |\n" * 6
            formula = f"$$\n\\sum_{{i={number}}}^n \\frac{{1}}{{i}}\n$$"
            sections.append("\n\n".join([f"## Section {number}", *paragraphs, formula, table]))
        await self._apply(write_markdown=WriteMarkdown(markdown="\n\n".join(sections)))

    async def export(self, chosen: wire.DocumentFormat.ValueType) -> None:
        """Export it as a file."""
        request = wire.ExportArticleRequest(
            session_id=self._session_id, format=chosen, as_file=True, style="apa"
        )
        await self._stub.ExportArticle(request, metadata=self._metadata)

    async def edit(self, number: int) -> None:
        """Append, change a style, insert or delete, in turn."""
        match number % 4:
            case 0:
                await self.append()
            case 1:
                block_id = self._chance.choice(self._ids)
                style = b'{"style":{"color":"red"}}'
                await self._apply(
                    set_block_style=SetBlockStyle(block_id=block_id, properties=style)
                )
            case 2:
                await self._insert(self._chance.randrange(len(self._ids)), 1)
            case _:
                await self._apply(delete_block=DeleteBlock(block_id=self._ids.pop()))

    async def _insert(self, at: int, count: int) -> None:
        blocks = [paragraph(f"{_SENTENCE}, {at}. " * 2) for _ in range(count)]
        for heading in blocks[::_HEADING_EVERY] if count > 1 else ():
            heading["type"] = "h1"
        done = await self._apply(insert_blocks=InsertBlocks(path=[at], blocks=orjson.dumps(blocks)))
        self._ids += done.ids

    async def _apply(self, **edit: Message) -> wire.ApplyEditResponse:
        request = wire.ApplyEditRequest(session_id=self._session_id, edit=Edit(**edit))
        done: wire.ApplyEditResponse = await self._stub.ApplyEdit(request, metadata=self._metadata)
        return done


async def measure() -> Figures:
    """Measure everything once, in a data folder of its own."""
    chance = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="gw-") as name:
        folder = Path(name)
        key = await _prepared(folder)
        metadata = call_metadata(key, "req_bench")
        async with _editor(folder) as (process_id, stub):
            writers = [_Writer(stub, metadata, chance) for _ in range(3 + _DOCUMENTS)]
            small, large, paper, *others = writers
            await large.fill(LARGE)
            for writer in (small, *others):
                await writer.fill(SMALL)
            rounds = [(await _timed(small), await _timed(large)) for _ in range(_ROUNDS)][1:]
            began_s = _processor_s(process_id)
            await _timed(large)
            cpu_ms = (_processor_s(process_id) - began_s) * 1e3 / _EDITS
            together = median([await _ms(large.append_to_many()) for _ in range(_ROUNDS * 4)])
            one = median([await _ms(large.append()) for _ in range(_ROUNDS * 10)])
            outline_ms = median([await _ms(large.outline()) for _ in range(_ROUNDS)])
            await paper.fill(0)
            await paper.write_paper()
            export_s = max([await _ms(paper.export(chosen)) for chosen in _FORMATS]) / 1e3
            read_ms = median([await _ms(large.read()) for _ in range(_ROUNDS)])
            rate = await _rate(others)
        async with _editor(folder) as (_, stub):
            cold = _Writer(stub, metadata, chance)
            cold.article_id = large.article_id
            cold_open_ms = await _ms(cold.open())
        fsyncs = _fsyncs(folder)
    return Figures(
        p50_ratio=median([median(on_large) / median(on_small) for on_small, on_large in rounds]),
        p99_ms=median([sorted(on_large)[int(_EDITS * 0.99)] for _, on_large in rounds]),
        longest_ms=median([max(on_large) for _, on_large in rounds]),
        cpu_ms=cpu_ms,
        together_ratio=together / one,
        outline_ms=outline_ms,
        export_s=export_s,
        read_ms=read_ms,
        cold_open_ms=cold_open_ms,
        edits_per_s=rate,
        fsyncs_per_s=fsyncs,
    )


async def _prepared(folder: Path) -> str:
    engine = open_engine(Storage(data_dir=folder))
    await migrate(engine)
    key = await AccountRepository(engine).create_key("bench")
    await engine.dispose()
    return key


@asynccontextmanager
async def _editor(folder: Path) -> AsyncIterator[tuple[int, ArticleEditorServiceStub]]:
    async with (
        editor_process(folder, "s") as (process, address),
        open_channel(address, max_message_bytes=_MAX_MESSAGE) as channel,
    ):
        await channel.channel_ready()
        yield process.pid, ArticleEditorServiceStub(channel)


async def _timed(writer: _Writer) -> list[float]:
    return [await _ms(writer.edit(number)) for number in range(_EDITS)]


async def _ms(call: Awaitable[None]) -> float:
    began = time.perf_counter()
    await call
    return (time.perf_counter() - began) * 1e3


async def _rate(writers: list[_Writer]) -> float:
    """Return the edits a second that were answered, one caller a document."""
    until, done = time.perf_counter() + _FOR_S, 0

    async def work(writer: _Writer) -> None:
        nonlocal done
        while time.perf_counter() < until:
            await writer.append()
            done += 1

    await asyncio.gather(*map(work, writers))
    return done / _FOR_S


def _processor_s(process_id: int) -> float:
    """Return the processor time of a process, without those that it started."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _fsyncs(folder: Path) -> float:
    file = os.open(folder / "fsync", os.O_CREAT | os.O_WRONLY, 0o600)
    began, done = time.perf_counter(), 0
    while time.perf_counter() < began + 1:
        os.pwrite(file, b"x" * 4096, done * 4096)
        os.fdatasync(file)
        done += 1
    os.close(file)
    return done / (time.perf_counter() - began)


def main() -> None:
    """Measure and print, each figure with what it must reach."""
    for name, figure in asdict(asyncio.run(measure())).items():
        print(f"{name:14} {figure:10.2f}   {BUDGETS.get(name, '')}")


if __name__ == "__main__":
    main()
