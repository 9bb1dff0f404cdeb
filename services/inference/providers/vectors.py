"""The vectors in the JSON of an answer, without numbers as Python objects. Pure.

A million numbers take 30 MB as a Python list, and 0.1 s to write again. They are set aside as
text, the rest of the answer is parsed, and only a vector that has to be converted is parsed, one
at a time.
"""

import binascii
import re
import struct
from collections.abc import Sequence
from typing import Any, Final

import orjson

from services.common import packed_floats
from services.common.errors import UpstreamError, unsupported
from services.inference.providers.base import EmbeddingCall
from services.inference.providers.failures import broken_answer
from services.inference.providers.request_fields import RequestFields

# Maximum numbers of a vector, beyond those of any model.
MAX_LENGTH: Final = 1 << 13

_NUMBERS = b"+-.0123456789Ee, \t\r\n"
_NAME_BEFORE = re.compile(rb'"(\w{1,20})"[ \t\r\n]{0,8}:[ \t\r\n]{0,8}\Z', re.ASCII)
_LONGEST_NAME = 40
# Bytes that tell most lists of other things, before all of a list is looked at.
_PEEK = 16

# A vector: a JSON list of numbers, or the base64 of its 32-bit floats.
Vector = bytes | str


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


class NumberLists:
    """An answer, and the lists of numbers that were set aside.

    Attributes:
        outline: the answer's JSON with `[i]` in the place of the list number `i`.
    """

    def __init__(self, answer: bytes, name: str) -> None:
        """Set aside the lists of numbers that are members called `name` of an object.

        Each has only the characters of numbers and commas; whether these form numbers is not
        checked.
        """
        self._answer = answer
        self._lists: list[tuple[int, int]] = []
        wanted = name.encode()
        pieces: list[bytes] = []
        written = 0
        begin = answer.find(b"[")
        while begin >= 0 and (end := answer.find(b"]", begin)) >= 0:
            begin = max(begin, answer.rfind(b"[", begin, end))
            before = _NAME_BEFORE.search(answer, max(begin - _LONGEST_NAME, written), begin)
            if before is not None and before[1] == wanted and _are_numbers(answer, begin + 1, end):
                pieces += (answer[written:begin], b"[%d]" % len(self._lists))
                written = end + 1
                self._lists.append((begin, written))
            begin = answer.find(b"[", end + 1)
        pieces.append(answer[written:])
        self.outline = b"".join(pieces)

    def list_at(self, value: object) -> bytes | None:
        """Return the JSON of the list that a value of the outline stands for, or None."""
        match value:
            case [int(number)] if 0 <= number < len(self._lists):
                begin, end = self._lists[number]
                return self._answer[begin:end]
        return None


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
    if isinstance(vector, str):
        return binascii.a2b_base64(vector)
    try:
        return packed_floats.pack(orjson.loads(vector))
    except (orjson.JSONDecodeError, OverflowError, struct.error) as error:
        raise broken_answer(provider, "answered vectors of something else than numbers") from error


def in_json(vector: Vector, provider: str, *, base64: bool) -> Any:
    """Return a vector for an answer's JSON, in the form that is asked for.

    Raises:
        UpstreamError: as of `packed`.
    """
    if isinstance(vector, str):
        if base64:
            return vector
        return orjson.Fragment(packed_floats.to_json(packed(vector, provider)))
    if not base64:
        return orjson.Fragment(vector)
    return binascii.b2a_base64(packed(vector, provider), newline=False).decode()


def _are_numbers(text: bytes, begin: int, end: int) -> bool:
    if text[begin : min(begin + _PEEK, end)].translate(None, _NUMBERS):
        return False
    return not text[begin:end].translate(None, _NUMBERS)


def _length(vector: Vector | None) -> int:
    """Return how many numbers a vector has; 0 for what is none."""
    if vector is None:
        return 0
    if isinstance(vector, bytes):
        return vector.count(b",") + 1 if vector.strip(b"[] \t\r\n") else 0
    try:
        size = len(binascii.a2b_base64(vector, strict_mode=True))
    except ValueError:  # also where it is not ASCII
        return 0
    return 0 if size % packed_floats.WIDTH else size // packed_floats.WIDTH


def no_answer(count: int, provider: str) -> UpstreamError:
    """Return the error for an answer without `count` vectors."""
    return broken_answer(provider, f"did not answer {count} vectors")
