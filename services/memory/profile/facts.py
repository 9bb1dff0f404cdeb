"""How facts are worded: their topics, when two values are the same, and a text of all. Pure."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from services.memory.profile.tables import MAX_TOPIC

MAX_VALUE = 200

_NO_WORD = re.compile(r"[^\w+#]+")
_FIRST = re.compile(r"^(?:a|an|the|my|our|some|any)\s+")


class ExtractedFact(NamedTuple):
    """What a text says of its writer.

    Attributes:
        topic: in small letters, 1 to 64 characters.
        sub_topic: the same.
        value: 1 to 200 characters.
    """

    topic: str
    sub_topic: str
    value: str


class FactSource(NamedTuple):
    """Where a fact was said: the turn of a memory."""

    entity_id: str
    turn: int


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a user said of themselves.

    Attributes:
        topic: such as `work`.
        sub_topic: such as `employer`.
        value: in the user's words.
        sources: where it was said, the oldest first; what was said outside of any memory
            has none.
        updated_at_ms: Unix milliseconds when it was last said.
    """

    topic: str
    sub_topic: str
    value: str
    sources: tuple[FactSource, ...]
    updated_at_ms: int


def profile_text(facts: Iterable[Fact]) -> str:
    """Return a line for each fact, in the facts' order; "" where there is none.

    The same facts give the same text, so that providers' caches hold.
    """
    lines = [
        f"- {fact.topic}: {fact.value}"
        if fact.topic == fact.sub_topic
        else f"- {fact.topic}, {fact.sub_topic}: {fact.value}"
        for fact in facts
    ]
    return "\n".join(lines)


def normalize_topic(text: str) -> str:
    """Return the one way in which a topic is written, or "" where nothing of it is left."""
    return _folded(text)[:MAX_TOPIC].strip()


def normalize_value(text: str) -> str:
    """Return a value as it is kept: on one line, cut where it is too long."""
    return " ".join(text.replace("\0", "").split())[:MAX_VALUE].strip()


def is_same_value(one: str, other: str) -> bool:
    """Return whether two values say the same: capitals, articles and signs do not count."""
    return one == other or _folded(one) == _folded(other) != ""


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("'", "")
    return _NO_WORD.sub(" ", _FIRST.sub("", folded)).strip()
