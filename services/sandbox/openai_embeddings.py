"""OpenAI's embeddings: check a body, and write vectors as JSON.

Sources: the types of the official SDK (`openai.types.create_embedding_response`), which requests
vectors in base64 by default, and the reference of embeddings.
"""

import base64
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from services.sandbox.checks import Body, Problem
from services.sandbox.model.vectors import DIMENSIONS, count_tokens

_MAX_INPUTS = 2048


def find_problem(body: Body) -> Problem | None:
    """Return the first problem of a body with valid types, or None."""
    return next(_problems(body), None)


def texts_of(body: Body) -> list[str]:
    """Return the texts of a valid body; a list of tokens is read as a text of their numbers."""
    texts = body["input"]
    if isinstance(texts, str):
        return [texts]
    if isinstance(texts[0], int):
        texts = [texts]
    return [one if isinstance(one, str) else " ".join(map(str, one)) for one in texts]


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


def _problems(body: Body) -> Iterator[Problem]:
    texts = body["input"]
    if not texts:
        yield Problem(("input",), "cannot be empty")
    if isinstance(texts, list) and texts and not isinstance(texts[0], int):
        if len(texts) > _MAX_INPUTS:
            yield Problem(("input",), f"at most {_MAX_INPUTS} items")
        for index, one in enumerate(texts):
            if not one:
                yield Problem(("input", index), "cannot be empty")
    if not 1 <= body.get("dimensions", 1) <= DIMENSIONS:
        yield Problem(("dimensions",), f"takes 1 to {DIMENSIONS}")
