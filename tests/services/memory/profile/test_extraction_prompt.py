"""How a model is asked for facts, and what of its answer counts."""

import orjson
import pytest

from services.common.errors import GatewayError
from services.memory.profile import extraction_prompt
from services.memory.profile.facts import ExtractedFact, Fact

TEXT = "Well, I\u2019ve moved to\nBern, and I love  tea."
BERN = {"topic": "Home", "sub_topic": "place", "value": "Bern", "quote": "I've moved to bern"}


def answer(*facts: dict[str, object]) -> str:
    return orjson.dumps({"facts": list(facts)}).decode()


def test_a_fact_that_the_text_bears_out_is_taken() -> None:
    assert extraction_prompt.parse_facts(answer(BERN), TEXT) == [
        ExtractedFact("home", "place", "Bern")
    ]


@pytest.mark.parametrize(
    "wrapped", ["{}", "\n{} ", "```json\n{}\n```", "```\n{}\n```", "<think>a {{b</think>\n{}"]
)
def test_what_models_put_around_their_answer_is_taken_off(wrapped: str) -> None:
    assert extraction_prompt.parse_facts(wrapped.format(answer(BERN)), TEXT) == [
        ExtractedFact("home", "place", "Bern")
    ]


@pytest.mark.parametrize("quote", ["I moved to Basel", "Bern Bern", "love teas"])
def test_a_fact_whose_quote_is_not_in_the_text_is_left_out(quote: str) -> None:
    assert extraction_prompt.parse_facts(answer({**BERN, "quote": quote}), TEXT) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The user moved to Bern.",
        "[]",
        '{"facts": {}}',
        '{"facts": [], "more": 1}',
        answer({**BERN, "value": 3}),
        answer({**BERN, "value": ""}),
        answer({**BERN, "sure": True}),
        answer({key: text for key, text in BERN.items() if key != "quote"}),
        answer(*[BERN] * 33),
        answer(BERN)[:-2],
    ],
)
def test_invalid_answer_fails_without_showing_its_text(text: str) -> None:
    with pytest.raises(GatewayError) as raised:
        extraction_prompt.parse_facts(text, TEXT)
    assert "Bern" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_names_that_come_to_nothing_are_left_out() -> None:
    assert extraction_prompt.parse_facts(answer({**BERN, "topic": "!!!"}), TEXT) == []


def test_no_facts_are_a_good_answer() -> None:
    assert extraction_prompt.parse_facts('{"facts": []}', TEXT) == []


def test_prompt_holds_known_facts_and_bounded_text() -> None:
    known = [Fact("pets", "dog", "Rex", (), 1)]
    prompt = extraction_prompt.build_prompt(
        "I live in Basel. " + "x" * 100_000 + " I'm vegan.", known
    )
    assert "pets / dog: Rex" in prompt.input
    assert "I live in Basel." in prompt.input
    assert "I'm vegan." in prompt.input
    assert len(prompt.input) < 25_000
