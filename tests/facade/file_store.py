"""A facade in front of a file store that lives in memory and fails on demand."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from facade.server import Facade
from gateway.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from gateway.errors.v1 import errors_pb2
from gateway.files.v1 import files_pb2 as files
from gateway.files.v1 import files_pb2_grpc
from services.accounts.servicer import AccountsServicer
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid, invalid_api_key
from services.common.grpc.authentication import Caller
from services.common.grpc.server import Server
from services.common.settings import parse

KEY = "gw-" + "k" * 43
# The headers of a caller of each format, and of Anthropic's own client.
A = {"Authorization": f"Bearer {KEY}"}
B = {"x-api-key": KEY, "compat-version": "2023-06-01"}
ANTHROPIC = {"Authorization": f"Bearer {KEY}", "anthropic-version": "2026-10-21"}
CREATED_AT = 1_790_000_000


class MemoryFileStore(files_pb2_grpc.FileStoreServiceServicer):
    """Keeps what it is given, as the service is described to.

    Attributes:
        kept: the files with their bytes, oldest first.
        headers, closings, chunks: what uploads sent; of chunks the sizes.
        lists, reads: the requests of lists and downloads.
        begun, dropped: released once for each upload whose header came, or that ended
            without its trailer.
        refusal: ends an upload once it has `refuse_after` bytes.
        break_after: bytes of a download after which it breaks off.
        fail: ends a download before it begins.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.kept: dict[str, tuple[files.File, bytes]] = {}
        self.headers: list[files.FileHeader] = []
        self.closings: list[files.FileTrailer] = []
        self.chunks: list[int] = []
        self.lists: list[files.ListFilesRequest] = []
        self.reads: list[files.ReadFileRequest] = []
        self.begun = asyncio.Semaphore(0)
        self.dropped = asyncio.Semaphore(0)
        self.refusal: GatewayError | None = None
        self.refuse_after = 0
        self.break_after: int | None = None
        self.fail: GatewayError | None = None

    def add(self, content: bytes, **fields: Any) -> files.File:
        number = len(self.kept)
        file = files.File(
            **{
                "id": f"file-{number:026d}",
                "filename": "a.txt",
                "purpose": files.PURPOSE_ASSISTANTS,
                "size_bytes": len(content),
                "mime_type": "text/plain",
                "created_at": CREATED_AT + number,
                "expires_at": CREATED_AT + number + 60,
                "sha256": hashlib.sha256(content).hexdigest(),
                **fields,
            }
        )
        self.kept[file.id] = (file, content)
        return file

    async def CreateFile(self, request_iterator, context):
        content = bytearray()
        header = trailer = None
        try:
            async for message in request_iterator:
                match message.WhichOneof("part"):
                    case "header":
                        assert header is None
                        header = message.header
                        self.headers.append(header)
                        self.begun.release()
                    case "chunk":
                        assert header is not None
                        assert 0 < len(message.chunk) <= 1 << 20
                        self.chunks.append(len(message.chunk))
                        content += message.chunk
                    case "trailer":
                        trailer = message.trailer
                if self.refusal is not None and len(content) >= self.refuse_after:
                    raise self.refusal
        finally:
            if trailer is None:
                self.dropped.release()
        if header is None or trailer is None:
            raise invalid("file", "file: the upload broke off")
        self.closings.append(trailer)
        lifetime = trailer.expires_after_s if trailer.HasField("expires_after_s") else 2_592_000
        file = self.add(
            bytes(content),
            filename=header.filename,
            mime_type=header.mime_type or "application/octet-stream",
            purpose=trailer.purpose,
            expires_at=CREATED_AT + lifetime,
        )
        return files.CreateFileResponse(file=file)

    async def GetFile(self, request, context):
        return files.GetFileResponse(file=self._find(request.id)[0])

    async def DeleteFile(self, request, context):
        self._find(request.id)
        del self.kept[request.id]
        return files.DeleteFileResponse()

    async def GetStorage(self, request, context):
        used = sum(len(content) for _, content in self.kept.values())
        return files.GetStorageResponse(files=len(self.kept), used_bytes=used, quota_bytes=1_000)

    async def ListFiles(self, request, context):
        self.lists.append(request)
        listed = [file for file, _ in self.kept.values()]
        if request.purpose:
            listed = [file for file in listed if file.purpose == request.purpose]
        if not request.ascending:
            listed.reverse()
        names = [file.id for file in listed]
        for cursor in ("after_id", "before_id"):
            if (name := getattr(request, cursor)) and name not in names:
                raise invalid(cursor, f"{cursor}: names no file")
        limit = request.limit
        if request.before_id:
            end = names.index(request.before_id)
            start = max(0, end - limit)
            return files.ListFilesResponse(files=listed[start:end], has_more=start > 0)
        start = names.index(request.after_id) + 1 if request.after_id else 0
        page = listed[start : start + limit]
        return files.ListFilesResponse(files=page, has_more=start + limit < len(listed))

    async def ReadFile(self, request, context):
        self.reads.append(request)
        if self.fail is not None:
            raise self.fail
        file, content = self._find(request.id)
        first, end = request.first, len(content)
        if request.HasField("suffix"):
            first = max(0, end - request.suffix)
        elif request.HasField("first") and first >= end:
            raise GatewayError(errors_pb2.REASON_RANGE_NOT_SATISFIABLE, "behind the end")
        if request.HasField("last"):
            end = min(end, request.last + 1)
        opening = files.ReadFileOpening(file=file, first=first, length=end - first)
        yield files.ReadFileResponse(opening=opening)
        for position in range(first, end, 1 << 16):
            if self.break_after is not None and position - first >= self.break_after:
                raise GatewayError(errors_pb2.REASON_STORAGE_UNAVAILABLE, "the disk is gone")
            chunk = content[position : min(end, position + (1 << 16))]
            yield files.ReadFileResponse(chunk=chunk)

    def _find(self, file_id: str) -> tuple[files.File, bytes]:
        if file_id not in self.kept:
            raise GatewayError(errors_pb2.REASON_NOT_FOUND, "there is no such file", param="id")
        return self.kept[file_id]


@dataclass(frozen=True)
class FileFacade:
    """A facade and the store behind it."""

    url: str
    port: int
    server: Server
    store: MemoryFileStore
    http: aiohttp.ClientSession

    async def ask(self, method: str, path: str, **options: Any) -> tuple[Any, bytes]:
        options.setdefault("headers", A)
        async with self.http.request(method, self.url + path, **options) as answer:
            return answer, await answer.read()


async def _identify(key: str) -> Caller:
    if key != KEY:
        raise invalid_api_key()
    return Caller("user", "", accounts_pb2.PLAN_PERSONAL_FREE)


@asynccontextmanager
async def file_facade(limits: Mapping[str, Any]) -> AsyncIterator[FileFacade]:
    """Run both on free ports."""
    store = MemoryFileStore()
    server = Server(_identify, max_message_bytes=80 << 20)
    server.add(accounts_pb2_grpc.add_AccountsServiceServicer_to_server, AccountsServicer(), "a")
    server.add(files_pb2_grpc.add_FileStoreServiceServicer_to_server, store, "f")
    await server.start()
    settings = parse({"limits": dict(limits)}, "the test")
    facade = await Facade.start(server.channel(), "127.0.0.1", 0, settings, Clock())
    try:
        async with aiohttp.ClientSession() as http:
            yield FileFacade(f"http://127.0.0.1:{facade.port}", facade.port, server, store, http)
    finally:
        await facade.stop()
        await server.stop(0)
