"""Summaries without a model: of what was said, the sentences that tell most.

A summary is lines, one for each sentence that was kept, with who said it. Names, numbers,
decisions and what users say of themselves make a sentence tell more; greetings, questions
and offers of help tell little. A line is weighed by its text alone, so that the lines of
the summary before, be it a model's or one of these, are weighed with the new ones and the
same text always gives the same summary.
"""

import re
from collections.abc import Iterable, Iterator
from heapq import nlargest
from itertools import islice
from typing import NamedTuple

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message
from services.common.tokens import estimate_tokens
from services.memory.profile import rules
from services.memory.profile.sentences import split_sentences, strip_non_prose
from services.memory.transcript.messages import media_placeholder

MAX_TOKENS = 1_000

# The share of a summary that what is new may take from what was kept before.
_NEW_SHARE = 3
_MAX_LINE = 240  # characters
# Sentences of one message that can be kept.
_OF_USER, _OF_ASSISTANT = 8, 4
# Sentences of one message that are looked at.
_MOST_WEIGHED = 1_000

_USER, _ASSISTANT = "User", "Assistant"
_SPOKEN = re.compile(rf"({_USER}|{_ASSISTANT}): ")
_NUMBER = re.compile(r"\d")
# A capital within a sentence: a name, more likely than not. "I" is none.
_NAME = re.compile(r"(?<![.!?:…] )(?<=[\w,;)] )(?!I\b)[A-ZÀ-ÞА-Я][\w'\u2019-]*")
_OWN = re.compile(r"\b(?:I|I'm|I'll|I've|I'd|me|my|mine|we|we're|we'll|we've|our|us)\b", re.I)
_TELLING = re.compile(
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
    """Return one summary of an earlier summary and the messages that followed.

    Args:
        before: the earlier summary, or "".
        messages: what was said since, oldest first.
        max_tokens: what the summary may come to.

    Returns:
        lines, oldest first; at least one, unless nothing was said at all.
    """
    kept = _weigh(dict.fromkeys(filter(None, map(str.strip, before.splitlines()))))
    said = dict.fromkeys(line for message in messages for line in _lines(message))
    known = {line.text for line in kept}
    new = [line for line in _weigh(said, first=len(kept)) if line.text not in known]
    sizes = {line.text: estimate_tokens(line.text) + 1 for line in (*kept, *new)}
    tells = [line for line in new if line.weight > 0] or nlargest(1, new, key=_rank)
    wanted = sum(sizes[line.text] for line in tells)
    reserved = min(wanted, max_tokens // _NEW_SHARE)
    chosen, rest = _select_best(kept, sizes, max_tokens - reserved)
    added, _ = _select_best(tells, sizes, reserved + rest)
    return "\n".join(line.text for line in sorted((*chosen, *added)))


def _lines(message: Message) -> list[str]:
    """Return the sentences of a message that tell most, with who said them."""
    is_user = message.role == conversation_pb2.ROLE_USER
    speaker, most = (_USER, _OF_USER) if is_user else (_ASSISTANT, _OF_ASSISTANT)
    told = (one for block in message.blocks for one in _sentences_of(block))
    spoken = [f"{speaker}: {one}" for one in islice(told, _MOST_WEIGHED)]
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
    """Return how much a line says; 0 and less is not worth keeping."""
    text = line.removeprefix("- ")
    spoken = _SPOKEN.match(text)
    speaker = spoken[1] if spoken else ""
    text = text[spoken.end() :] if spoken else text
    # What a model's summary says was thought worth keeping before.
    weight = {_USER: 1.0, _ASSISTANT: 0.0}.get(speaker, 2.0)
    if speaker == _USER:
        # What would go into a profile lasts.
        weight += 4.0 if rules.extract(text) else 1.5 if _OWN.search(text) else 0.0
    weight += min(len(_NUMBER.findall(text)), 1)
    weight += min(len(_NAME.findall(text)) * 0.5, 1.5)
    weight += min(len(_TELLING.findall(text)) * 0.75, 1.5)
    if text.endswith(("?", "\uff1f")):
        weight -= 3.0
    if _CHATTER.match(text):
        weight -= 1.5
    if len(_WORD.findall(text)) < 3 and text.isascii():
        weight -= 2.0
    return weight


def _rank(line: _Line) -> tuple[float, int]:
    # Of two that tell as much the later one counts.
    return line.weight, line.place


def _select_best(lines: list[_Line], sizes: dict[str, int], tokens: int) -> tuple[list[_Line], int]:
    """Return the best lines that the tokens allow, and the tokens that are left."""
    chosen = []
    for line in sorted(lines, key=_rank, reverse=True):
        if sizes[line.text] <= tokens:
            chosen.append(line)
            tokens -= sizes[line.text]
    return chosen, tokens
