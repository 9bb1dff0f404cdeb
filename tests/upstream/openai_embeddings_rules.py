"""Rules of OpenAI's embeddings that the SDK's types do not express.

Source: the reference of embeddings.
"""

from collections.abc import Iterator

from services.sandbox.model.vectors import DIMENSIONS
from tests.upstream.checks import Body, Problem

_MAX_INPUTS = 2048


def find_problem(body: Body) -> Problem | None:
    """Return the first problem of a body with valid types, or None."""
    return next(_problems(body), None)


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
