"""Encryption of secrets in the database by keys of the settings: AES-256-GCM (NIST SP 800-38D).

A sealed secret is a random nonce of 12 bytes, the ciphertext and a tag of 16 bytes. It is bound to
its context, such as the address to which a key belongs: whoever may write to the database cannot
have a key sent elsewhere.
"""

import hashlib
import secrets as randomness
from collections.abc import Callable, Sequence
from typing import NamedTuple

_NONCE_BYTES = 12
_ID_BYTES = 8


class Sealed(NamedTuple):
    """An encrypted secret, and the id of the key that encrypted it."""

    by: str
    content: bytes


class Sealer:
    """Encrypts and decrypts secrets.

    Args:
        keys: keys of 32 bytes. The first encrypts; all of them decrypt.
        random_bytes: source of random bytes.
    """

    def __init__(
        self,
        keys: Sequence[bytes],
        random_bytes: Callable[[int], bytes] = randomness.token_bytes,
    ) -> None:
        self._keys = {_id_of(key): key for key in keys}
        self._random_bytes = random_bytes

    @property
    def current(self) -> str:
        """The id of the key that encrypts; "" without any."""
        return next(iter(self._keys), "")

    def opens(self, by: str) -> bool:
        """Return whether the settings have the key with an id."""
        return by in self._keys

    def seal(self, secret: str, context: Sequence[str]) -> Sealed:
        """Return an encrypted secret; there must be a key."""
        # Imported on demand: most processes encrypt nothing.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = self._random_bytes(_NONCE_BYTES)
        cipher = AESGCM(self._keys[self.current])
        sealed = cipher.encrypt(nonce, secret.encode(), _associated(context))
        return Sealed(self.current, nonce + sealed)

    def open(self, sealed: Sealed, context: Sequence[str]) -> str | None:
        """Return a secret; None if no key of the settings decrypts it in this context."""
        key = self._keys.get(sealed.by)
        if key is None:
            return None
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce, content = sealed.content[:_NONCE_BYTES], sealed.content[_NONCE_BYTES:]
        try:
            return AESGCM(key).decrypt(nonce, content, _associated(context)).decode()
        except (InvalidTag, ValueError):
            return None


def _id_of(key: bytes) -> str:
    """Return the id of a key, which does not reveal it."""
    return hashlib.sha256(b"id of an encryption key\n" + key).digest()[:_ID_BYTES].hex()


def _associated(context: Sequence[str]) -> bytes:
    # None of the parts contains a line feed.
    return "\n".join(context).encode()
