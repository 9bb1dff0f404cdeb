"""Extraction of facts from English text by rules, without a model. Pure."""

import re
from collections.abc import Iterator
from functools import cache

from services.memory.profile import facts
from services.memory.profile.facts import ExtractedFact
from services.memory.profile.patterns import PATTERNS, Pattern, compiled, has_name
from services.memory.profile.statements import is_asserted, statements
from services.memory.profile.vocabulary import (
    LANGUAGES,
    MONTHS,
    NO_FURTHER_THING,
    NO_NAME,
    NO_THING,
    WEEKDAYS,
)

_TIMES = frozenset((*MONTHS, *WEEKDAYS, "today", "tomorrow"))
_LANGUAGE = re.compile(rf"\b(?:{'|'.join(LANGUAGES)})\b", re.IGNORECASE)
_LIST = re.compile(r",? (?:and|or) |, ")
_LAST = re.compile(
    r"(?<![\s,])[\s,]+"
    r"(?:better|best|more|most|very much|a lot|so much|too|also|now|these days|anyway|again"
    r"|though|already|any ?more|as well|right now|at the moment|currently|today|please|btw|still"
    r"|by the way|in general|generally|usually|instead|you know)$",
    re.IGNORECASE,
)


def extract(text: str) -> list[ExtractedFact]:
    """Return the facts that a user's text states of the user, in the order of the text."""
    facts = [one for sentence in statements(text) for one in _of_sentence(sentence)]
    return list(dict.fromkeys(facts))


def _of_sentence(sentence: str) -> list[ExtractedFact]:
    in_small = sentence.replace("I", "i").islower()
    placed_facts: list[tuple[int, ExtractedFact]] = []
    for pattern, expression in _compiled(in_small):
        for match in expression.finditer(sentence):
            if is_asserted(sentence, match.start(), match.end()):
                placed_facts += [
                    (match.start(), one) for one in _to_facts(pattern, match, in_small)
                ]
    return [one for _, one in sorted(placed_facts, key=lambda placed: placed[0])]


@cache
def _compiled(in_small: bool) -> list[tuple[Pattern, re.Pattern[str]]]:
    return [(pattern, compiled(pattern, in_small=in_small)) for pattern in PATTERNS]


def _to_facts(pattern: Pattern, match: re.Match[str], in_small: bool) -> Iterator[ExtractedFact]:
    groups = match.groupdict()
    listed = groups.pop("each", None)
    things = [groups.get("x", "")] if listed is None else _list_items(pattern, listed)
    for thing in things:
        words = {**groups, "x": _LAST.sub("", thing.strip(" .'"))}
        if "{x}" in pattern.sub_topic + pattern.value and not _is_plausible(
            pattern, words["x"], in_small
        ):
            continue
        sub_topic = facts.normalize_topic(pattern.sub_topic.format(**words))
        value = facts.normalize_value(pattern.value.format(**words))
        if sub_topic and value:
            yield ExtractedFact(pattern.topic, sub_topic, value)


def _list_items(pattern: Pattern, listed: str) -> Iterator[str]:
    """Yield the items of a list, up to the start of a new clause."""
    if pattern.topic == "languages":
        yield from _LANGUAGE.findall(listed)
        return
    for place, item in enumerate(_LIST.split(listed)):
        if place and item.split()[0].casefold() in NO_FURTHER_THING:
            return
        yield item


def _is_plausible(pattern: Pattern, thing: str, in_small: bool) -> bool:
    """Return whether a text can be the thing or name of a pattern."""
    if not thing:
        return False
    first = thing.split()[0].casefold()
    if not has_name(pattern):
        return first not in NO_THING
    return first not in _TIMES and not (in_small and first in NO_NAME)
