"""API keys that are divided between the address of an upload and the upload.

Google's clients send no key to the address of an upload, which therefore stands for its caller.
Neither the address nor the stored upload contains the key: it is the exclusive or of two shares, of
which each alone is random.
"""

import base64
import binascii
import secrets
from collections.abc import Callable

from services.common.key_format import is_key


def divide(
    api_key: str, random_bytes: Callable[[int], bytes] = secrets.token_bytes
) -> tuple[bytes, str]:
    """Return the shares of an API key: for the upload, and for the address in base64url."""
    stored = random_bytes(len(api_key))
    return stored, base64.urlsafe_b64encode(_xor(api_key.encode(), stored)).decode().rstrip("=")


def unite(stored: bytes, in_address: str) -> str:
    """Return the API key that two shares make; "" if they make none."""
    try:
        share = base64.urlsafe_b64decode(in_address + "=" * (-len(in_address) % 4))
    except (binascii.Error, ValueError):
        return ""
    key = _xor(share, stored).decode("latin-1") if len(share) == len(stored) else ""
    return key if is_key(key) else ""


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=True))
