"""Detection of sentences in which users assert something about themselves. Pure.

Precision matters more than recall: a missed fact can be said again, a wrong one stays.
"""

import re
from collections.abc import Iterator

from services.memory.profile.sentences import split_sentences, strip_non_prose

# Characters of a sentence that are used; longer ones are lists, or no prose.
_MAX_SENTENCE = 500

# The text after this is material for a task, not a statement about the user.
_MATERIAL = re.compile(
    r"\b(?:translat|rewrit|re-?write|proof-?read|paraphras|summari[sz]|correct|fix|improv|edit"
    r"|rephras|polish|shorten|repl(?:y|ies)|respond|answer|writ|draft|compos|generat|creat|act as"
    r"|role-?play|pretend|imagin|suppos|repeat|say|analy[sz]e|classif|review|check|complet|continu"
    r"|example|text|lyrics|poem|story|email|letter|essay)\w*\b[^\n:]{0,80}:(?=\s)",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"[\"\u201c\u201d\u00ab\u00bb]([^\"\u201c\u201d\u00ab\u00bb\n]*)(?:[\"\u201c\u201d\u00ab\u00bb]|$)"
)
_MAX_QUOTED_WORDS = 3
_OWN_WORD = re.compile(r"\b(?:i|i'm|my|me|we)\b", re.IGNORECASE)

# A sentence that begins like this: from there on the user may speak as somebody else.
_PRETENDED = re.compile(
    r"(?:now |please |so |ok(?:ay)?,? )*(?:you are|you're|you will be|act as|behave as|act like"
    r"|(?:let's )?(?:pretend|imagine|suppose|assume|role-?play)|let's say)\b",
    re.IGNORECASE,
)
# Anywhere before a statement in its sentence: it is hypothetical, fictional, past or reported.
_UNREAL = re.compile(
    r"\b(?:if|unless|whether|suppos\w+|imagin\w+|assum\w+|pretend\w*|let's say|hypothetical\w*"
    r"|wish\w*|dream\w*|as though|stor(?:y|ies)|novel|character|song|lyrics|poem|example|e\.g"
    r"|jok\w+|used to|when i was|back when|years ago)\b"
    r"|(?<!\bi )\b(?:said|says?|told|tells?|wrote|writes|asked|asks|thinks?|thought|claim\w*"
    r"|replied|believes?)\b",
    re.IGNORECASE,
)
# The same, within the clause of the statement.
_UNSURE = re.compile(
    r"\b(?:would|could|might|may|maybe|perhaps|probably|should|can't wait|will|not|never|nobody"
    r"|neither|nor|doubt\w*|how|why|who|whose|where|when|what|which|do|does|did|am|is|are)\b|n't\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:()]|\s[-\u2013\u2014]\s|\b(?:and|but|so|because|since|though)\b", re.IGNORECASE
)
# After a statement: it no longer holds.
_OVER = re.compile(
    r"\s*(?:no (?:more|longer)|when i was|as a (?:child|kid|teenager)|years ago|back then"
    r"|for a (?:while|year|semester|summer)|until (?:last|\d{4}))\b",
    re.IGNORECASE,
)


def statements(text: str) -> Iterator[str]:
    """Yield the sentences of a text that are the user's own words and no questions."""
    text = text.replace("\u2019", "'")
    if material := _MATERIAL.search(text):
        text = text[: material.start()]
    for sentence in split_sentences(_QUOTED.sub(_unquoted, strip_non_prose(text))):
        if _PRETENDED.match(sentence):
            return
        if not sentence.endswith("?"):
            yield sentence[:_MAX_SENTENCE]


def is_asserted(sentence: str, begin: int, end: int) -> bool:
    """Return whether a part of a sentence asserts something about the user at present."""
    before = sentence[:begin]
    if _UNREAL.search(before) or _OVER.match(sentence, end):
        return False
    clause_begins = max((cut.end() for cut in _CLAUSE.finditer(before)), default=0)
    return not _UNSURE.search(before, clause_begins)


def _unquoted(quoted: re.Match[str]) -> str:
    """Return a quoted word or name without its quotes, and an ellipsis for longer quotes."""
    words = quoted[1]
    if len(words.split()) > _MAX_QUOTED_WORDS or _OWN_WORD.search(words):
        return "\u2026"
    return words
