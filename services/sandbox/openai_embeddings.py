"""OpenAI's embeddings: the rules of a body, and vectors into JSON.

Sources: the types of the official SDK (`openai.types.create_embedding_response`), which
reads vectors in base64 unless it is told otherwise, and the reference of embeddings.
"""

import base64
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from services.sandbox.checks import Body, Problem

_MAX_INPUTS = 2048
_CHARACTERS_A_TOKEN = 4


def find_problem(body: Body) -> Problem | None:
    """Return the first problem of a body of the right types, or None."""
    return next(_problems(body), None)


def texts_of(body: Body) -> list[str]:
    """Return the texts of a body without a problem."""
    return [body["input"]] if isinstance(body["input"], str) else body["input"]


def answer(vectors: Sequence[Sequence[float]], body: Body) -> dict[str, Any]:
    """Write one vector for each text, as the body asks for them."""
    encoded = body.get("encoding_format") == "base64"
    read = sum(-(-len(text) // _CHARACTERS_A_TOKEN) for text in texts_of(body))
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
    given = body["input"]
    if not given:
        yield Problem(("input",), "cannot be empty")
    if len(given) > _MAX_INPUTS and isinstance(given, list):
        yield Problem(("input",), f"at most {_MAX_INPUTS} items")
    for index, text in enumerate(given if isinstance(given, list) else ()):
        if not isinstance(text, str):
            # OpenAI's servers take tokens too, which the sandbox could not read.
            yield Problem(("input", index), "the sandbox reads texts alone")
        elif not text:
            yield Problem(("input", index), "cannot be an empty string")
    if "dimensions" in body:
        yield Problem(("dimensions",), "this model does not support other dimensions")
