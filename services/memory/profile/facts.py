"""Facts about users, and the normal form of their topics and values. Pure."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

MAX_TOPIC = 64  # as the columns have it
MAX_VALUE = 200

_NO_WORD = re.compile(r"[^\w+#]+")
_FIRST = re.compile(r"^(?:a|an|the|my|our|some|any)\s+")


class ExtractedFact(NamedTuple):
    """A fact that a text states about its author.

    Attributes:
        topic: in lower case, 1 to 64 characters.
        sub_topic: in the same form.
        value: 1 to 200 characters.
    """

    topic: str
    sub_topic: str
    value: str


class FactSource(NamedTuple):
    """The turn of a memory in which a fact was said."""

    entity_id: str
    turn: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that a user stated about themselves.

    Attributes:
        topic: such as `work`.
        sub_topic: such as `employer`.
        value: in the user's words.
        sources: the turns in which it was said, the oldest first; empty for a fact that was said
            outside of any memory.
        updated_at_ms: Unix milliseconds when it was last said.
        id: its id, or "".
    """

    topic: str
    sub_topic: str
    value: str
    sources: tuple[FactSource, ...]
    updated_at_ms: int
    id: str = ""


def profile_text(facts: Iterable[Fact]) -> str:
    """Return the text of a profile, a line for each fact in their order; "" without facts.

    Equal facts have equal texts, so that the prompt caches of providers hit.
    """
    lines = [
        f"- {fact.topic}: {fact.value}"
        if fact.topic == fact.sub_topic
        else f"- {fact.topic}, {fact.sub_topic}: {fact.value}"
        for fact in facts
    ]
    return "\n".join(lines)


def normalize_topic(text: str) -> str:
    """Return the normal form of a topic; "" if it has no letters or digits."""
    return _folded(text)[:MAX_TOPIC].strip()


def normalize_value(text: str) -> str:
    """Return the stored form of a value: on one line, truncated to `MAX_VALUE`."""
    return " ".join(text.replace("\0", "").split())[:MAX_VALUE].strip()


def is_same_value(one: str, other: str) -> bool:
    """Return whether two values are equal except for case, leading articles and punctuation."""
    return one == other or _folded(one) == _folded(other) != ""


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("'", "")
    return _NO_WORD.sub(" ", _FIRST.sub("", folded)).strip()
