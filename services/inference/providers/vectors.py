"""The vectors in the JSON of an answer, without numbers as Python objects. Pure.

A million numbers take 30 MB as a Python list, and 0.1 s to write again. They are set aside as
text, the rest of the answer is parsed, and only a vector that has to be converted is parsed, one
at a time.
"""

import binascii
import re
import struct
from collections.abc import Sequence
from typing import Final

import orjson

from services.common import packed_floats
from services.common.errors import UpstreamError, unsupported
from services.inference.providers.base import EmbeddingCall
from services.inference.providers.failures import broken_answer
from services.inference.providers.request_fields import RequestFields

# Maximum numbers of a vector, beyond those of any model.
MAX_LENGTH: Final = 1 << 13

_NUMBERS = b"+-.0123456789Ee, \t\r\n"
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
# Between the name of a member and its value.
_COLON = re.compile(rb"[ \t\r\n]{0,8}:[ \t\r\n]{0,8}")

# A vector as JSON: a list of numbers, or a string with the base64 of its 32-bit floats.
Vector = bytes


def check_only_texts(call: EmbeddingCall, fields: RequestFields, provider: str) -> None:
    """Check that a server of another dialect than OpenAI's takes the inputs; drop what it has not.

    Raises:
        GatewayError: unsupported, for lists of tokens.
    """
    inputs = call.inputs
    if inputs.token_lists:
        raise unsupported(
            "token_lists",
            f"token_lists: the provider {provider} takes no tokens; send the texts",
        )
    fields.own(inputs.extra, "extra")
    if inputs.end_user:
        fields.drop("end_user")


class VectorTexts:
    """An answer, and the texts of its vectors that were set aside.

    Attributes:
        outline: the answer's JSON with `[i]` in the place of the vector number `i`.
    """

    def __init__(self, answer: bytes, name: str) -> None:
        """Set aside the values of members called `name` that look like vectors.

        They have only the characters of numbers and commas, or of base64; whether these form
        numbers is not checked.
        """
        self._answer = answer
        self._places: list[tuple[int, int]] = []
        pieces: list[bytes] = []
        written = 0
        # Within strings of JSON there is a backslash before the second quotation mark.
        key = b'"%b"' % name.encode()
        at = answer.find(key)
        while at >= 0:
            at += len(key)
            if colon := _COLON.match(answer, at):
                begin = colon.end()
                end = _end_of_vector(answer, begin)
                if end:
                    pieces += (answer[written:begin], b"[%d]" % len(self._places))
                    self._places.append((begin, end))
                    written = at = end
            at = answer.find(key, at)
        pieces.append(answer[written:])
        self.outline = b"".join(pieces)

    def text_at(self, value: object) -> Vector | None:
        """Return the vector that a value of the outline stands for, or None."""
        match value:
            case [int(number)] if 0 <= number < len(self._places):
                begin, end = self._places[number]
                return self._answer[begin:end]
        return None


def is_base64(vector: Vector) -> bool:
    """Return whether a vector is a string with base64, and no list of numbers."""
    return vector.startswith(b'"')


def check_lengths(vectors: Sequence[Vector | None], provider: str) -> Sequence[Vector]:
    """Return vectors that all have one length.

    Raises:
        UpstreamError: they have not, one is missing, or no vector.
    """
    lengths = {_length(vector) for vector in vectors}
    if len(lengths) != 1 or not 0 < lengths.pop() <= MAX_LENGTH:
        raise broken_answer(provider, "answered vectors that are none, or of several lengths")
    return [vector for vector in vectors if vector is not None]


def packed(vector: Vector, provider: str) -> bytes:
    """Return a vector as 32-bit floats; see `services.common.packed_floats`.

    Raises:
        UpstreamError: it holds something that is no such number.
    """
    if is_base64(vector):
        return binascii.a2b_base64(vector[1:-1])
    try:
        return packed_floats.pack(orjson.loads(vector))
    except (orjson.JSONDecodeError, OverflowError, struct.error) as error:
        raise broken_answer(provider, "answered vectors of something else than numbers") from error


def in_json(vector: Vector, provider: str, *, base64: bool) -> orjson.Fragment:
    """Return a vector for an answer's JSON, in the form that is asked for.

    Raises:
        UpstreamError: as of `packed`.
    """
    if is_base64(vector) is base64:
        return orjson.Fragment(vector)
    numbers = packed(vector, provider)
    if base64:
        return orjson.Fragment(b'"%b"' % binascii.b2a_base64(numbers, newline=False))
    return orjson.Fragment(packed_floats.to_json(numbers))


def no_answer(count: int, provider: str) -> UpstreamError:
    """Return the error for an answer without `count` vectors."""
    return broken_answer(provider, f"did not answer {count} vectors")


def _end_of_vector(text: bytes, begin: int) -> int:
    """Return where a vector ends that may begin at a place of JSON; 0 if there is none."""
    # What follows the vector, or is in its way; no longer stretch is looked at twice.
    quote = text.find(b'"', begin + 1)
    if text.startswith(b'"', begin):
        return (
            quote + 1 if quote >= 0 and not text[begin + 1 : quote].translate(None, _BASE64) else 0
        )
    if not text.startswith(b"[", begin):
        return 0
    end = text.find(b"]", begin, quote if quote >= 0 else len(text))
    return end + 1 if end >= 0 and not text[begin + 1 : end].translate(None, _NUMBERS) else 0


def _length(vector: Vector | None) -> int:
    """Return how many numbers a vector has; 0 for what is none."""
    if vector is None:
        return 0
    if not is_base64(vector):
        return vector.count(b",") + 1 if vector.strip(b"[] \t\r\n") else 0
    text = vector[1:-1]
    digits = text.rstrip(b"=")
    padding = len(text) - len(digits)
    if len(text) % 4 or padding > 2 or b"=" in digits:
        return 0
    size = len(text) // 4 * 3 - padding
    return 0 if size % packed_floats.WIDTH else size // packed_floats.WIDTH
