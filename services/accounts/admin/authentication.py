"""Authentication of administrators by their admin keys."""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping

from gateway.accounts.v1 import accounts_pb2
from services.accounts.admin.admin_keys import AdminCredential, hash_admin_key
from services.common.errors import invalid_api_key
from services.common.grpc.authentication import (
    ADMINISTRATOR,
    Caller,
    bearer_admin_key,
    reject_admin,
)

# Minimum seconds between reads of the stored keys that an unknown key, or the lack of keys, causes.
_RELOAD_S = 1.0


class AdminAuthenticator:
    """Authenticates admin keys of the settings and of the database.

    Keys are compared by their SHA-256, in constant time.

    Args:
        configured: the keys of the settings, by the names of the settings.
        stored: returns the keys in the database, by id.
        ttl_s: seconds for which the stored keys are cached: a revocation takes effect within that
            time.
        monotonic: monotonic clock in seconds.
    """

    def __init__(
        self,
        configured: Mapping[str, AdminCredential],
        stored: Callable[[], Awaitable[Mapping[str, AdminCredential]]],
        *,
        ttl_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._configured = configured
        self._stored = stored
        self._ttl_s = ttl_s
        self._monotonic = monotonic
        self._known: Mapping[str, AdminCredential] = {}
        self._read_at: float | None = None
        self._lock = asyncio.Lock()

    def configure(self, configured: Mapping[str, AdminCredential]) -> None:
        """Replace the keys of the settings after a reload."""
        self._configured = configured

    @property
    def is_in_use(self) -> bool:
        """Whether the keys of the database are cached."""
        return self._read_at is not None and self._monotonic() - self._read_at < self._ttl_s

    def forget(self) -> None:
        """Invalidate the cached keys of the database."""
        self._read_at = None

    async def __call__(self, authorization: str) -> Caller:
        """Return the administrator with that `authorization` value, with the admin key's scopes.

        Raises:
            GatewayError: not_implemented, when the gateway has no admin key; invalid_api_key, when
                the value has no valid admin key; unavailable, when the database does not answer.
        """
        keys = await self._keys(self._ttl_s)
        if not keys:
            keys = await self._keys(_RELOAD_S)
        if not keys:
            return await reject_admin(authorization)
        hashed = hash_admin_key(bearer_admin_key(authorization))
        key_id = _match(keys, hashed)
        if not key_id:
            keys = await self._keys(_RELOAD_S)
            key_id = _match(keys, hashed)
        if not key_id:
            raise invalid_api_key("the admin key is not valid")
        key = keys[key_id]
        return Caller(
            ADMINISTRATOR,
            "",
            accounts_pb2.PLAN_UNSPECIFIED,
            key_id,
            key_name=key.name,
            scopes=key.scopes,
        )

    async def scopes_of(self, key_id: str) -> frozenset[str]:
        """Return the scopes of the valid admin key with an id; none if there is no such key."""
        key = (await self._keys(self._ttl_s)).get(key_id)
        return frozenset() if key is None else key.scopes

    async def _keys(self, max_age_s: float) -> Mapping[str, AdminCredential]:
        """Return all keys; those of the database are at most `max_age_s` old."""
        async with self._lock:
            now_s = self._monotonic()
            if self._read_at is None or now_s - self._read_at >= min(max_age_s, self._ttl_s):
                self._known = await self._stored()
                self._read_at = now_s
        return {**self._known, **self._configured}


def _match(keys: Mapping[str, AdminCredential], hashed: bytes) -> str:
    """Return the id of the key with a hash, or ""; all keys are compared, for constant time."""
    matching_id = ""
    for key_id, key in keys.items():
        if hmac.compare_digest(key.hash, hashed):
            matching_id = key_id
    return matching_id
