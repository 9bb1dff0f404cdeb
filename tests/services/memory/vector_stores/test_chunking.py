"""Chunks of texts."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from services.common.text.tokens import estimate_tokens
from services.memory.vector_stores.chunking import cut

TEXTS = st.text(st.sampled_from("ab \n漢😀.9"), max_size=2_000)


@given(text=TEXTS, size=st.integers(100, 300))
def test_chunks_are_the_whole_text_within_their_size(text: str, size: int) -> None:
    chunks = cut(text, size, 0)
    assert "".join("".join(chunks).split()) == "".join(text.split())
    assert all(estimate_tokens(chunk) <= size and chunk.strip() for chunk in chunks)


def test_chunks_share_about_as_many_tokens_as_they_are_to() -> None:
    text = " ".join(f"word{number}" for number in range(2_000))
    chunks = cut(text, 200, 100)
    for before, chunk in pairwise(chunks):
        shared = set(before.split()) & set(chunk.split())
        assert 60 <= estimate_tokens(" ".join(shared)) <= 110
    assert {word for chunk in chunks for word in chunk.split()} == set(text.split())


def test_words_stay_whole() -> None:
    words = {word for chunk in cut("wonderful " * 500, 100, 50) for word in chunk.split()}
    assert words == {"wonderful"}
