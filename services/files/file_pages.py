"""Pages of stored documents: pictures of PDF and DOCX, texts of PPTX and XLSX.

A page is converted when it is asked for, and its conversion is kept with those of Inference, for
the same user. A DOCX is set as a PDF once, and PPTX and XLSX are read once for all of their pages.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from weakref import WeakValueDictionary

import orjson

from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import (
    PAGE_SIZE_FULL,
    PAGE_SIZE_THUMBNAIL,
    PAGE_SIZE_UNSPECIFIED,
    File,
    FilePage,
    GetFilePageRequest,
    GetFilePageResponse,
    ReadFileRequest,
)
from services.common.errors import GatewayError, invalid, unsupported
from services.common.grpc.authentication import Caller
from services.common.process.byte_budget import ByteBudget, Charge
from services.common.text.mime import PDF, SHEET, SLIDES, WORD
from services.files.repository import FileRepository
from services.files.store import FileStore, owner_of
from services.media.conversion.cache import Cache
from services.media.conversion.codec import Made
from services.media.conversion.converter import VERSIONS
from services.media.conversion.limits import MAX_SIDE
from services.media.conversion.parts import Ocr, PagePicture, PageText, Source
from services.media.conversion.pool import PooledConverter

# Incremented when pages of the same conversions get other content.
_VERSION: Final = 1
_SIDES: Final = {
    PAGE_SIZE_UNSPECIFIED: MAX_SIDE,
    PAGE_SIZE_FULL: MAX_SIDE,
    PAGE_SIZE_THUMBNAIL: 320,
}
# The conversions that make the pages of a type.
_CONVERSIONS: Final = {
    PDF: ("page_picture",),
    WORD: ("docx_as_pdf", "page_picture"),
    SLIDES: ("pages_as_text",),
    SHEET: ("pages_as_text",),
}
_MAX_ETAGS: Final = 100
_MAX_TEXT: Final = {
    PAGE_SIZE_UNSPECIFIED: 64 << 10,
    PAGE_SIZE_FULL: 64 << 10,
    PAGE_SIZE_THUMBNAIL: 2 << 10,
}
_GOES_ON: Final = "\n\n… the page goes on"
# Bytes charged for each byte of a file: the content, and its copy for the process that converts it.
_COST: Final = 3

T = TypeVar("T", bound=Made)


class FilePages:
    """Pages of the documents of callers.

    Args:
        store: reads the content of files.
        repository: the rows of files.
        cache: keeps conversions of the current task's user.
        converter: converts documents for that user, in processes of their own.
        budget: limits the bytes that the process holds.
        max_pages: the highest number of a page.
    """

    def __init__(
        self,
        store: FileStore,
        repository: FileRepository,
        cache: Cache,
        converter: PooledConverter,
        budget: ByteBudget,
        max_pages: int,
    ) -> None:
        self._store = store
        self._repository = repository
        self._cache = cache
        self._converter = converter
        self._budget = budget
        self._max_pages = max_pages
        # Equal conversions wait for each other, so that one file is converted once at a time.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get(self, caller: Caller, request: GetFilePageRequest) -> GetFilePageResponse:
        """Return a page of a document of the caller.

        Raises:
            GatewayError: invalid_request; unsupported; not_found, also for a page after the last;
                storage_unavailable; as `Converter`, and as `ByteBudget.acquire`.
        """
        self._check(request)
        file = await self._repository.get(owner_of(caller), request.id)
        if file.mime_type not in _CONVERSIONS:
            raise unsupported(
                "",
                f"files of the type {file.mime_type} have no pages to show; PDF, DOCX, PPTX and "
                "XLSX have: download the content instead",
            )
        etag = _etag(file, request)
        if not {etag, "*"}.isdisjoint(request.known_etags):
            return GetFilePageResponse(etag=etag)
        with Charge(self._budget, caller.user_id) as charge:
            page = await self._page(caller, file, request, charge)
        return GetFilePageResponse(etag=etag, page=page)

    def _check(self, request: GetFilePageRequest) -> None:
        if not 1 <= request.number <= self._max_pages:
            raise invalid(
                "number",
                f"number: must be 1 to {self._max_pages} (limits.max_shown_pages); download the "
                "content for other pages",
            )
        if request.size not in _SIDES:
            raise invalid("size", "size: must be a value of gateway.files.v1.PageSize")
        if len(request.known_etags) > _MAX_ETAGS:
            raise invalid("known_etags", f"known_etags: must be at most {_MAX_ETAGS}")

    async def _page(
        self, caller: Caller, file: File, request: GetFilePageRequest, charge: Charge
    ) -> FilePage:
        async def read() -> bytes:
            await charge.acquire(_COST * file.size_bytes)
            reading = ReadFileRequest(id=file.id)
            async with self._store.reading(owner_of(caller), reading) as opened:
                return b"".join([piece async for piece in opened.pieces])

        if _CONVERSIONS[file.mime_type] == ("pages_as_text",):
            return _text_page(await self._texts(file, read, charge), request)
        picture = await self._picture(file, request, read, charge)
        return FilePage(
            content=picture.content, mime_type=picture.mime_type, page_count=picture.page_count
        )

    async def _texts(
        self, file: File, read: Callable[[], Awaitable[bytes]], charge: Charge
    ) -> tuple[PageText, ...]:
        async def convert() -> tuple[PageText, ...]:
            source = Source(await read(), file.mime_type, file.filename)
            # Without OCR of pictures, which would take minutes.
            return await self._converter.pages_as_text(
                source, max_pages=self._max_pages, ocr=Ocr.NEVER
            )

        key = self._key(file, "shown_text", VERSIONS["pages_as_text"])
        return await self._kept(key, tuple, convert, charge)

    async def _picture(
        self,
        file: File,
        request: GetFilePageRequest,
        read: Callable[[], Awaitable[bytes]],
        charge: Charge,
    ) -> PagePicture:
        longest = _SIDES[request.size]

        async def read_as_pdf() -> bytes:
            if file.mime_type == PDF:
                return await read()
            key = self._key(file, "docx_as_pdf", VERSIONS["docx_as_pdf"])
            return await self._kept(key, bytes, convert_to_pdf, charge)

        async def convert_to_pdf() -> bytes:
            return await self._converter.docx_as_pdf(Source(await read(), WORD, file.filename))

        async def convert() -> PagePicture:
            source = Source(await read_as_pdf(), PDF, file.filename)
            picture = await self._converter.page_picture(
                source, number=request.number, longest=longest
            )
            _check_number(request.number, picture.page_count)
            return picture

        key = self._key(file, "page_picture", *_versions(file), request.number, longest)
        return await self._kept(key, PagePicture, convert, charge)

    def _key(self, file: File, conversion: str, *parameters: int) -> str:
        return self._cache.key_of(bytes.fromhex(file.sha256), conversion, *parameters)

    async def _kept(
        self, key: str, kind: type[T], convert: Callable[[], Awaitable[T]], charge: Charge
    ) -> T:
        """Return a kept conversion, or convert and keep the result."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            kept = await self._cache.get(key, kind, charge.at(_COST))
            if kept is None:
                kept = await convert()
                await self._cache.put(key, kept)
            return kept


def _versions(file: File) -> tuple[int, ...]:
    return tuple(VERSIONS[conversion] for conversion in _CONVERSIONS[file.mime_type])


def _etag(file: File, request: GetFilePageRequest) -> str:
    """Return the tag of a page, which is another one once conversions have other results."""
    parts = [_VERSION, file.sha256, *_versions(file), request.number, _SIDES[request.size]]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()[:32]


def _text_page(pages: tuple[PageText, ...], request: GetFilePageRequest) -> FilePage:
    """Return a page of texts."""
    _check_number(request.number, len(pages))
    text = pages[request.number - 1].text.encode()
    most = _MAX_TEXT[request.size]
    if len(text) > most:
        # At the end of a line, so that no row of a table is cut.
        end = text.rfind(b"\n", 0, most)
        kept = text[: end if end > 0 else most].decode(errors="ignore")
        text = (kept + _GOES_ON).encode()
    return FilePage(content=text, mime_type="text/markdown", page_count=len(pages))


def _check_number(number: int, page_count: int) -> None:
    if number > page_count:
        raise GatewayError(
            errors_pb2.REASON_NOT_FOUND,
            f"number: the file has no page {number}; it has {page_count}",
            param="number",
        )
