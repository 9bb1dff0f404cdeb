"""A file store that tests talk to over gRPC, and the places it can keep things in."""

import asyncio
import uuid
from dataclasses import dataclass, field

import boto3  # type: ignore[import-untyped]  # it brings no types
import grpc
import pytest
from moto.server import ThreadedMotoServer
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.accounts_pb2 import PLAN_ENTERPRISE
from gateway.errors.v1.errors_pb2 import Reason
from gateway.files.v1 import files_pb2
from gateway.files.v1.files_pb2 import (
    CreateFileRequest,
    DeleteFileRequest,
    File,
    FileHeader,
    FileTrailer,
    GetFileRequest,
    GetStorageRequest,
    GetStorageResponse,
    ListFilesRequest,
    ListFilesResponse,
    ReadFileOpening,
    ReadFileRequest,
)
from gateway.files.v1.files_pb2_grpc import (
    FileStoreServiceStub,
)
from services.common.errors import GatewayError, from_rpc_error
from services.common.grpc.authentication import Caller, call_metadata
from services.common.grpc.channels import Metadata
from services.common.grpc.terminal_status import TerminalStatus
from services.common.settings import Limits
from services.common.storage.sweeping import Sweeper, sweeper_lease
from services.files.blob_store import Blobs
from services.files.creation import FileCreator
from services.files.metrics import FileMetrics
from services.files.repository import FileRepository
from services.files.sweeper import file_sweeper
from services.files.upload_repository import UploadRepository
from services.files.uploads import Uploads
from tests.disks import Disk
from tests.manual_clock import ManualClock

MAX_MESSAGE = 8 << 20
MIB = 1 << 20


class Bucket:
    """A bucket of a server in this process, which can be stopped and started again."""

    def __init__(self) -> None:
        self._server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        self._server.start()
        self.port = int(self._server.get_host_and_port()[1])
        self.name = f"bucket-{uuid.uuid4().hex}"
        self.client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id="id",
            aws_secret_access_key="secret",
        )
        self.client.create_bucket(Bucket=self.name)

    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }

    def unfinished(self) -> int:
        """Count the uploads that were begun and neither completed nor ended."""
        return len(self.client.list_multipart_uploads(Bucket=self.name).get("Uploads", []))

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server = ThreadedMotoServer("127.0.0.1", self.port, verbose=False)
        self._server.start()


@dataclass
class Users:
    """Makes keys that a server then knows: one user each, in a team where one is named."""

    known: dict[str, Caller] = field(default_factory=dict)

    def key(self, user: str, team: str = "", plan: int = PLAN_ENTERPRISE) -> str:
        key = f"gw-{len(self.known):043}"
        self.known[key] = Caller(f"user_{user}", f"team_{team}" if team else "", plan)  # type: ignore[arg-type]  # a plan is a number
        return key

    async def identify(self, key: str) -> Caller:
        return self.known[key]


class Client:
    """One user's view of the file store, over gRPC."""

    def __init__(self, stub: FileStoreServiceStub, key: str, sent_at_once: int = MIB) -> None:
        self._stub = stub
        self._sent_at_once = sent_at_once
        self._metadata: Metadata = call_metadata(key, "req_test")

    async def create(
        self,
        content: bytes,
        filename: str = "a.bin",
        *,
        purpose: int = files_pb2.PURPOSE_ASSISTANTS,
        expires_after_s: int | None = None,
        mime_type: str = "",
    ) -> File:
        step = self._sent_at_once
        trailer = FileTrailer(purpose=purpose, expires_after_s=expires_after_s)  # type: ignore[arg-type]  # a purpose is a number
        return await self.send(
            [
                CreateFileRequest(header=FileHeader(filename=filename, mime_type=mime_type)),
                *(
                    CreateFileRequest(chunk=content[start : start + step])
                    for start in range(0, len(content), step)
                ),
                CreateFileRequest(trailer=trailer),
            ]
        )

    async def send(self, messages: list[CreateFileRequest]) -> File:
        """Send them until the service has heard enough; give the file that was kept."""
        call = self.open_upload()
        ending = TerminalStatus(call)
        try:
            for message in messages:
                await call.write(message)
            await call.done_writing()
            return (await call).file
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            # A message may fail to go out before it is known what the service said.
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await call
            raise from_rpc_error(ending.refusal or ended.value) from None

    def open_upload(self) -> "grpc.aio.StreamUnaryCall":
        return self._stub.CreateFile(metadata=self._metadata)

    async def get(self, file_id: str) -> File:
        return (
            await _told(self._stub.GetFile(GetFileRequest(id=file_id), metadata=self._metadata))
        ).file

    async def page(self, **fields: object) -> ListFilesResponse:
        request = ListFilesRequest(**fields)  # type: ignore[arg-type]  # the test names them
        return await _told(self._stub.ListFiles(request, metadata=self._metadata))

    async def ids(self, **fields: object) -> list[str]:
        return [file.id for file in (await self.page(**fields)).files]

    async def delete(self, file_id: str) -> None:
        await _told(self._stub.DeleteFile(DeleteFileRequest(id=file_id), metadata=self._metadata))

    async def read(self, file_id: str, **fields: int) -> tuple[ReadFileOpening, list[bytes]]:
        request = ReadFileRequest(id=file_id, **fields)
        pieces: list[bytes] = []
        opening = None
        try:
            async for message in self._stub.ReadFile(request, metadata=self._metadata):
                if message.WhichOneof("part") == "opening":
                    assert opening is None
                    opening = message.opening
                else:
                    assert opening is not None
                    pieces.append(message.chunk)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from error
        assert opening is not None
        return opening, pieces

    async def storage(self) -> GetStorageResponse:
        return await _told(self._stub.GetStorage(GetStorageRequest(), metadata=self._metadata))

    async def content(self, file_id: str) -> bytes:
        return b"".join((await self.read(file_id))[1])


async def _told(call):  # type: ignore[no-untyped-def]  # any call of the stub
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from error


@dataclass
class RunningFileStore:
    """A file store that serves, and what it is made of.

    Attributes:
        users: makes keys.
        stub: reaches it.
        disk: where the blobs are said to be.
    """

    users: Users
    stub: FileStoreServiceStub
    engine: AsyncEngine
    repository: FileRepository
    in_parts: UploadRepository
    blobs: Blobs
    creator: FileCreator
    uploads: Uploads
    limits: Limits
    clock: ManualClock
    disk: Disk

    def client(self, user: str = "ada", team: str = "", plan: int = PLAN_ENTERPRISE) -> Client:
        return Client(self.stub, self.users.key(user, team, plan))

    def sweeper(self) -> Sweeper:
        lease = sweeper_lease(self.engine, "files", 60, self.clock)
        return file_sweeper(
            self.repository,
            self.in_parts,
            self.blobs,
            lease,
            self.limits,
            self.clock,
            FileMetrics(CollectorRegistry()),
        )

    async def keys(self) -> list[str]:
        """Return the keys of all bytes there are."""
        return sorted([entry.key async for batch in self.blobs.entries() for entry in batch])


def reason_of(raised: pytest.ExceptionInfo[GatewayError]) -> str:
    return Reason.Name(raised.value.reason).removeprefix("REASON_").lower()
