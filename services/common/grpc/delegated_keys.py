"""Keys for work that the gateway does for the owner of an API key, whose key it does not store.

A delegated key names an API key by its id, and is signed with a secret that the processes of a
gateway share. It is valid for some hours, never leaves the gateway, and is not accepted from
callers of its HTTP API.
"""

import hmac
import re
from hashlib import sha256
from typing import Final

from services.common.clock import Clock
from services.common.errors import GatewayError, invalid_api_key

PREFIX: Final = "gwdelegated-"
# Whether the API key must be valid still.
_RUN, _STORE = "run", "store"
# A key is the same for this long, so that its owner is looked up once, and valid twice as long.
_PERIOD_S = 3_600
_FORM = re.compile(
    rf"{PREFIX}({_RUN}|{_STORE})\.([A-Za-z0-9_-]{{1,64}})\.([0-9]{{1,12}})\.([0-9a-f]{{64}})",
    re.ASCII,
)
_PURPOSE = b"delegated key\n"


class DelegatedKeys:
    """Makes and verifies delegated keys.

    Args:
        secret: the secret of the gateway's own calls.
        clock: the clock.
    """

    def __init__(self, secret: bytes, clock: Clock) -> None:
        self._secret = hmac.digest(secret, _PURPOSE, sha256)
        self._clock = clock

    def to_run(self, key_id: str) -> str:
        """Return a key that is valid as long as an API key is."""
        return self._make(_RUN, key_id)

    def to_store(self, key_id: str) -> str:
        """Return a key that is valid even after the API key has been revoked."""
        return self._make(_STORE, key_id)

    def verify(self, key: str) -> tuple[str, bool]:
        """Return the id of the API key, and whether that key must be valid still.

        Raises:
            GatewayError: invalid_api_key.
        """
        match = _FORM.fullmatch(key)
        if match is None:
            raise invalid_api_key("the delegated key is malformed")
        kind, key_id, ends_at, signature = match.groups()
        expected = self._signature(kind, key_id, ends_at)
        if not hmac.compare_digest(signature, expected) or int(ends_at) <= self._clock.now():
            raise invalid_api_key("the delegated key is not valid")
        return key_id, kind == _RUN

    def _make(self, kind: str, key_id: str) -> str:
        ends_at = str((int(self._clock.now()) // _PERIOD_S + 2) * _PERIOD_S)
        return f"{PREFIX}{kind}.{key_id}.{ends_at}.{self._signature(kind, key_id, ends_at)}"

    def _signature(self, *parts: str) -> str:
        return hmac.new(self._secret, ".".join(parts).encode(), sha256).hexdigest()


def is_delegated(key: str) -> bool:
    """Return whether a text has the form of a delegated key."""
    return key.startswith(PREFIX) and _FORM.fullmatch(key) is not None


def not_delegated() -> GatewayError:
    """Return the error for a gateway that makes no delegated keys."""
    return invalid_api_key("this gateway has no delegated keys")
