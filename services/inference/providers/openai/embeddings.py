"""OpenAI's embeddings: request bodies of `/embeddings`, and their answers. Pure.

An answer is `{"data": [{"index": 0, "embedding": [0.1, …]}, …], "usage": {…}}`, with base64 in
place of the numbers if requested. It is passed through; answers of servers that ignore
`encoding_format`, or omit fields, are completed first.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from gateway.inference.v1.inference_pb2 import EmbedRequest, EmbedResponse
from services.inference.providers.base import EmbeddingCall
from services.inference.providers.bounds import name_of, tokens
from services.inference.providers.openai.fields import OpenAIFields, Server
from services.inference.providers.upstream import Upstream
from services.inference.providers.vectors import (
    VectorTexts,
    check_lengths,
    in_json,
    no_answer,
    packed,
)
from services.inference.request.estimate import estimate_inputs

# Maximum JSON values of an answer per vector, besides its numbers.
_VALUES_A_VECTOR = 64

_ENCODINGS = {
    EmbedRequest.ENCODING_FLOAT: "float",
    EmbedRequest.ENCODING_BASE64: "base64",
}
# Canonical names of fields, by OpenAI's.
_CANONICAL = {"user": "end_user"}
# Not reported as dropped: the gateway converts the vectors if the server does not.
_ENCODING = "encoding_format"


def build_embeddings(call: EmbeddingCall, server: Server) -> bytes:
    """Return the body of an embedding request.

    Raises:
        GatewayError: invalid, for a field that refers to an object stored at the provider.
    """
    inputs, fields = call.inputs, OpenAIFields(call, server)
    native = fields.native_fields(inputs.extra, "extra")
    body: dict[str, Any] = {**native, "model": call.target.upstream}
    body["input"] = list(inputs.texts) or [list(one.tokens) for one in inputs.token_lists]
    if inputs.HasField("dimensions"):
        body["dimensions"] = inputs.dimensions
    if encoding := _ENCODINGS.get(inputs.encoding):
        body[_ENCODING] = encoding
    if inputs.end_user:
        body["user"] = inputs.end_user
    for name in call.leave_out_refused(body):
        if name != _ENCODING:
            fields.drop(f"extra.{name}" if name in native else _CANONICAL.get(name, name))
    return orjson.dumps(body)


def read_embeddings(answer: bytes, call: EmbeddingCall, upstream: Upstream) -> EmbedResponse:
    """Return the vectors of an answer.

    Raises:
        UpstreamError: the answer does not have one vector for each text, all of the same length.
    """
    inputs, provider = call.inputs, upstream.name
    count = len(inputs.texts) or len(inputs.token_lists)
    texts = VectorTexts(answer, "embedding")
    parsed = upstream.json_object_of(texts.outline, (count + 1) * _VALUES_A_VECTOR)
    items, is_ordered = _in_order(parsed.get("data"), count)
    if items is None:
        raise no_answer(count, provider)
    read_vectors = [texts.vector_of(item.get("embedding")) for item in items]
    vectors = check_lengths(read_vectors, provider)
    usage = _usage(parsed.get("usage"))
    response = EmbedResponse(estimated=usage is None)
    response.input_tokens = estimate_inputs(inputs) if usage is None else usage
    if not (inputs.takes_passthrough and call.request.dialect == OpenAIFields.dialect):
        response.model = _model(parsed.get("model"), call)
        response.vectors.extend(packed(vector, provider) for vector in vectors)
        return response
    base64 = inputs.encoding == EmbedRequest.ENCODING_BASE64
    is_as_asked = all(vector.is_base64 is base64 for vector in vectors)
    if is_as_asked and is_ordered and usage is not None and parsed.get("object") == "list":
        response.passthrough = answer
    else:
        written = [in_json(vector, provider, base64=base64) for vector in vectors]
        response.passthrough = _mended(parsed, items, written, response.input_tokens, call)
    return response


def _in_order(data: object, count: int) -> tuple[Sequence[Mapping[str, Any]] | None, bool]:
    """Return the items of an answer by index, and whether they were in that order.

    Servers that keep the order may omit the index. None unless there is one item for each text.
    """
    items = data if isinstance(data, list) else []
    by_index: dict[int, Mapping[str, Any]] = {}
    is_ordered = True
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            return None, False
        index = item.get("index")
        is_ordered &= index == place and type(index) is int
        by_index[index if isinstance(index, int) else place] = item
    if len(items) != count or by_index.keys() != set(range(count)):
        return None, False
    return [by_index[place] for place in range(count)], is_ordered


def _usage(value: object) -> int | None:
    """Return the input tokens, or None unless usage is in OpenAI's format."""
    match value:
        case {"prompt_tokens": prompt, "total_tokens": total}:
            try:
                tokens(total)
                return tokens(prompt)
            except ValueError:
                return None
    return None


def _model(value: object, call: EmbeddingCall) -> str:
    try:
        return name_of(value)
    except ValueError:
        return call.target.upstream


def _mended(
    parsed: Mapping[str, Any],
    items: Sequence[Mapping[str, Any]],
    vectors: Sequence[Any],
    input_tokens: int,
    call: EmbeddingCall,
) -> bytes:
    """Return the answer in the format that the SDKs expect, with all other fields unchanged."""
    data = [
        {**item, "object": "embedding", "index": index, "embedding": vector}
        for index, (item, vector) in enumerate(zip(items, vectors, strict=True))
    ]
    usage = parsed.get("usage")
    if _usage(usage) is None:
        counts = usage if isinstance(usage, dict) else {}
        usage = {**counts, "prompt_tokens": input_tokens, "total_tokens": input_tokens}
    model = _model(parsed.get("model"), call)
    return orjson.dumps({**parsed, "object": "list", "model": model, "data": data, "usage": usage})
