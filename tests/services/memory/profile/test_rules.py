"""Statements of people about themselves in English, and texts that only look like them."""

import pytest

from services.memory.profile.rules import extract
from tests.grid import each_row
from tests.work import lines_run


def found(text: str) -> dict[str, str]:
    return {f"{one.topic}/{one.sub_topic}": one.value for one in extract(text)}


@each_row(
    ("text", "facts"),
    [
        ("My name is Ada Lovelace.", {"name/name": "Ada Lovelace"}),
        ("My name's Ada, by the way.", {"name/name": "Ada"}),
        ("my name is \u201cAda\u201d", {"name/name": "Ada"}),
        ("Hi, I'm Ada and I need help.", {"name/name": "Ada"}),
        ("My name is Ludwig van Beethoven.", {"name/name": "Ludwig van Beethoven"}),
        ("Please call me Addy.", {"name/preferred name": "Addy"}),
        ("You can call me Addy from now on.", {"name/preferred name": "Addy"}),
        ("My pronouns are she/her.", {"name/pronouns": "she/her"}),
        ("I\u2019m 34 years old.", {"age/age": "34"}),
        ("I am 29, and tired.", {"age/age": "29"}),
        ("I just turned 30.", {"age/age": "30"}),
        ("My birthday is on the 3rd of May.", {"birthday/date": "3rd of May"}),
        ("My birthday's May 3, 1990", {"birthday/date": "May 3, 1990"}),
        ("I was born on 1990-05-03.", {"birthday/date": "1990-05-03"}),
        ("I was born in 1990.", {"birthday/year": "1990"}),
        ("I live in Basel, Switzerland.", {"home/place": "Basel, Switzerland"}),
        ("We live in the Netherlands now.", {"home/place": "the Netherlands"}),
        ("I currently live in St. Gallen with my cat.", {"home/place": "St. Gallen"}),
        ("I'm based in Frankfurt am Main.", {"home/place": "Frankfurt am Main"}),
        ("I've recently moved to New York.", {"home/place": "New York"}),
        ("Actually, I moved to Bern last month.", {"home/place": "Bern"}),
        ("No, I live in Bern, not in Basel.", {"home/place": "Bern"}),
        ("I'm originally from Porto Alegre.", {"home/origin": "Porto Alegre"}),
        ("I grew up in Lagos.", {"home/origin": "Lagos"}),
        ("I work at the University of Basel.", {"work/employer": "the University of Basel"}),
        ("I don't work at Acme anymore, I joined Globex.", {"work/employer": "Globex"}),
        (
            "I work for Acme Corp as a senior software engineer.",
            {"work/employer": "Acme Corp", "work/role": "senior software engineer"},
        ),
        ("I'm a nurse.", {"work/role": "nurse"}),
        ("I'm the CTO of Initech.", {"work/role": "CTO", "work/employer": "Initech"}),
        ("I study physics at ETH.", {"work/studies": "physics"}),
        ("My sister Ada is here.", {"family/sister": "Ada"}),
        ("My wife's name is Eva.", {"family/wife": "Eva"}),
        ("I have three kids.", {"family/kids": "three kids"}),
        ("I'm married to Tom.", {"family/status": "married", "family/spouse": "Tom"}),
        ("Our dog Rex barks.", {"pets/dog": "Rex"}),
        ("I have a black cat named Miez.", {"pets/cat": "Miez"}),
        ("I have two cats.", {"pets/cat": "two cats"}),
        (
            "I'm allergic to peanuts, shellfish and latex.",
            dict.fromkeys(
                ("allergies/peanuts", "allergies/shellfish", "allergies/latex"), "allergic"
            ),
        ),
        ("Remember that I have a severe nut allergy.", {"allergies/nut": "allergic"}),
        ("I am vegan.", {"diet/diet": "vegan"}),
        (
            "I speak German, French and a little Italian.",
            dict.fromkeys(("languages/german", "languages/french", "languages/italian"), "speaks"),
        ),
        ("I'm learning Japanese.", {"languages/japanese": "learning"}),
        (
            "I love hiking and Italian food, but I hate mushrooms.",
            {
                "preferences/hiking": "likes",
                "preferences/italian food": "likes",
                "preferences/mushrooms": "dislikes",
            },
        ),
        ("I don't like cilantro anymore.", {"preferences/cilantro": "dislikes"}),
        ("I prefer tea to coffee.", {"preferences/tea": "prefers"}),
        ("I like C++ and Rust.", {"preferences/c++": "likes", "preferences/rust": "likes"}),
        ("My favourite colour is dark green.", {"preferences/favourite colour": "dark green"}),
        ("I'm working on a compiler for Lua.", {"projects/compiler": "working on"}),
        ("My project is called Atlas.", {"projects/atlas": "its name"}),
        ("i live in basel and my name is ada", {"home/place": "basel", "name/name": "ada"}),
        ("i'm 25 and i work at acme", {"age/age": "25", "work/employer": "acme"}),
    ],
)
def test_what_a_user_states_is_found(text: str, facts: dict[str, str]) -> None:
    assert found(text) == facts


@each_row(
    "text",
    [
        # questions and suppositions
        "Do I live in Basel?",
        "If I live in Basel, do I pay taxes?",
        "Suppose I work at Google, what then?",
        "Imagine I live on Mars. I work at Nasa.",
        "What if my name is Bob.",
        "I wish I lived in Rome.",
        "Maybe I work at Google one day.",
        "I would love a dog. I'd like tea.",
        "I want to live in Tokyo.",
        # denied, or over
        "I don't live in Basel.",
        "I no longer live in Bern.",
        "I used to live in Rome.",
        "I'm not a nurse. I am not allergic to nuts.",
        "It's not true that I work at Acme.",
        "Don't call me Bob.",
        "I moved to Rome when I was a child.",
        # what others say, and what is quoted
        "My friend says I am a nurse at Acme.",
        'She told me "my name is Bob and I live in Paris".',
        "He wrote \u00abI live in Paris\u00bb.",
        "My boss thinks I like mushrooms.",
        "She lives in Oslo and works at Acme.",
        "> I live in Quoteville",
        "```\nI live in Codeville\n```",
        "| I live in Tabletown |",
        # somebody else's part
        "Translate to German: I live in Berlin and my name is Bob.",
        "Write a story: My name is Zorg. I live in Xanadu.",
        "Fix the grammar of this text:\nI lives here. I live in Rome.",
        "You are a pirate. My name is Jack.",
        "Act as my butler. I live in London.",
        # what looks like it
        "I like it. I love that. I like how you did it. I love you.",
        "I'm working on it. I'm from Monday on vacation.",
        "Call me late tomorrow. Call me Monday.",
        "I'm a bit tired. I'm a big fan of tea. I'm an early bird.",
        "I'm 100% sure. I'm 5 minutes late. I'm 30 minutes away.",
        "I have a question about cats. I have a dog food problem.",
        "my name is on the list",
        "my name is not important",
        "i live in a small house",
        "I live in fear. I moved to the next chapter.",
        "my dog is sick",
        "I'm single-minded. I'm engaged in politics.",
        "",
    ],
)
def test_what_a_user_does_not_state_is_not_found(text: str) -> None:
    assert found(text) == {}


def test_of_one_text_the_last_word_counts() -> None:
    assert found("I live in Basel. Sorry, I moved to Bern.") == {"home/place": "Bern"}


def test_what_is_before_the_material_is_the_users_own() -> None:
    text = "I'm Vegan. I live in Basel. Summarise this mail: I live in Rome and I'm a nurse."
    assert found(text) == {"diet/diet": "Vegan", "home/place": "Basel"}


def test_other_languages_are_left_alone() -> None:
    assert found("Ich wohne in Basel. 私は東京に住んでいます。 J'habite à Genève.") == {}


@pytest.mark.parametrize(
    "part", ["I love a, ", "My name is A", "I speak German and ", '"I ', "I am allergic to x and "]
)
def test_long_texts_take_time_in_proportion(part: str) -> None:
    extract("I live in Basel.")
    short, long = (lines_run(lambda n=n: extract(part * n)) for n in (100, 400))  # type: ignore[misc]
    assert long < 5 * short + 1000
