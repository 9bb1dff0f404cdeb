"""API keys: `gw-` and 32 random bytes in base64url, 46 characters.

Only the SHA-256 of a key is stored: 256 random bits leave nothing to guess, so a slow
hash would add nothing.
"""

import base64
import hashlib

PREFIX = "gw-"
RANDOM_BYTES = 32

# Of the 43 random characters, how many tell one key from another in a list. They leave
# 220 bits unknown.
_SHOWN = 6


def make_key(random: bytes) -> str:
    """Return the key made of 32 random bytes."""
    if len(random) != RANDOM_BYTES:
        raise ValueError(f"a key takes {RANDOM_BYTES} random bytes")
    return PREFIX + base64.urlsafe_b64encode(random).rstrip(b"=").decode()


def hash_key(key: str) -> bytes:
    """Return what is stored of a key: 32 bytes."""
    return hashlib.sha256(key.encode()).digest()


def shown_part(key: str) -> str:
    """Return the beginning of a key, by which people recognise it."""
    return key[: len(PREFIX) + _SHOWN]
