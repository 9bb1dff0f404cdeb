"""Embedding vectors in the JSON of an answer, without a Python object per number. Pure.

A million numbers take 30 MB as a Python list, and 0.1 s to serialize. They are therefore cut out as
text and the rest of the answer is parsed. Only vectors that must be converted are parsed, one at a
time.
"""

import binascii
import re
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import orjson

from gateway.inference.v1.inference_pb2 import EmbedResponse
from services.common.errors import UpstreamError, unsupported
from services.common.text import packed_floats
from services.inference.providers.base import EmbeddingCall
from services.inference.providers.failures import broken_answer
from services.inference.providers.opaque_json import Json
from services.inference.providers.request_fields import RequestFields
from services.inference.request.estimate import estimate_inputs

# Maximum length of a vector; no model has longer ones.
MAX_LENGTH: Final = 1 << 13

_NUMBERS = b"+-.0123456789Ee, \t\r\n"
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PADDINGS = (b"", b"=", b"==")
# A member's name, up to its value. Inside a JSON string it cannot match: the second quotation mark
# would have a backslash before it.
_MEMBER = r'"{name}"[ \t\r\n]{{0,8}}:[ \t\r\n]{{0,8}}'


class VectorRequest(NamedTuple):
    """One of the requests for the vectors of a call.

    Attributes:
        path: its path, below the base URL.
        body: its body.
        texts: the number of its texts.
    """

    path: str
    body: bytes
    texts: int


class Vector(NamedTuple):
    """An embedding vector in the JSON of an answer.

    Attributes:
        text: the vector's JSON, an array of numbers or a string; a view of the answer, not a copy.
        length: the number of components; 0 for an invalid vector.
        is_base64: whether it is a string, the base64 of 32-bit floats.
    """

    text: memoryview
    length: int
    is_base64: bool


def check_only_texts(call: EmbeddingCall, fields: RequestFields, provider: str) -> Json:
    """Check that the inputs are texts, and drop the other fields of another dialect.

    For servers of a dialect other than OpenAI's.

    Returns:
        The fields of the provider's own dialect.

    Raises:
        GatewayError: unsupported, for lists of tokens.
    """
    inputs = call.inputs
    if inputs.token_lists:
        raise unsupported(
            "token_lists",
            f"token_lists: not supported by the provider {provider}; send texts",
        )
    if inputs.end_user:
        fields.drop("end_user")
    return fields.native_fields(inputs.extra, "extra")


class VectorTexts:
    """An answer whose vectors have been cut out as text.

    Attributes:
        outline: the answer's JSON with `[i]` in place of vector number `i`.
    """

    def __init__(self, answer: bytes, name: str) -> None:
        """Cut out the values of members called `name` that look like vectors.

        Their characters are those of numbers and commas, or of base64. Whether they form valid
        numbers is not checked.
        """
        self._vectors: list[Vector] = []
        pieces: list[bytes] = []
        written = 0
        view = memoryview(answer)
        member = _member(name)
        member_match = member.search(answer)
        while member_match:
            at = begin = member_match.end()
            if vector := _vector_at(answer, view, begin):
                pieces += (answer[written:begin], b"[%d]" % len(self._vectors))
                self._vectors.append(vector)
                written = at = begin + len(vector.text)
            member_match = member.search(answer, at)
        pieces.append(answer[written:])
        self.outline = b"".join(pieces)

    def vector_of(self, value: object) -> Vector | None:
        """Return the vector for a value of the outline, or None if it is not a placeholder."""
        match value:
            case [int(number)] if 0 <= number < len(self._vectors):
                return self._vectors[number]
        return None


def check_lengths(vectors: Sequence[Vector | None], provider: str) -> Sequence[Vector]:
    """Return the vectors if all have the same length.

    Raises:
        UpstreamError: the lengths differ, or a vector is missing or invalid.
    """
    lengths = {0 if vector is None else vector.length for vector in vectors}
    if len(lengths) != 1 or not 0 < lengths.pop() <= MAX_LENGTH:
        raise broken_answer(provider, "returned malformed vectors, or vectors of different lengths")
    return [vector for vector in vectors if vector is not None]


def packed(vector: Vector, provider: str) -> bytes:
    """Return a vector as 32-bit floats; see `services.common.text.packed_floats`.

    Raises:
        UpstreamError: it contains something other than 32-bit floats.
    """
    if vector.is_base64:
        return binascii.a2b_base64(vector.text[1:-1])
    try:
        return packed_floats.pack(orjson.loads(vector.text))
    except (orjson.JSONDecodeError, OverflowError, struct.error) as error:
        raise broken_answer(provider, "returned vectors with values other than numbers") from error


def in_json(vector: Vector, provider: str, *, base64: bool) -> orjson.Fragment:
    """Return a vector for an answer's JSON, in the requested encoding.

    Raises:
        UpstreamError: as `packed`.
    """
    if vector.is_base64 is base64:
        return orjson.Fragment(bytes(vector.text))
    numbers = packed(vector, provider)
    if base64:
        return orjson.Fragment(b'"%b"' % binascii.b2a_base64(numbers, newline=False))
    return orjson.Fragment(packed_floats.to_json(numbers))


def whole_response(
    call: EmbeddingCall, vectors: list[bytes], counted: int | None, provider: str
) -> EmbedResponse:
    """Return the response of all requests; `counted` tokens, or None for an estimate.

    Raises:
        UpstreamError: the vectors of the requests differ in length.
    """
    if len({len(vector) for vector in vectors}) != 1:
        raise no_answer(len(vectors), provider)
    return EmbedResponse(
        model=call.target.upstream,
        vectors=vectors,
        input_tokens=estimate_inputs(call.inputs) if counted is None else counted,
        estimated=counted is None,
    )


def no_answer(count: int, provider: str) -> UpstreamError:
    """Return the error for an answer without `count` vectors."""
    return broken_answer(provider, f"did not return {count} vectors")


@lru_cache
def _member(name: str) -> re.Pattern[bytes]:
    return re.compile(_MEMBER.format(name=name).encode())


def _vector_at(answer: bytes, view: memoryview, begin: int) -> Vector | None:
    """Return the vector that begins at an offset of the JSON, if there is one."""
    # The end of a string, or the bound for an array of numbers, so that scanning takes linear time.
    quote = answer.find(b'"', begin + 1)
    if answer.startswith(b'"', begin):
        padding = answer[begin + 1 : quote].translate(None, _BASE64)
        if quote < 0 or padding not in _PADDINGS:
            return None
        size = quote - begin - 1
        is_whole = size % 4 == 0 and answer.endswith(padding, begin + 1, quote)
        length, remainder = divmod(size // 4 * 3 - len(padding), packed_floats.WIDTH)
        return Vector(view[begin : quote + 1], length if is_whole and not remainder else 0, True)
    if not answer.startswith(b"[", begin):
        return None
    end = answer.find(b"]", begin, quote if quote >= 0 else len(answer))
    if end < 0:
        return None
    numbers = answer[begin + 1 : end]
    if numbers.translate(None, _NUMBERS):
        return None
    length = numbers.count(b",") + 1 if numbers.strip(b" \t\r\n") else 0
    return Vector(view[begin : end + 1], length, False)
