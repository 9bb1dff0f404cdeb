"""A file store with its bytes in a folder or on S3, and its rows in SQLite or PostgreSQL."""

import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.files.v1.files_pb2_grpc import (
    FileStoreServiceStub,
    add_FileStoreServiceServicer_to_server,
)
from services.common.grpc.authentication import caller_id
from services.common.grpc.channels import open_channel
from services.common.grpc.server import Server
from services.common.process.byte_budget import open_budget
from services.common.settings import Limits, Storage
from services.common.storage.byte_store import open_store
from services.files.blobs import open_blobs
from services.files.creation import FileCreator
from services.files.file_pages import FilePages
from services.files.metrics import FileMetrics
from services.files.repository import FileRepository
from services.files.servicer import SERVICE_NAME, FileStoreServicer
from services.files.store import FileStore
from services.files.upload_repository import UploadRepository
from services.files.uploads import Uploads
from services.media.conversion.cache import CONVERSIONS, Cache
from services.media.conversion.pool import ConversionPool, PooledConverter
from tests.disks import Disk
from tests.manual_clock import ManualClock
from tests.services.files.running_file_store import (
    MAX_MESSAGE,
    Bucket,
    RunningFileStore,
    Users,
)
from tests.thoroughness import is_soak

# What one machine has, and what several share. No code of the store depends on both places at
# once; `make soak` tries the other two pairs.
PAIRS = {("folder", "sqlite"), ("s3", "postgresql")}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other pairs of tests that are run on all four."""
    folder = str(Path(__file__).parent)
    mixed = mixed_pairs([item for item in items if str(item.path).startswith(folder)])
    for item in mixed:
        item.add_marker(pytest.mark.thorough)
    if not is_soak():
        config.hook.pytest_deselected(items=mixed)
        left_out = set(mixed)
        items[:] = [item for item in items if item not in left_out]


def mixed_pairs(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that are run on both of `PAIRS` too, with the same other parameters."""
    by_case: dict[object, dict[tuple[object, object], pytest.Item]] = defaultdict(dict)
    for item in items:
        call = getattr(item, "callspec", None)
        parameters = {} if call is None else dict(call.params)
        if "place" in parameters and "storage" in parameters:
            pair = parameters.pop("place"), parameters.pop("storage")
            by_case[item.nodeid.partition("[")[0], repr(parameters)][pair] = item
    return [
        item
        for by_pair in by_case.values()
        if by_pair.keys() >= PAIRS
        for pair, item in by_pair.items()
        if pair not in PAIRS
    ]


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
    """Each place for bytes, beside each database."""
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
    creator = FileCreator(repository, blobs, limits, clock, metrics, disk.reserve)
    in_parts = UploadRepository(engine, clock)
    uploads = Uploads(in_parts, repository, blobs, limits, clock, metrics, disk.reserve)
    store = FileStore(repository, blobs)
    pool = ConversionPool(limits, CollectorRegistry())
    pages = FilePages(
        store,
        repository,
        Cache(open_store(place, disk.reserve, CONVERSIONS), metrics.page_lookups),
        PooledConverter(pool, caller_id),
        open_budget(limits),
        limits.max_shown_pages,
    )
    servicer = FileStoreServicer(
        repository, store, creator, uploads, pages, limits.storage, metrics
    )
    server = Server(users.identify, max_message_bytes=MAX_MESSAGE)
    server.add(add_FileStoreServiceServicer_to_server, servicer, SERVICE_NAME)
    port = server.listen("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}", max_message_bytes=MAX_MESSAGE) as channel:
        stub = FileStoreServiceStub(channel)
        yield RunningFileStore(
            users, stub, engine, repository, in_parts, blobs, creator, uploads, limits, clock, disk
        )
    await server.stop(0)
    await pool.close()
