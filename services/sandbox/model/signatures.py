"""Signatures of thinking, and redacted thinking that only the sandbox can read."""

import base64
from hashlib import sha256


def sign(thoughts: str) -> str:
    """Return the signature of a text: a deterministic digest in base64."""
    return base64.b64encode(sha256(b"sandbox signature\0" + thoughts.encode()).digest()).decode()


_SIGNATURE_LENGTH = len(sign(""))


def redact(thoughts: str) -> str:
    """Return a text in a signed, encoded form."""
    hidden = base64.b64encode(thoughts.encode()).decode()
    return hidden + sign(hidden)


def reveal(redacted: str) -> str:
    """Return the text from the result of `redact`."""
    return base64.b64decode(redacted[:-_SIGNATURE_LENGTH]).decode()


# The prefix of OpenAI's encrypted content.
_ENCRYPTED = "gAAAA"


def encrypt(thoughts: str) -> str:
    """Return a text in the format of OpenAI's encrypted content; see `redacted_in`."""
    return _ENCRYPTED + redact(thoughts)


def redacted_in(encrypted: str) -> str:
    """Return the redacted text in encrypted content, "" if it is not from `encrypt`."""
    redacted = encrypted.removeprefix(_ENCRYPTED)
    is_whole = encrypted.startswith(_ENCRYPTED) and is_redacted(redacted)
    return redacted if is_whole else ""


def is_redacted(data: str) -> bool:
    """Return whether data is an unchanged result of `redact`."""
    return data[-_SIGNATURE_LENGTH:] == sign(data[:-_SIGNATURE_LENGTH])
