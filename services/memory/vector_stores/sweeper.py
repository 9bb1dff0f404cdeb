"""Sweeper of vector stores that have expired."""

from services.common.storage.leases import Lease
from services.common.storage.sweeping import Renew, Sweeper
from services.memory.vector_stores.store_repository import StoreRepository


def vector_store_sweeper(stores: StoreRepository, lease: Lease, every_s: float) -> Sweeper:
    """Return the sweeper that empties vector stores which have expired."""

    async def empty_expired(renew: Renew) -> None:
        while await stores.empty_expired() and await renew():
            pass

    return Sweeper(lease, every_s, empty_expired)
