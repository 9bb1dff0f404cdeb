"""Removal of the gateway's credentials, and of what resembles one, from provider messages. Pure.

A server that echoes the gateway's key may encode it: percent-encoding, base64, hexadecimal digits,
JSON or HTML escapes, another letter case, or split into pieces. A key in plain form is cut out of
the message. A message that contains a key, or a long part of one, in any other form is dropped
entirely.
"""

import base64
import binascii
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

MAX_MESSAGE = 2_000  # maximum characters of a redacted message
_LOOKED_AT = 2 * MAX_MESSAGE
_SHORTEST_SECRET = 6  # shorter header values are not keys
_PUBLIC = frozenset({"anthropic-version"})
# A key's letters and digits are searched for in parts of `_PART` characters, one every `_STEP`.
# Shorter parts would match by chance.
_PART = 8
_STEP = 4
_ENCODINGS = 3  # maximum nesting of encodings

_REDACTED = "[redacted]"
_KEY_LIKE = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|key|api)[-_][\w*.-]{6,}|\bAIza[\w-]{20,}|\bBearer\s+\S+", re.IGNORECASE
)
_NO_LETTER = re.compile(r"[^0-9a-z]+")
_ESCAPE = re.compile(r"(?<!\\)\\+(?:u\{?|U0{0,4}|x)([0-9A-Fa-f]{2,4})\}?")
_BASE64 = re.compile(r"[0-9A-Za-z+/_-]{8,}")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}[^0-9A-Za-z]{0,2}){6,}")
_HEX_SIGNS = re.compile(r"[^0-9A-Fa-f]+")


def redact(words: str, secrets: Iterable[str] = ()) -> str:
    """Return a provider's message without secrets, truncated to `MAX_MESSAGE` characters.

    Returns:
        "" if the message contains an encoded secret.
    """
    secrets = tuple(secrets)
    for secret in secrets:
        words = words.replace(secret, _REDACTED)
    words = words[:_LOOKED_AT]
    if _holds(words, secrets):
        return ""
    return _KEY_LIKE.sub(_REDACTED, words)[:MAX_MESSAGE]


def secrets_of(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the possible keys in the gateway's own request headers."""
    values = [value for name, value in headers.items() if name.lower() not in _PUBLIC]
    words = [word for value in values for word in (value, value.rpartition(" ")[2])]
    return tuple(dict.fromkeys(word for word in words if len(word) >= _SHORTEST_SECRET))


def _holds(words: str, secrets: Iterable[str]) -> bool:
    """Return whether a message contains a secret, or a long part of it, in any encoding."""
    sought = {part for secret in secrets for part in _parts(_letters(secret))}
    if not sought:
        return False
    seen: set[str] = set()
    texts = {words}
    for _ in range(_ENCODINGS):
        for text in texts:
            letters = _letters(text)
            if any(part in letters or part[::-1] in letters for part in sought):
                return True
        seen |= texts
        texts = {other for text in texts for other in _decoded(text)} - seen
    return False


def _parts(secret: str) -> Iterator[str]:
    """Yield parts of a secret; any long excerpt of the secret contains at least one."""
    for begin in range(0, len(secret) - _PART + 1, _STEP):
        yield secret[begin : begin + _PART]


def _letters(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return _NO_LETTER.sub("", text.lower())


def _decoded(text: str) -> Iterator[str]:
    """Return the possible decodings of a text."""
    yield _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    yield unquote(text, "latin-1")
    yield html.unescape(text)
    joined = "".join(text.split())
    runs = [match[0] for match in _BASE64.finditer(joined)]
    for begin in range(4):  # a key may start anywhere in encoded text
        yield " ".join(_from_base64(run[begin:]) for run in runs)
    digits = [_HEX_SIGNS.sub("", match[0]) for match in _HEX.finditer(text)]
    yield " ".join(bytes.fromhex(run[: len(run) // 2 * 2]).decode("latin-1") for run in digits)


def _from_base64(run: str) -> str:
    whole = run[: len(run) // 4 * 4].translate({ord("-"): "+", ord("_"): "/"})
    remainder = run[len(whole) :]
    if len(remainder) > 1:
        whole += remainder.translate({ord("-"): "+", ord("_"): "/"}) + "=" * (4 - len(remainder))
    try:
        return base64.b64decode(whole).decode("latin-1")
    except binascii.Error:
        return ""
