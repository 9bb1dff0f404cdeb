"""OpenAI's embeddings as a dialect of the sandbox.

Sources: the types of the official SDK (`openai.types.create_embedding_response`), which requests
vectors in base64 by default, and the reference of embeddings.
"""

import base64
import struct
from collections.abc import Sequence
from typing import Any

from services.sandbox.dialects import Body, OpenAI
from services.sandbox.model.vectors import count_tokens
from services.sandbox.openai_types import EmbeddingsRequest


class Embeddings(OpenAI):
    """OpenAI's embeddings; see `dialects.Dialect`."""

    request_type = EmbeddingsRequest


def texts_of(body: Body) -> list[str]:
    """Return the texts of an accepted body; tokens are read as a text of their numbers."""
    inputs = body["input"]
    if isinstance(inputs, str) or isinstance(inputs[0], int):
        inputs = [inputs]
    return [_text_of(one) for one in inputs]


def _text_of(tokens: str | int | list[int]) -> str:
    return " ".join(map(str, tokens)) if isinstance(tokens, list) else str(tokens)


def answer(vectors: Sequence[Sequence[float]], body: Body) -> dict[str, Any]:
    """Write one vector per text, in the encoding that the body requests."""
    encoded = body.get("encoding_format") == "base64"
    read = count_tokens(texts_of(body))
    return {
        "object": "list",
        "model": body["model"],
        "data": [
            {
                "object": "embedding",
                "index": index,
                "embedding": _packed(vector) if encoded else vector,
            }
            for index, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": read, "total_tokens": read},
    }


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
