"""Encrypted reasoning in the signature of a thought, which clients require to be base64. Pure."""

import binascii
from typing import Final

_MARK: Final = b"gateway:"
_URL_SAFE: Final = str.maketrans("-_", "+/")


def to_signature(encrypted: str) -> str:
    """Return the signature of a thought for the `encrypted_content` of a reasoning item."""
    return binascii.b2a_base64(_MARK + encrypted.encode(), newline=False).decode()


def to_encrypted(signature: str) -> str:
    """Return the `encrypted_content` in a signature; Google's own signatures are returned as is."""
    text = signature.translate(_URL_SAFE).rstrip("=")
    try:
        data = binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
        return data.removeprefix(_MARK).decode() if data.startswith(_MARK) else signature
    except ValueError:
        return signature
