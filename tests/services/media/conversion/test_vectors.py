"""Vectors by the embedded model, through a real worker."""

import numpy as np
import pytest

from tests.thoroughness import sampled

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def vectors_of(converter, *texts: str, is_query: bool = False):
    made = await converter.vectors(texts, is_query=is_query)
    return np.frombuffer(made.packed, "<f4").reshape(len(texts), made.dimensions), made.tokens


async def test_vectors_have_unit_length_and_one_order(converter):
    vectors, tokens = await vectors_of(converter, "a dog", "two cats")
    assert vectors.shape == (2, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    swapped, _ = await vectors_of(converter, "two cats", "a dog")
    assert np.allclose(vectors, swapped[::-1], atol=1e-3)
    assert 8 <= tokens <= 20


async def test_same_meaning_in_other_languages_is_nearer(converter):
    question = "In which city does the user live?"
    near = ["I moved to Basel.", "Ich wohne jetzt in Basel.", "私はバーゼルに住んでいます。"]
    far = ["I like green tea.", "Ich trinke gern Tee.", "私はお茶が好きです。"]
    vectors, _ = await vectors_of(converter, *near, *far)
    [asked], _ = await vectors_of(converter, question, is_query=True)
    likeness = vectors @ asked
    assert (likeness[:3] > likeness[3:]).all()


async def test_text_of_any_length_and_content_is_taken(converter):
    # Of few tokens, as the model takes seconds for those of so long a text.
    beginning = "The garden is green." + " " * 4_000
    texts = (beginning, beginning + "x" * 1_000_000, "\0", "a\0b", "a b")
    vectors, _ = await vectors_of(converter, *texts)
    assert np.isfinite(vectors).all()
    assert np.allclose(vectors[0], vectors[1], atol=1e-3)
    assert np.allclose(vectors[3], vectors[4], atol=1e-3)


# The model takes seconds for each.
SCRIPTS = sampled(["The garden is green. ", "庭は緑です。", "🦆", "a👩‍🚀"], 4, first=3)


@pytest.mark.thorough
@pytest.mark.parametrize("part", SCRIPTS)
async def test_as_many_tokens_are_read_in_every_script(converter, part):
    _, tokens = await vectors_of(converter, part * 3_000)
    assert 490 <= tokens <= 512


async def test_questions_have_other_vectors_than_texts(converter):
    text = "Where do I live?"
    [as_text], _ = await vectors_of(converter, text)
    [as_query], _ = await vectors_of(converter, text, is_query=True)
    assert 0.8 < as_text @ as_query < 0.999
