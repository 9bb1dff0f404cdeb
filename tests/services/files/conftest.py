"""A file store on every pair: bytes in a folder or on S3, rows in SQLite or PostgreSQL."""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.files.v1.files_pb2_grpc import (
    FileStoreServiceStub,
    add_FileStoreServiceServicer_to_server,
)
from services.common.grpc.channels import open_channel
from services.common.grpc.server import Server
from services.common.settings import Limits, Storage
from services.files.blobs import open_blobs
from services.files.metrics import FileMetrics
from services.files.repository import FileRepository
from services.files.servicer import SERVICE_NAME, FileStoreServicer
from services.files.store import FileStore
from services.files.uploads import Uploads
from tests.disks import Disk
from tests.manual_clock import ManualClock
from tests.services.files.running_file_store import (
    MAX_MESSAGE,
    Bucket,
    RunningFileStore,
    Users,
)


@pytest.fixture(scope="session")
def s3() -> Iterator[Bucket]:
    bucket = Bucket()
    yield bucket
    bucket.client.close()
    bucket.stop()


@pytest.fixture
def bucket(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """The bucket, reached by what stands in the environment."""
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    return s3


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, storage: Storage) -> Storage:
    """Each pair of a place for bytes and a database."""
    if request.param == "folder":
        return storage
    bucket: Bucket = request.getfixturevalue("bucket")
    return storage.model_copy(update={"blob_url": f"s3://{bucket.name}/{uuid.uuid4().hex}/files"})


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def limits() -> Limits:
    """Tests of an area with limits of its own override this."""
    return Limits()


@pytest.fixture
async def file_store(
    place: Storage, engine: AsyncEngine, clock: ManualClock, limits: Limits
) -> AsyncIterator[RunningFileStore]:
    users = Users()
    blobs = open_blobs(place)
    repository = FileRepository(engine, clock)
    metrics = FileMetrics(CollectorRegistry())
    disk = Disk()
    uploads = Uploads(repository, blobs, limits, clock, metrics, disk.reserve)
    store = FileStore(repository, blobs)
    servicer = FileStoreServicer(repository, store, uploads, limits.storage, metrics)
    server = Server(users.identify, max_message_bytes=MAX_MESSAGE)
    server.add(add_FileStoreServiceServicer_to_server, servicer, SERVICE_NAME)
    port = server.listen("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}", max_message_bytes=MAX_MESSAGE) as channel:
        stub = FileStoreServiceStub(channel)
        yield RunningFileStore(users, stub, engine, repository, blobs, uploads, limits, clock, disk)
    await server.stop(0)
