"""Signatures of thinking, and thinking that only the sandbox can read."""

import base64
from hashlib import sha256


def sign(thoughts: str) -> str:
    """Return the signature of a text: a digest in base64, the same each time."""
    return base64.b64encode(sha256(b"sandbox signature\0" + thoughts.encode()).digest()).decode()


_SIGNATURE_LENGTH = len(sign(""))


def redact(thoughts: str) -> str:
    """Return a text in a signed form that only the sandbox reads."""
    hidden = base64.b64encode(thoughts.encode()).decode()
    return hidden + sign(hidden)


def reveal(redacted: str) -> str:
    """Return the text that `redact` has hidden."""
    return base64.b64decode(redacted[:-_SIGNATURE_LENGTH]).decode()


# How OpenAI's encrypted thoughts begin.
_ENCRYPTED = "gAAAA"


def encrypt(thoughts: str) -> str:
    """Return a text as OpenAI's encrypted content looks; `redacted_in` undoes it."""
    return _ENCRYPTED + redact(thoughts)


def redacted_in(encrypted: str) -> str:
    """Return what `redact` has made of the text of encrypted content, "" where it is none."""
    redacted = encrypted.removeprefix(_ENCRYPTED)
    is_whole = encrypted.startswith(_ENCRYPTED) and is_redacted(redacted)
    return redacted if is_whole else ""


def is_redacted(data: str) -> bool:
    """Return whether `redact` has made this."""
    return data[-_SIGNATURE_LENGTH:] == sign(data[:-_SIGNATURE_LENGTH])
