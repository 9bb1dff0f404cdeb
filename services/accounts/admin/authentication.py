"""Authentication of administrators by their admin keys."""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping

from gateway.accounts.v1 import accounts_pb2
from services.accounts.admin.admin_keys import hash_admin_key
from services.common.authentication import ADMINISTRATOR, Caller, bearer_admin_key, know_no_admin
from services.common.errors import invalid_api_key

# Seconds after which keys are read again for a key that is not among them, or where there is none.
_RELOAD_S = 1.0


class AdminAuthenticator:
    """Recognises admin keys: those of the settings, and those in the database.

    Keys are compared by their SHA-256, in a time that does not depend on the outcome.

    Args:
        configured: hashes of the keys that the settings name, by the names of the settings.
        stored: returns the hashes of those in the database, by their ids.
        ttl_s: seconds after which these are read again: a revocation counts within that time.
        monotonic: clock.
    """

    def __init__(
        self,
        configured: Mapping[str, bytes],
        stored: Callable[[], Awaitable[Mapping[str, bytes]]],
        *,
        ttl_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._configured = configured
        self._stored = stored
        self._ttl_s = ttl_s
        self._monotonic = monotonic
        self._known: Mapping[str, bytes] = {}
        self._read_at: float | None = None
        self._lock = asyncio.Lock()

    def configure(self, configured: Mapping[str, bytes]) -> None:
        """Take over the keys of settings that were read again."""
        self._configured = configured

    @property
    def is_in_use(self) -> bool:
        """Whether the keys of the database are remembered."""
        return self._read_at is not None and self._monotonic() - self._read_at < self._ttl_s

    def forget(self) -> None:
        """Have the keys of the database read again for the next caller."""
        self._read_at = None

    async def __call__(self, authorization: str) -> Caller:
        """Return the administrator with that `authorization` value; `key_id` tells which.

        Raises:
            GatewayError: not_implemented, when the gateway has no admin key; invalid_api_key, when
                this is none; unavailable, when the database does not answer.
        """
        keys = await self._keys(self._ttl_s)
        if not keys:
            keys = await self._keys(_RELOAD_S)
        if not keys:
            return await know_no_admin(authorization)
        hashed = hash_admin_key(bearer_admin_key(authorization))
        key_id = _match(keys, hashed) or _match(await self._keys(_RELOAD_S), hashed)
        if not key_id:
            raise invalid_api_key("the admin key is not valid")
        return Caller(ADMINISTRATOR, "", accounts_pb2.PLAN_UNSPECIFIED, key_id)

    async def _keys(self, max_age_s: float) -> Mapping[str, bytes]:
        """Return all keys, those of the database as they were `max_age_s` ago at most."""
        async with self._lock:
            now_s = self._monotonic()
            if self._read_at is None or now_s - self._read_at >= min(max_age_s, self._ttl_s):
                self._known = await self._stored()
                self._read_at = now_s
        return {**self._known, **self._configured}


def _match(keys: Mapping[str, bytes], hashed: bytes) -> str:
    """Return the id of the key with a hash, or ""; every key is compared."""
    found = ""
    for key_id, known in keys.items():
        if hmac.compare_digest(known, hashed):
            found = key_id
    return found
