"""Extractive summaries: the most informative sentences of a conversation, without a model. Pure.

A summary has a line for each selected sentence, with its speaker. Names, numbers, decisions and
statements of users about themselves add to the weight of a sentence; greetings, questions and
offers of help lower it. A line is weighed by its text alone, so that the lines of an earlier
summary, a model's or an extractive one, compete with new ones, and the same text always gives the
same summary.
"""

import re
from collections.abc import Iterable, Iterator
from heapq import nlargest
from itertools import islice
from typing import NamedTuple

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message
from services.common.messages.summary_prompt import MAX_TOKENS
from services.common.text.tokens import estimate_tokens
from services.memory.profile import rules
from services.memory.profile.sentences import split_sentences, strip_non_prose
from services.memory.storage.messages import media_placeholder

# The fraction of a summary, one third, that is reserved for new lines.
_NEW_SHARE = 3
_MAX_LINE = 240  # characters
# Sentences of one message that can be selected.
_OF_USER, _OF_ASSISTANT = 8, 4
# Sentences of one message that are weighed.
_MOST_WEIGHED = 1_000

_USER, _ASSISTANT = "User", "Assistant"
_SPOKEN = re.compile(rf"({_USER}|{_ASSISTANT}): ")
_NUMBER = re.compile(r"\d")
# A capitalized word within a sentence, which is probably a name.
_NAME = re.compile(r"(?<![.!?:…] )(?<=[\w,;)] )(?!I\b)[A-ZÀ-ÞА-Я][\w'\u2019-]*")
_OWN = re.compile(r"\b(?:I|I'm|I'll|I've|I'd|me|my|mine|we|we're|we'll|we've|our|us)\b", re.I)
_INFORMATIVE = re.compile(
    r"\b(?:decid\w+|decision|agree\w*|must|will|won't|need\w*|want\w*|prefer\w*|plan\w*|deadline"
    r"|due|always|never|remember|important|because|cho(?:ose|se|ice)|instead|actually|name[ds]?"
    r"|call(?:ed)?|allerg\w+|born|live[sd]?|work[sed]*|moved|budget|cost[s]?|birthday|until|by)\b",
    re.I,
)
_CHATTER = re.compile(
    r"(?:hi|hello|hey|thanks?|thank you|ok(?:ay)?|sure|great|cool|nice|perfect|yes|no|yep|please"
    r"|good (?:morning|evening|question)|you're welcome|of course|certainly|absolutely|let me know"
    r"|i hope (?:this|that)|feel free|is there anything|here(?:'s| is| are)|i'd be happy"
    r"|happy to)\b",
    re.I,
)
_WORD = re.compile(r"\w+")


class _Line(NamedTuple):
    place: int
    text: str
    weight: float


def extend_summary(before: str, messages: Iterable[Message], max_tokens: int = MAX_TOKENS) -> str:
    """Return a summary of an earlier summary and the messages that followed.

    Args:
        before: the earlier summary, or "".
        messages: the messages since, oldest first.
        max_tokens: maximum size of the summary.

    Returns:
        The lines, oldest first; empty only when there is no text at all.
    """
    earlier = _weigh(dict.fromkeys(filter(None, map(str.strip, before.splitlines()))))
    sentences = dict.fromkeys(line for message in messages for line in _lines(message))
    earlier_texts = {line.text for line in earlier}
    new = [line for line in _weigh(sentences, first=len(earlier)) if line.text not in earlier_texts]
    sizes = {line.text: estimate_tokens(line.text) + 1 for line in (*earlier, *new)}
    informative = [line for line in new if line.weight > 0] or nlargest(1, new, key=_rank)
    wanted_tokens = sum(sizes[line.text] for line in informative)
    reserved = min(wanted_tokens, max_tokens // _NEW_SHARE)
    chosen, tokens_left = _select_best(earlier, sizes, max_tokens - reserved)
    added, _ = _select_best(informative, sizes, reserved + tokens_left)
    return "\n".join(line.text for line in sorted((*chosen, *added)))


def _lines(message: Message) -> list[str]:
    """Return the most informative sentences of a message, with their speaker."""
    is_user = message.role == conversation_pb2.ROLE_USER
    speaker, most = (_USER, _OF_USER) if is_user else (_ASSISTANT, _OF_ASSISTANT)
    sentences = (one for block in message.blocks for one in _sentences_of(block))
    spoken = [f"{speaker}: {one}" for one in islice(sentences, _MOST_WEIGHED)]
    best = nlargest(most, _weigh(spoken), key=_rank)
    return [line.text.removeprefix("- ") for line in sorted(best)]


def _sentences_of(block: Block) -> Iterator[str]:
    match block.WhichOneof("kind"):
        case "text":
            yield from split_sentences(strip_non_prose(block.text))
        case "refusal":
            yield from split_sentences(strip_non_prose(block.refusal))
        case "media":
            yield media_placeholder(block.media).text


def _weigh(texts: Iterable[str], first: int = 0) -> list[_Line]:
    return [_Line(place, _to_line(text), _weight(text)) for place, text in enumerate(texts, first)]


def _to_line(text: str) -> str:
    text = text if text.startswith("- ") else f"- {text}"
    return text if len(text) <= _MAX_LINE else text[: _MAX_LINE - 1].rstrip() + "…"


def _weight(line: str) -> float:
    """Return the weight of a line; lines of 0 or less are not worth keeping."""
    text = line.removeprefix("- ")
    spoken = _SPOKEN.match(text)
    speaker = spoken[1] if spoken else ""
    text = text[spoken.end() :] if spoken else text
    # A line without a speaker comes from a model's summary, and was worth keeping.
    weight = {_USER: 1.0, _ASSISTANT: 0.0}.get(speaker, 2.0)
    if speaker == _USER:
        # A statement that yields a fact for the profile stays relevant.
        weight += 4.0 if rules.extract(text) else 1.5 if _OWN.search(text) else 0.0
    weight += min(len(_NUMBER.findall(text)), 1)
    weight += min(len(_NAME.findall(text)) * 0.5, 1.5)
    weight += min(len(_INFORMATIVE.findall(text)) * 0.75, 1.5)
    if text.endswith(("?", "\uff1f")):
        weight -= 3.0
    if _CHATTER.match(text):
        weight -= 1.5
    if len(_WORD.findall(text)) < 3 and text.isascii():
        weight -= 2.0
    return weight


def _rank(line: _Line) -> tuple[float, int]:
    # Of two equal weights the later line wins.
    return line.weight, line.place


def _select_best(lines: list[_Line], sizes: dict[str, int], tokens: int) -> tuple[list[_Line], int]:
    """Return the lines with the highest weights that fit, and the tokens that are left."""
    chosen = []
    for line in sorted(lines, key=_rank, reverse=True):
        if sizes[line.text] <= tokens:
            chosen.append(line)
            tokens -= sizes[line.text]
    return chosen, tokens
