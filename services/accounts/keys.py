"""API keys: `gw-` and 32 random bytes in base64url, 46 characters.

Only the SHA-256 of a key is stored: 256 random bits cannot be guessed, so a slow hash would not add
security.
"""

import base64
import hashlib

PREFIX = "gw-"
RANDOM_BYTES = 32

# The number of the 43 random characters that are shown in lists; 220 bits remain secret.
_SHOWN = 6


def make_key(random: bytes) -> str:
    """Return the key that encodes 32 random bytes."""
    if len(random) != RANDOM_BYTES:
        raise ValueError(f"a key requires {RANDOM_BYTES} random bytes")
    return PREFIX + base64.urlsafe_b64encode(random).rstrip(b"=").decode()


def hash_key(key: str) -> bytes:
    """Return the stored hash of a key: 32 bytes."""
    return hashlib.sha256(key.encode()).digest()


def shown_part(key: str) -> str:
    """Return the beginning of a key, which identifies it in lists."""
    return key[: len(PREFIX) + _SHOWN]
