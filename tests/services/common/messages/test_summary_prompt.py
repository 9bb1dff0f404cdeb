"""How a model is asked for a summary, and what of its answer counts."""

import pytest

from services.common.messages import summary_prompt
from services.common.text.tokens import estimate_tokens
from services.memory.jobs.extractive_summary import MAX_TOKENS


def test_the_model_sees_the_summary_before_and_each_turn() -> None:
    prompt = summary_prompt.build_prompt("Ada has a dog.", ["User: one", "User: two"])
    places = [prompt.input.index(part) for part in ("Ada has a dog.", "User: one", "User: two")]
    assert places == sorted(places)
    assert prompt.max_tokens > MAX_TOKENS
    assert "<summary>" not in summary_prompt.build_prompt("", ["User: one"]).input


def test_long_turns_are_elided_in_the_middle() -> None:
    turns = [f"User: begin {number} {'x' * 50_000} end {number}" for number in range(5)]
    prompt = summary_prompt.build_prompt("", turns)
    assert len(prompt.input) < 25_000
    for number in range(5):
        assert f"begin {number}" in prompt.input
        assert f"end {number}" in prompt.input


def test_empty_turns_still_give_a_prompt() -> None:
    assert summary_prompt.build_prompt("", ["", " "]).input
    assert summary_prompt.build_prompt("", []).input


def test_a_summary_that_fits_stays_as_it_is() -> None:
    assert (
        summary_prompt.fit_summary("Ada has a dog.\n\nShe likes tea.")
        == "Ada has a dog.\n\nShe likes tea."
    )


@pytest.mark.parametrize("end", ["\n", " ", ""])
def test_long_summary_is_truncated_at_a_line_end(end: str) -> None:
    answer = f"A line of words.{end}" * 1_000
    cut = summary_prompt.fit_summary(answer)
    assert MAX_TOKENS * 0.9 < estimate_tokens(cut) <= MAX_TOKENS
    assert cut.endswith("." if end == "\n" else "\u2026")
    assert answer.startswith(cut.rstrip("\u2026"))
