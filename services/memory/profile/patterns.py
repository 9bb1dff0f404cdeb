"""Patterns of English sentences in which people state facts about themselves. Pure.

A pattern is a regular expression with placeholders such as `<NAME>`. Its groups are inserted into
sub-topic and value of the fact. In a sentence without any capitals, as some people write, a name is
a word or two up to the end of the clause.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
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


# Topic, sub-topic and value of facts, each with the expressions of sentences that state one. A line
# that is indented further continues the one before.
_TABLE = r"""
name / name = {x}
    <MY> (?:(?:full|first|real|new) )?name(?:'s| is)<OFTEN> (?P<x><NAME>)
    \bchanged my name to (?P<x><NAME>)
    ^(?:hi|hello|hey)\b[^.!?]{0,20}?[,.!]? ?\bI(?:'m| am) (?P<x><NAME>)<END>
name / preferred name = {x}
    <I AM> called (?P<x><NAME>)
    (?:^|[,;.!] ?|\b(?:please|just|can|people|friends|everyone|everybody|and|but|so) )
        call me (?P<x><NAME>)
name / pronouns = {x}
    \bmy pronouns are (?P<x>\w+(?:/\w+){1,2})
age / age = {x}
    \b(?:I'm|I am)<OFTEN> (?P<x>\d{1,3}) years? old\b
    \b(?:I'm|I am)<OFTEN> (?P<x>1[3-9]|[2-9]\d)(?=\s*(?:[.,!]|$)|\s+and\b)
    \bI<OFTEN> turned (?P<x>\d{1,3})(?:<END>|(?= (?:last|this|yesterday)\b))
birthday / date = {x}
    \bmy birthday(?:'s| is)(?: on)?(?: the)? (?P<x><DATE>)
    \bI was born(?: on)?(?: the)? (?P<x><DATE>)
birthday / year = {x}
    \bI was born in (?P<x><YEAR>)\b
home / birthplace = {x}
    \bI was born(?: and raised)? in (?P<x><PLACE>)
home / place = {x}
    <I> live<OFTEN> in (?P<x><PLACE>)
    <WE ARE> (?:living|based|residing) in (?P<x><PLACE>)
    <I HAVE> moved<OFTEN>(?: back| over)? to (?P<x><PLACE>)
home / origin = {x}
    \b(?:I'm|I am|I<OFTEN> come)<OFTEN> from (?P<x><PLACE>)
    \bI grew up in (?P<x><PLACE>)
    \bmy home ?town is (?P<x><PLACE>)
work / employer = {x}
    \bI<OFTEN> work<OFTEN>(?: as [\w -]{1,40}?)? (?:at|for) (?P<x><PLACE>)
    <I AM> (?:working|employed)(?: as [\w -]{1,40}?)? (?:at|for|by) (?P<x><PLACE>)
    \b(?:I've|I have|I)<OFTEN> joined (?P<x><PLACE>)
    \b(?:I've|I have|I)<OFTEN> started(?: working| a new job| a job)? (?:at|for) (?P<x><PLACE>)
    <MY> (?:new )?(?:employer|company) is(?: called)? (?P<x><PLACE>)
    \b(?:I'm|I am)<OFTEN> (?:an?|the) <ROLE> (?:at|for|of) (?P<x><PLACE>)
work / place = {x}
    \bI<OFTEN> work<OFTEN> in (?P<x><PLACE>)
work / role = {x}
    \b(?:I<OFTEN> work|I'm<OFTEN> working|I am<OFTEN> working)<OFTEN>
        (?: (?:at|for) [\w -]{1,40}?)? as (?:an? |the )?(?P<x><ROLE>)
    \b(?:I'm|I am)<OFTEN> (?:an?|the) (?P<x><ROLE>)
        (?=\s*(?:[.,;!]|$)|\s+(?:at|for|in|by|from|and|but|who|with|working|of)\b)
    \bmy (?:job(?: title)?|role|profession) is (?:an? |the )?(?P<x><ROLE>)
work / studies = {x}
    (?:\bI<OFTEN> study|<I AM> (?:studying|majoring in)|\bmy major is) (?P<x><THING>)
family / status = {x}
    \b(?:I'm|I am)<OFTEN> (?P<x>married|single|divorced|engaged|widowed)
        (?=\s*(?:[.,;!]|$)|\s+(?:and|but|with|to|now)\b)
family / spouse = {x}
    \b(?:I'm|I am)<OFTEN> married to (?P<x><NAME>)
family / {who} = {x}
    <MY> (?:(?:younger|older|elder|little|big|twin|late|eldest|youngest) )?(?P<who><RELATIVE>)
        <CALLED> (?P<x><NAME>)
    \b(?:I|we) have an? (?:\w+ )?(?P<who><RELATIVE>)<CALLED> (?P<x><NAME>)
family / {who} = {count} {who}
    <I HAVE> (?P<count><COUNT>) (?:\w+ )?(?P<who><CHILDREN>)<END>
pets / {pet} = {x}
    <MY> (?:\w+ )?(?P<pet><ANIMAL>)<CALLED> (?P<x><NAME>)
    <I HAVE>(?: adopted| own)? (?:an?|one) (?:\w+ ){0,2}?(?P<pet><ANIMAL>)<CALLED> (?P<x><NAME>)
pets / {pet} = {count} {pets}
    <I HAVE>(?: adopted| own)? (?P<count><COUNT>) (?:\w+ )?(?P<pets>(?P<pet><ANIMAL>)(?:e?s)?)
        <END>
allergies / {x} = allergic
    \b(?:I'm|I am)<OFTEN> allergic to (?P<each><THINGS>)
    \bI<OFTEN> have an? (?:\w+ )?allergy to (?P<each><THINGS>)
    \bI<OFTEN> have an? (?:severe |bad |mild )?(?P<x>[\w-]+) allergy\b
diet / diet = {x}
    \b(?:I'm|I am)<OFTEN> (?:an? )?(?:strict )?(?P<x><DIET>)<END>
languages / {x} = native
    \bmy (?:native|mother|first) (?:language|tongue) is (?P<x><LANGUAGE>)
    \bI(?:'m| am) a native (?P<x><LANGUAGE>) speaker\b
languages / {x} = learning
    <I AM> learning (?P<x><LANGUAGE>)
languages / {x} = speaks
    \b(?:I<OFTEN>(?: can)? speak|I(?:'m| am) fluent in) (?P<each><LANGUAGES>)
preferences / {x} = likes
    <I> (?:like|love|enjoy|adore)<OFTEN> (?P<each><THINGS>)
preferences / {x} = prefers
    <I> prefer (?P<x>[\w+#-]+(?: [\w+#-]+){0,3}?)
        (?=\s+(?:to|over|rather|when|for|and|but|because)\b|\s*(?:[.,;!]|$))
preferences / {x} = dislikes
    <I> (?:hate|dislike|detest|loathe|can't stand|cannot stand
        |(?:don't|do not)<OFTEN> (?:like|enjoy|eat|drink))<OFTEN> (?P<each><THINGS>)
preferences / favourite {what} = {x}
    \bmy favou?rite (?P<what>\w+(?: \w+)?) (?:is|are) (?P<x><THING>)
preferences / {x} = hobby
    \bmy hobb(?:y is|ies are) (?P<each><THINGS>)
projects / {x} = {doing}
    <I AM> (?P<doing>working on|building|writing|developing|designing) (?:an? |my |our )?
        (?P<x><THING>)
projects / {x} = its name
    \bmy (?:(?:current|side|new|main) )?project is (?:called|named) (?P<x><NAME>)
"""


def _parse(table: str) -> Iterator[Pattern]:
    joined = table.replace("\n        ", "").strip()
    for block in re.split(r"\n(?=\S)", joined):
        heading, *expressions = block.split("\n    ")
        topic, _, sub_topic_and_value = heading.partition(" / ")
        sub_topic, _, value = sub_topic_and_value.partition(" = ")
        for expression in expressions:
            yield Pattern(topic, sub_topic, value, expression)


PATTERNS = tuple(_parse(_TABLE))
