"""Patterns of English sentences in which people state facts about themselves. Pure.

A pattern is a regular expression with placeholders such as `<NAME>`. Its groups give topic,
sub-topic and value of a fact. In a sentence without any capitals, as some people write, a name is
a word or two up to the end of the clause.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from services.memory.profile import vocabulary as words


class Pattern(NamedTuple):
    """A pattern of statements.

    Attributes:
        topic: the topic of the fact.
        sub_topic: its sub-topic, with `{group}` for the text of a group.
        value: its value, likewise.
        expression: the expression with placeholders. A group `each` matches a list, and makes a
            fact with each item as `x`.
    """

    topic: str
    sub_topic: str
    value: str
    expression: str


def compiled(pattern: Pattern, *, in_small: bool) -> re.Pattern[str]:
    """Return the regular expression of a pattern, for sentences with capitals or without."""
    expression = pattern.expression
    for placeholder, meaning in {**_PARTS, **(_SMALL if in_small else _CAPITALS)}.items():
        expression = expression.replace(placeholder, f"(?:{meaning})")
    return re.compile(expression, re.IGNORECASE)


def has_name(pattern: Pattern) -> bool:
    """Return whether a pattern contains a name."""
    return "<NAME>" in pattern.expression or "<PLACE>" in pattern.expression


def _any(choices: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, choices), key=len, reverse=True))


# The end of a thing.
_END = (
    r"(?=\s*(?:[.,;:!?()\u2026]|$)|\s+(?:[-\u2013\u2014]\s|(?:and|or|but|so|because|since|with|for"
    r"|at|in|on|from|who|which|that|where|when|while|as|though|over|than|rather|now|too|if|until"
    r"|after|before|by|i|we|not)\b))"
)
# A capitalized word other than "I".
_CAPITAL = (
    r"(?-i:(?:(?:St|Mt)\. )?(?!I\b)[A-Z\u00c0-\u00de\u0410-\u042f](?:[\w.-]*\w)?)"
    r"(?:'(?!s\b)\w+)?(?![^\W\d_])"
)
_WORD = r"\w[\w'/+#&-]*"
_LETTERS = r"[^\W\d_][\w'-]*"
_MONTH = f"(?:{_any(words.MONTHS)})"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)\d\d"
_LANGUAGE = f"(?:{_any(words.LANGUAGES)})"
_BETWEEN_LANGUAGES = r"(?:, and | and |, | |fluent |native |some |basic |a little |a bit of )"

_PARTS: Mapping[str, str] = {
    "<I AM>": r"\b(?:I'm|I am|I've been|I have been)<OFTEN>",
    "<WE ARE>": r"\b(?:I'm|I am|we're|we are)<OFTEN>",
    "<I HAVE>": r"\b(?:I've|I have|we've|we have|I|we)(?: got)?<OFTEN>",
    "<I>": r"\b(?:I|we)<OFTEN>",
    "<MY>": r"\b(?:my|our)",
    "<OFTEN>": r"(?: (?:also|now|still|currently|actually|really|absolutely|just|recently|only"
    r"|mostly|usually|always|sometimes|then|very|extremely|severely|highly|since|finally"
    r"|already|originally))*",
    "<END>": _END,
    "<THING>": rf"{_WORD}(?: {_WORD}){{0,5}}?{_END}",
    "<THINGS>": rf"{_WORD}(?: {_WORD}){{0,3}}?"
    rf"(?:(?:, (?:and |or )?| and | or ){_WORD}(?: {_WORD})?){{0,5}}{_END}",
    "<ROLE>": rf"(?:[\w-]+ ){{0,3}}?(?:{_any(words.ROLES)})\b",
    "<RELATIVE>": rf"(?:{_any(words.RELATIVES)})\b",
    "<CHILDREN>": rf"(?:{_any(words.CHILDREN)})\b",
    "<ANIMAL>": _any(words.ANIMALS),
    "<COUNT>": r"an?|one|two|three|four|five|six|seven|eight|nine|ten|several|many|\d{1,2}",
    "<DIET>": _any(words.DIETS),
    "<LANGUAGE>": rf"{_LANGUAGE}\b",
    "<LANGUAGES>": rf"{_BETWEEN_LANGUAGES}*{_LANGUAGE}(?:{_BETWEEN_LANGUAGES}+{_LANGUAGE})*\b",
    "<YEAR>": _YEAR,
    "<DATE>": rf"(?:{_DAY}(?: of)? {_MONTH}|{_MONTH} (?:the )?{_DAY})\b(?:,? {_YEAR})?"
    r"|\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}\b(?:[./](?:\d{4}|\d\d))?",
}
# Placeholders within placeholders.
_PARTS = {
    name: meaning.replace("<OFTEN>", _PARTS["<OFTEN>"]) if name != "<OFTEN>" else meaning
    for name, meaning in _PARTS.items()
}
_CALLED = r"'s name is| is (?:called|named)|,? (?:called|named)"
_CAPITALS: Mapping[str, str] = {
    # "my brother Max"
    "<CALLED>": rf"{_CALLED}|,?",
    "<NAME>": rf"{_CAPITAL}(?:(?: (?:von|van|de|der|den|da|di|la|al|el|bin))* {_CAPITAL}){{0,3}}",
    "<PLACE>": rf"(?:the )?{_CAPITAL}"
    rf"(?:,? (?:(?:of|the|de|la|le|del|di|am|upon) ){{0,2}}{_CAPITAL}){{0,4}}",
}
_SMALL: Mapping[str, str] = {
    "<CALLED>": _CALLED,
    "<NAME>": rf"{_LETTERS}(?: {_LETTERS})?{_END}",
    "<PLACE>": rf"{_LETTERS}(?: {_LETTERS}){{0,2}}?{_END}",
}


def _patterns(topic: str, *lines: tuple[str, str, str]) -> tuple[Pattern, ...]:
    return tuple(Pattern(topic, *line) for line in lines)


PATTERNS: tuple[Pattern, ...] = (
    *_patterns(
        "name",
        ("name", "{x}", r"<MY> (?:(?:full|first|real|new) )?name(?:'s| is)<OFTEN> (?P<x><NAME>)"),
        ("name", "{x}", r"\bchanged my name to (?P<x><NAME>)"),
        (
            "name",
            "{x}",
            r"^(?:hi|hello|hey)\b[^.!?]{0,20}?[,.!]? ?\bI(?:'m| am) (?P<x><NAME>)<END>",
        ),
        ("preferred name", "{x}", r"<I AM> called (?P<x><NAME>)"),
        (
            "preferred name",
            "{x}",
            r"(?:^|[,;.!] ?|\b(?:please|just|can|people|friends|everyone|everybody|and|but|so) )"
            r"call me (?P<x><NAME>)",
        ),
        ("pronouns", "{x}", r"\bmy pronouns are (?P<x>\w+(?:/\w+){1,2})"),
    ),
    *_patterns(
        "age",
        ("age", "{x}", r"\b(?:I'm|I am)<OFTEN> (?P<x>\d{1,3}) years? old\b"),
        ("age", "{x}", r"\b(?:I'm|I am)<OFTEN> (?P<x>1[3-9]|[2-9]\d)(?=\s*(?:[.,!]|$)|\s+and\b)"),
        ("age", "{x}", r"\bI<OFTEN> turned (?P<x>\d{1,3})(?:<END>|(?= (?:last|this|yesterday)\b))"),
    ),
    *_patterns(
        "birthday",
        ("date", "{x}", r"\bmy birthday(?:'s| is)(?: on)?(?: the)? (?P<x><DATE>)"),
        ("date", "{x}", r"\bI was born(?: on)?(?: the)? (?P<x><DATE>)"),
        ("year", "{x}", r"\bI was born in (?P<x><YEAR>)\b"),
    ),
    *_patterns(
        "home",
        ("birthplace", "{x}", r"\bI was born(?: and raised)? in (?P<x><PLACE>)"),
        ("place", "{x}", r"<I> live<OFTEN> in (?P<x><PLACE>)"),
        ("place", "{x}", r"<WE ARE> (?:living|based|residing) in (?P<x><PLACE>)"),
        ("place", "{x}", r"<I HAVE> moved<OFTEN>(?: back| over)? to (?P<x><PLACE>)"),
        ("origin", "{x}", r"\b(?:I'm|I am|I<OFTEN> come)<OFTEN> from (?P<x><PLACE>)"),
        ("origin", "{x}", r"\bI grew up in (?P<x><PLACE>)"),
        ("origin", "{x}", r"\bmy home ?town is (?P<x><PLACE>)"),
    ),
    *_patterns(
        "work",
        (
            "employer",
            "{x}",
            r"\bI<OFTEN> work<OFTEN>(?: as [\w -]{1,40}?)? (?:at|for) (?P<x><PLACE>)",
        ),
        (
            "employer",
            "{x}",
            r"<I AM> (?:working|employed)(?: as [\w -]{1,40}?)? (?:at|for|by) (?P<x><PLACE>)",
        ),
        ("employer", "{x}", r"\b(?:I've|I have|I)<OFTEN> joined (?P<x><PLACE>)"),
        (
            "employer",
            "{x}",
            r"\b(?:I've|I have|I)<OFTEN> started(?: working| a new job| a job)? (?:at|for) "
            r"(?P<x><PLACE>)",
        ),
        ("employer", "{x}", r"<MY> (?:new )?(?:employer|company) is(?: called)? (?P<x><PLACE>)"),
        (
            "employer",
            "{x}",
            r"\b(?:I'm|I am)<OFTEN> (?:an?|the) <ROLE> (?:at|for|of) (?P<x><PLACE>)",
        ),
        ("place", "{x}", r"\bI<OFTEN> work<OFTEN> in (?P<x><PLACE>)"),
        (
            "role",
            "{x}",
            r"\b(?:I<OFTEN> work|I'm<OFTEN> working|I am<OFTEN> working)<OFTEN>"
            r"(?: (?:at|for) [\w -]{1,40}?)? as (?:an? |the )?(?P<x><ROLE>)",
        ),
        (
            "role",
            "{x}",
            r"\b(?:I'm|I am)<OFTEN> (?:an?|the) (?P<x><ROLE>)"
            r"(?=\s*(?:[.,;!]|$)|\s+(?:at|for|in|by|from|and|but|who|with|working|of)\b)",
        ),
        ("role", "{x}", r"\bmy (?:job(?: title)?|role|profession) is (?:an? |the )?(?P<x><ROLE>)"),
        (
            "studies",
            "{x}",
            r"(?:\bI<OFTEN> study|<I AM> (?:studying|majoring in)|\bmy major is) (?P<x><THING>)",
        ),
    ),
    *_patterns(
        "family",
        (
            "status",
            "{x}",
            r"\b(?:I'm|I am)<OFTEN> (?P<x>married|single|divorced|engaged|widowed)"
            r"(?=\s*(?:[.,;!]|$)|\s+(?:and|but|with|to|now)\b)",
        ),
        ("spouse", "{x}", r"\b(?:I'm|I am)<OFTEN> married to (?P<x><NAME>)"),
        (
            "{who}",
            "{x}",
            r"<MY> (?:(?:younger|older|elder|little|big|twin|late|eldest|youngest) )?"
            r"(?P<who><RELATIVE>)<CALLED> (?P<x><NAME>)",
        ),
        ("{who}", "{x}", r"\b(?:I|we) have an? (?:\w+ )?(?P<who><RELATIVE>)<CALLED> (?P<x><NAME>)"),
        (
            "{who}",
            "{count} {who}",
            r"<I HAVE> (?P<count><COUNT>) (?:\w+ )?(?P<who><CHILDREN>)<END>",
        ),
    ),
    *_patterns(
        "pets",
        ("{pet}", "{x}", r"<MY> (?:\w+ )?(?P<pet><ANIMAL>)<CALLED> (?P<x><NAME>)"),
        (
            "{pet}",
            "{x}",
            r"<I HAVE>(?: adopted| own)? (?:an?|one) (?:\w+ ){0,2}?(?P<pet><ANIMAL>)<CALLED> "
            r"(?P<x><NAME>)",
        ),
        (
            "{pet}",
            "{count} {pets}",
            r"<I HAVE>(?: adopted| own)? (?P<count><COUNT>) (?:\w+ )?"
            r"(?P<pets>(?P<pet><ANIMAL>)(?:e?s)?)<END>",
        ),
    ),
    *_patterns(
        "allergies",
        ("{x}", "allergic", r"\b(?:I'm|I am)<OFTEN> allergic to (?P<each><THINGS>)"),
        ("{x}", "allergic", r"\bI<OFTEN> have an? (?:\w+ )?allergy to (?P<each><THINGS>)"),
        ("{x}", "allergic", r"\bI<OFTEN> have an? (?:severe |bad |mild )?(?P<x>[\w-]+) allergy\b"),
    ),
    *_patterns(
        "diet",
        ("diet", "{x}", r"\b(?:I'm|I am)<OFTEN> (?:an? )?(?:strict )?(?P<x><DIET>)<END>"),
    ),
    *_patterns(
        "languages",
        ("{x}", "native", r"\bmy (?:native|mother|first) (?:language|tongue) is (?P<x><LANGUAGE>)"),
        ("{x}", "native", r"\bI(?:'m| am) a native (?P<x><LANGUAGE>) speaker\b"),
        ("{x}", "learning", r"<I AM> learning (?P<x><LANGUAGE>)"),
        (
            "{x}",
            "speaks",
            r"\b(?:I<OFTEN>(?: can)? speak|I(?:'m| am) fluent in) (?P<each><LANGUAGES>)",
        ),
    ),
    *_patterns(
        "preferences",
        ("{x}", "likes", r"<I> (?:like|love|enjoy|adore)<OFTEN> (?P<each><THINGS>)"),
        (
            "{x}",
            "prefers",
            r"<I> prefer (?P<x>[\w+#-]+(?: [\w+#-]+){0,3}?)"
            r"(?=\s+(?:to|over|rather|when|for|and|but|because)\b|\s*(?:[.,;!]|$))",
        ),
        (
            "{x}",
            "dislikes",
            r"<I> (?:hate|dislike|detest|loathe|can't stand|cannot stand"
            r"|(?:don't|do not)<OFTEN> (?:like|enjoy|eat|drink))<OFTEN> (?P<each><THINGS>)",
        ),
        (
            "favourite {what}",
            "{x}",
            r"\bmy favou?rite (?P<what>\w+(?: \w+)?) (?:is|are) (?P<x><THING>)",
        ),
        ("{x}", "hobby", r"\bmy hobb(?:y is|ies are) (?P<each><THINGS>)"),
    ),
    *_patterns(
        "projects",
        (
            "{x}",
            "{doing}",
            r"<I AM> (?P<doing>working on|building|writing|developing|designing) "
            r"(?:an? |my |our )?(?P<x><THING>)",
        ),
        (
            "{x}",
            "its name",
            r"\bmy (?:(?:current|side|new|main) )?project is (?:called|named) (?P<x><NAME>)",
        ),
    ),
)
