"""The pool of worker processes, and the `Converter` that uses it.

Workers start on demand and end after `IDLE_S` without work. A worker that exceeds its time, crashes
or is killed fails its current conversion; the next conversion starts another worker.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import orjson
from prometheus_client import CollectorRegistry
from pydantic import TypeAdapter

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, unavailable
from services.common.process.metrics import Counter
from services.common.settings import Limits
from services.media.conversion.answers import death, failure, refused, with_blobs
from services.media.conversion.confinement import protections
from services.media.conversion.limits import WorkerLimits
from services.media.conversion.pandoc import PandocWorker
from services.media.conversion.parts import (
    EmbeddedFile,
    Film,
    ImageFacts,
    Ocr,
    PagePicture,
    PageText,
    PandocOutput,
    Picture,
    Source,
    TextVectors,
    WebPage,
)
from services.media.conversion.seconds import ConversionSeconds
from services.media.conversion.turns import Turns
from services.media.conversion.worker import Worker, WorkerDiedError

log = logging.getLogger(__name__)

IDLE_S = 60.0
_MAX_THREADS = 4
_TIMEOUT = "limits.conversion_timeout_s"

T = TypeVar("T")

_TEXTS = TypeAdapter(tuple[PageText, ...])
_PICTURES = TypeAdapter(tuple[Picture, ...])
_PAGE_PICTURE = TypeAdapter(PagePicture)
_DOCUMENT = TypeAdapter(bytes)
_FACTS = TypeAdapter(ImageFacts)
_TRANSCRIPT = TypeAdapter(str)
_FILM = TypeAdapter(Film)
_WEB_PAGE = TypeAdapter(WebPage)
_VECTORS = TypeAdapter(TextVectors)
_PANDOC_OUTPUT = TypeAdapter(PandocOutput)
_FILES = TypeAdapter(tuple[EmbeddedFile, ...])
# The conversion that runs in a process of its own kind.
_PANDOC = "pandoc"


class ConversionPool:
    """Runs conversions in at most `limits.max_parallel_conversions` processes."""

    def __init__(self, limits: Limits, counters: CollectorRegistry) -> None:
        """Return a pool without processes."""
        max_parallel = limits.max_parallel_conversions
        self._timeout_s = limits.conversion_timeout_s
        threads = max(1, min(_MAX_THREADS, (os.cpu_count() or 1) // max_parallel))
        self._bounds = WorkerLimits(
            limits.conversion_timeout_s, limits.conversion_memory_bytes, threads
        )
        self._turns = Turns(max_parallel, limits.max_waiting_conversions)
        self._seconds = ConversionSeconds(limits.conversion_seconds_per_user)
        self._threads = ThreadPoolExecutor(max_parallel, thread_name_prefix="convert")
        self._loop = asyncio.get_running_loop()
        self._idle: list[Worker] = []
        self._busy: set[Worker | PandocWorker] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        if missing := protections().missing():
            log.warning("the kernel cannot confine conversions", extra={"they_can": missing})
        self._counter = Counter(
            "gateway_conversions",
            "Media converted in worker processes, by outcome: converted, refused, failed.",
            ("conversion", "outcome"),
            registry=counters,
        )

    def workers(self) -> list[int]:
        """Return the process ids of the workers, idle ones first."""
        pids = [worker.pid for worker in (*self._idle, *self._busy)]
        return [pid for pid in pids if pid is not None]

    async def run(
        self, owner: str, name: str, source: Source, adapter: TypeAdapter[T], **options: Any
    ) -> T:
        """Run a conversion of `process`; see `Converter` for its errors."""
        outcome = "failed"
        try:
            self._seconds.check(owner, self._loop.time())
            async with self._turns.turn(owner):
                if self._is_closed:
                    raise unavailable("the gateway is stopping")
                began_s = self._loop.time()
                self._seconds.check(owner, began_s)  # used up by others while this one waited
                try:
                    result = await self._convert(name, source, adapter, options)
                finally:
                    now_s = self._loop.time()
                    self._seconds.add(owner, now_s - began_s, now_s)
            outcome = "converted"
            return result
        except GatewayError as error:
            if error.reason != errors_pb2.REASON_UNAVAILABLE:
                outcome = "refused"
            raise
        finally:
            self._counter.labels(name, outcome).inc()

    async def close(self) -> None:
        """End all processes; running and waiting conversions fail."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for worker in self._busy:
            worker.kill()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        await asyncio.to_thread(_end_all, self._idle)

    async def _convert(
        self, name: str, source: Source, adapter: TypeAdapter[T], options: dict[str, Any]
    ) -> T:
        head = {
            "name": name,
            "mime_type": source.mime_type,
            "file_name": source.name,
            "options": options,
        }
        worker = PandocWorker(self._bounds) if name == _PANDOC else self._take()
        self._busy.add(worker)
        is_done = False
        try:
            async with asyncio.timeout(self._timeout_s):
                reply, result = await self._loop.run_in_executor(
                    self._threads, _ask, worker, head, source.content, adapter
                )
            is_done = True
        except TimeoutError:
            raise refused(
                f"the conversion exceeded {self._timeout_s:g} s ({_TIMEOUT})", _TIMEOUT
            ) from None
        except WorkerDiedError as error:
            log.warning(
                "a conversion worker died", extra={"conversion": name, "status": error.status}
            )
            raise death(error.status) from None
        finally:
            self._busy.discard(worker)
            if is_done and isinstance(worker, Worker) and worker.uses < worker.max_uses:
                self._idle.append(worker)
                self._end_later()
            else:
                worker.kill()
                self._end([worker])
        if reply is not None:
            raise failure(name, reply)
        assert result is not None
        return result

    def _take(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            self._end([worker])
        return Worker(self._bounds)

    def _end_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(IDLE_S, self._end_idle)

    def _end_idle(self) -> None:
        ended, self._idle = self._idle, []
        self._end(ended)

    def _end(self, workers: Sequence[Worker | PandocWorker]) -> None:
        self._loop.run_in_executor(None, _end_all, workers)


class PooledConverter:
    """The `Converter` that uses a pool; waiting conversions are scheduled fairly between owners.

    Args:
        pool: the worker pool.
        owner: returns the owner of the current task.
    """

    def __init__(self, pool: ConversionPool, owner: Callable[[], str]) -> None:
        self._pool = pool
        self._owner = owner

    async def pages_as_text(
        self, source: Source, *, max_pages: int, ocr: Ocr
    ) -> tuple[PageText, ...]:
        """Return the text of a document."""
        return await self._pool.run(
            self._owner(), "pages_as_text", source, _TEXTS, max_pages=max_pages, ocr=ocr
        )

    async def pages_as_pictures(self, source: Source, *, max_pages: int) -> tuple[Picture, ...]:
        """Return pictures of the pages of a document."""
        return await self._pool.run(
            self._owner(), "pages_as_pictures", source, _PICTURES, max_pages=max_pages
        )

    async def page_picture(self, source: Source, *, number: int, longest: int) -> PagePicture:
        """Return a picture of one page of a PDF.

        Args:
            source: the PDF.
            number: the number of the page, from 1; it may be beyond the last.
            longest: the maximum pixels of a side.

        Raises:
            GatewayError: as `Converter`.
        """
        return await self._pool.run(
            self._owner(), "page_picture", source, _PAGE_PICTURE, number=number, longest=longest
        )

    async def docx_as_pdf(self, source: Source) -> bytes:
        """Return a DOCX as PDF, with a plain layout."""
        return await self._pool.run(self._owner(), "docx_as_pdf", source, _DOCUMENT)

    async def image_facts(self, source: Source) -> ImageFacts:
        """Return facts about an image."""
        return await self._pool.run(self._owner(), "image_facts", source, _FACTS)

    async def transcript(self, source: Source, *, language: str) -> str:
        """Return the transcript of a recording."""
        return await self._pool.run(
            self._owner(), "transcript", source, _TRANSCRIPT, language=language
        )

    async def film(self, source: Source, *, frames: int) -> Film:
        """Return frames of a film, and its sound."""
        return await self._pool.run(self._owner(), "film", source, _FILM, frames=frames)

    async def web_page(self, source: Source, *, url: str) -> WebPage:
        """Return the main text of an HTML page."""
        return await self._pool.run(self._owner(), "web_page", source, _WEB_PAGE, url=url)

    async def vectors(self, texts: Sequence[str], *, is_query: bool) -> TextVectors:
        """Return the vectors of texts by the embedded model, of unit length.

        Args:
            texts: the texts.
            is_query: whether the texts are search queries, not documents.

        Raises:
            GatewayError: as `Converter`.
        """
        source = Source(orjson.dumps(list(texts)), "application/json")
        return await self._pool.run(self._owner(), "vectors", source, _VECTORS, is_query=is_query)

    async def pandoc(
        self,
        content: bytes,
        *,
        reader: str,
        writer: str,
        is_standalone: bool = False,
        numbers_sections: bool = False,
        style: str = "",
    ) -> PandocOutput:
        """Return a document in another format of pandoc's.

        Args:
            content: the document.
            reader: pandoc's name of its format.
            writer: pandoc's name of the other one.
            is_standalone: whether to add what makes a complete document.
            numbers_sections: whether to number sections.
            style: path of the style of its citations, "" for none.
        """
        return await self._pool.run(
            self._owner(),
            _PANDOC,
            Source(content, ""),
            _PANDOC_OUTPUT,
            reader=reader,
            writer=writer,
            is_standalone=is_standalone,
            numbers_sections=numbers_sections,
            style=style,
        )

    async def typeset(self, content: bytes, *, is_typst: bool) -> PandocOutput:
        """Return a document as PDF; see `typeset.markup_as_pdf`."""
        return await self._pool.run(
            self._owner(), "typeset", Source(content, ""), _PANDOC_OUTPUT, is_typst=is_typst
        )

    async def embedded_files(self, source: Source) -> tuple[EmbeddedFile, ...]:
        """Return the pictures in a DOCX, which is checked to be safe to unpack."""
        return await self._pool.run(self._owner(), "embedded_files", source, _FILES)


def _ask(
    worker: Worker | PandocWorker, head: dict[str, Any], content: bytes, adapter: TypeAdapter[T]
) -> tuple[dict[str, Any] | None, T | None]:
    """Send a conversion to a worker; return the error reply or the result. Blocking."""
    reply, blobs = worker.convert(head, content)
    try:
        if "result" not in reply:
            return reply, None
        return None, adapter.validate_python(with_blobs(reply["result"], blobs))
    except (TypeError, ValueError):  # not a reply of our own worker
        worker.kill()
        raise WorkerDiedError(worker.end()) from None


def _end_all(workers: Sequence[Worker | PandocWorker]) -> None:
    for worker in workers:
        worker.end()
