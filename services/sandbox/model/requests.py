"""The words the sandbox thinks in: what it is asked, and what it answers.

Every dialect is read into a `Prompt` and written from an `Answer`, so that one
question gets one answer whichever way it came. Sizes are in tokens of the
sandbox's own making: four characters read are one, and so is each piece that
`tokens` cuts a written text into.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import dropwhile, takewhile
from typing import Any, Literal

import orjson

MediumKind = Literal["image", "document", "audio", "video"]

_CHARACTERS_A_TOKEN = 4
_TOKENS_A_MEDIUM = 256
_TOKEN = re.compile(r"\s*\S{1,8}|\s+")


@dataclass(frozen=True, slots=True)
class Medium:
    """An image, document, recording or film.

    Attributes:
        kind: what it is.
        mime_type: as the caller gave it, or "".
        data: the bytes, or None where it was given by reference.
        reference: the address or file id, or "".
        name: file name or title, or "".
    """

    kind: MediumKind
    mime_type: str = ""
    data: bytes | None = None
    reference: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that may be called; `schema` is the JSON Schema of its input."""

    name: str
    schema: Mapping[str, Any]
    description: str = ""
    freeform: bool = False


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which calls are wanted; `name` goes with `tool`."""

    mode: Literal["auto", "any", "none", "tool"] = "auto"
    name: str = ""
    parallel: bool = True


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered."""

    call_id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One message, or the part of it that is of a kind.

    Attributes:
        role: who speaks.
        texts: its texts, in order; thinking is not among them.
        media: its media, those of tool results included.
        results: results of tools.
        other_characters: length of what is counted but not answered to (calls, thinking).
    """

    role: Literal["system", "user", "assistant"]
    texts: tuple[str, ...] = ()
    media: tuple[Medium, ...] = ()
    results: tuple[ToolResult, ...] = ()
    other_characters: int = 0


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the sandbox is asked.

    Attributes:
        turns: the conversation; an assistant's turn at the end is a prefill.
        schema: JSON Schema the answer must match, or None.
        json_object: whether the answer must be some JSON object.
        max_tokens: bound on the tokens written, or None for the model's own.
        cache_marks: whether a part is marked for the provider's cache.
        top_logprobs: alternatives wanted for each token, or None for no log probabilities.
    """

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    json_object: bool = False
    max_tokens: int | None = None
    thinking: bool = False
    cache_marks: bool = False
    top_logprobs: int | None = None
    n: int = 1

    @property
    def prefill(self) -> str:
        """What the answer is to continue, or ""."""
        trailing = takewhile(lambda turn: turn.role == "assistant", reversed(self.turns))
        return "".join(text for turn in reversed(list(trailing)) for text in turn.texts)

    def asked(self) -> list[Turn]:
        """Return the user's turns that wait for an answer, in order."""
        before_prefill = dropwhile(lambda turn: turn.role == "assistant", reversed(self.turns))
        asked = takewhile(lambda turn: turn.role != "assistant", before_prefill)
        return [turn for turn in asked if turn.role == "user"][::-1]

    def input_tokens(self) -> int:
        """Count what is read; it does not matter how texts are cut into messages."""
        read = media = 0
        for turn in self.turns:
            read += sum(map(len, turn.texts)) + turn.other_characters
            read += sum(len(result.text) for result in turn.results)
            media += len(turn.media)
        for tool in self.tools:
            read += len(tool.name) + len(tool.description) + characters(tool.schema)
        if self.schema is not None:
            read += characters(self.schema)
        return -(-read // _CHARACTERS_A_TOKEN) + media * _TOKENS_A_MEDIUM


def characters(value: object) -> int:
    """Measure a JSON value without regard to how it was spaced."""
    total = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            total += sum(len(str(key)) for key in item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        else:
            total += len(str(item))
    return total


def call_characters(name: str, written: str) -> int:
    """Measure a call of a tool, whose input is JSON text or free text."""
    try:
        return len(name) + characters(orjson.loads(written))
    except orjson.JSONDecodeError:
        return len(name) + len(written)


def tokens(text: str) -> list[str]:
    """Cut a text into tokens; joined they are the text."""
    return _TOKEN.findall(text)


class Finish(Enum):
    """Why an answer ended."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer: text, or a refusal in words."""

    text: str
    refusal: bool = False


@dataclass(frozen=True, slots=True)
class Thinking:
    """A piece of the answer: thoughts, which are hidden when `redacted`."""

    text: str
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A piece of the answer: a call of a tool.

    Attributes:
        key: tells it from the other calls of the conversation; dialects put a prefix before it.
        name: the tool.
        input: JSON text of an object, or free text when `freeform`.
    """

    key: str
    name: str
    input: str
    freeform: bool = False


Piece = Text | Thinking | Call


@dataclass(frozen=True, slots=True)
class Reply:
    """One of the answers to one prompt; `stop_sequence` goes with its finish."""

    pieces: tuple[Piece, ...]
    finish: Finish
    stop_sequence: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens; `input` leaves out what the cache took or gave, `output` covers `reasoning`."""

    input: int
    output: int
    cache_creation: int = 0
    cache_read: int = 0
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        """All that was read."""
        return self.input + self.cache_creation + self.cache_read


@dataclass(frozen=True, slots=True)
class Answer:
    """What the sandbox answers: a reply for each choice that was asked for."""

    replies: tuple[Reply, ...]
    usage: Usage
    top_logprobs: int | None = None
