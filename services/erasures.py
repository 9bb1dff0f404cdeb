"""The functions of all services that erase a user's data, for the erasure of a user."""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.limits.erasure import LimitErasure
from services.accounts.requests.assembly import open_bodies
from services.accounts.requests.erasure import RequestErasure
from services.accounts.usage.erasure import UsageErasure
from services.articles.erasure import ArticleErasure
from services.articles.retention import Retention
from services.articles.usage import OwnerUsage
from services.batches.erasure import BatchErasure
from services.common.clock import Clock
from services.common.settings import Settings
from services.common.storage.disk import DiskReserve
from services.common.storage.erasing import EraseBatch
from services.files.blobs import open_blobs
from services.files.erasure import FileErasure
from services.inference.erasure import store_erasures
from services.memory.assembly import open_queue
from services.memory.erasure import MemoryErasure
from services.memory.jobs.stores import Stores
from services.memory.vector_stores.erasure import VectorStoreErasure
from services.memory.vector_stores.removed_files import RemovedFiles
from services.responses.erasure import ResponseErasure


def erase_batches(settings: Settings, database: AsyncEngine, clock: Clock) -> Sequence[EraseBatch]:
    """Return the functions of all stores, whichever services run in this process."""
    # Nothing is written to the stores of bytes, so no disk space is needed.
    reserve = DiskReserve(settings.storage.data_dir, 0)
    owner_usage = OwnerUsage(settings.articles)
    jobs = open_queue(database, clock)
    return [
        # Before memories, whose function removes the row of the user that they share.
        ResponseErasure(database),
        VectorStoreErasure(database),
        MemoryErasure(database, Stores.open(database, clock, jobs)),
        ArticleErasure(database, Retention(database, clock, owner_usage), owner_usage),
        LimitErasure(database),
        UsageErasure(database),
        RequestErasure(database, open_bodies(settings.storage, reserve)),
        FileErasure(database, open_blobs(settings.storage), RemovedFiles(jobs)),
        BatchErasure(database),
        *store_erasures(database, settings.storage, reserve),
    ]
