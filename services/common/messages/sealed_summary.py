"""Summaries that callers keep and only the gateway reads: `<prefix><key id>.<base64url>`. Pure.

A sealed summary belongs to one user: opened for another, or changed, it is invalid. The text is
encrypted deterministically (SIV, RFC 5297, with HMAC-SHA256 in place of CMAC and SHAKE-256 in place
of AES-CTR), so that equal summaries have equal bytes and need no random numbers.
"""

import base64
import hashlib
import hmac
import zlib
from collections.abc import Mapping

# Prefixes of summaries that stand in place of everything before them, and of those that stand
# beside messages of the user.
REPLACING = "gwall1."
BESIDE = "gwsum1."
PREFIXES = (REPLACING, BESIDE)

# Line before the text of a summary, where a model reads it.
SUMMARY = "[Summary of the conversation so far]"

_TAG = 32  # bytes
_MAX_TEXT = 1 << 20  # bytes


class SummarySealer:
    """Seals and opens summaries.

    Args:
        keys: keys by id (without a dot); all of them open.
        current: id of the key that seals.
    """

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        self._keys = {
            id_: (_derived(key, b"tag"), _derived(key, b"stream")) for id_, key in keys.items()
        }
        self._current = current

    def seal(self, text: str, user_id: str, *, prefix: str) -> str:
        """Return a summary of a user's conversation, sealed."""
        tag_key, stream_key = self._keys[self._current]
        packed = zlib.compress(text.encode())
        tag = _tag(tag_key, prefix, user_id, packed)
        sealed = base64.urlsafe_b64encode(tag + _crypted(stream_key, tag, packed))
        return f"{prefix}{self._current}.{sealed.decode().rstrip('=')}"

    def open(self, sealed: str, user_id: str) -> str | None:
        """Return the text of a sealed summary; None if it is not valid for the user."""
        prefix = next(filter(sealed.startswith, PREFIXES), "")
        key_id, _, encoded = sealed.removeprefix(prefix).partition(".")
        if not prefix or key_id not in self._keys:
            return None
        try:
            data = base64.b64decode(
                encoded.encode() + b"=" * (-len(encoded) % 4), altchars=b"-_", validate=True
            )
        except ValueError:
            return None
        tag_key, stream_key = self._keys[key_id]
        tag = data[:_TAG]
        packed = _crypted(stream_key, tag, data[_TAG:])
        if not hmac.compare_digest(tag, _tag(tag_key, prefix, user_id, packed)):
            return None
        return zlib.decompressobj().decompress(packed, _MAX_TEXT).decode(errors="replace")


def _derived(key: bytes, purpose: bytes) -> bytes:
    return hmac.digest(key, b"sealed summary: " + purpose, hashlib.sha256)


def _tag(key: bytes, prefix: str, user_id: str, packed: bytes) -> bytes:
    owner = user_id.encode()
    # The lengths separate the parts unambiguously.
    head = b"%b%d:%b" % (prefix.encode(), len(owner), owner)
    return hmac.digest(key, head + packed, hashlib.sha256)


def _crypted(key: bytes, tag: bytes, data: bytes) -> bytes:
    """Encrypt or decrypt data with the key stream for a tag."""
    stream = hashlib.shake_256(key + tag).digest(len(data))
    size = len(data)
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")
    return mixed.to_bytes(size, "big")
