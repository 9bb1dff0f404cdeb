"""Conversations in words of no dialect: what is asked, and what an answer must hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Role = Literal["system", "developer", "user", "assistant"]

CHAT, MESSAGES, GRPC, RESPONSES = "chat", "messages", "gRPC", "responses"
GOOGLE = "google"
ENDPOINTS = (CHAT, MESSAGES, GRPC)


@dataclass(frozen=True)
class Text:
    """A text; `marked` for the provider's cache."""

    text: str
    marked: bool = False


@dataclass(frozen=True)
class Image:
    """A picture by value."""

    data: bytes
    mime_type: str = "image/png"
    detail: str = ""


@dataclass(frozen=True)
class Document:
    """A document by value."""

    data: bytes
    mime_type: str
    name: str


@dataclass(frozen=True)
class Audio:
    """A recording by value, in WAV."""

    data: bytes


@dataclass(frozen=True)
class Thought:
    """A model's thinking; redacted if there is no text."""

    text: str
    signature: str = ""


@dataclass(frozen=True)
class Call:
    """A call of a tool; `arguments` is JSON text, or what a model wrote in its place."""

    id: str
    name: str
    arguments: str = "{}"


@dataclass(frozen=True)
class Result:
    """The result of a tool."""

    id: str
    parts: Sequence[Text | Image] = ()
    is_error: bool = False


@dataclass(frozen=True)
class Refused:
    """A model's refusal in an earlier turn."""

    text: str


Part = Text | Image | Document | Audio | Thought | Call | Result | Refused


@dataclass(frozen=True)
class Turn:
    """One speaker's turn.

    Attributes:
        name: of the participant, as OpenAI's dialect has it.
        own: fields of the message that only its dialect has.
    """

    role: Role
    parts: Sequence[Part]
    name: str = ""
    own: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """A tool; `strict` None says nothing about it."""

    name: str
    schema: Mapping[str, Any]
    description: str = "Does it."
    strict: bool | None = None
    marked: bool = False


@dataclass(frozen=True)
class Refusal:
    """An expected refusal: the upstreams that refuse, and the field that each endpoint names.

    Attributes:
        by: the upstreams.
        paths: the field's path by endpoint, or a word of the refusal where that names none; at
            the other endpoints it is answered.
    """

    by: frozenset[str]
    paths: Mapping[str, str]


@dataclass(frozen=True)
class Conversation:
    """One request, and what must come of it at every endpoint and upstream.

    Attributes:
        options: what is asked beside the turns, by names of `options.OPTIONS`.
        tools: tools that are offered.
        choice: auto, any, none, or the name of a tool; "" where nothing is said.
        own: fields of a request that only its dialect has, by endpoint.
        endpoints: those that have words for it; which conversations responses have words for,
            their module tells.
        model: the sandbox's model.
        says: what the answer's text holds.
        calls: the tools that are called, in order.
        finish: why the answer ends: end, stop, length, calls or refusal.
        refusals: where it is refused instead.
        results: what each call of the answer is then answered with; the answer to that
            holds it. Empty where the conversation ends with the first answer.
        any_answer: the answer's text and end are the provider's affair.
    """

    name: str
    turns: Sequence[Turn]
    options: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[Tool] = ()
    choice: str = ""
    own: Mapping[str, Json] = field(default_factory=dict)
    endpoints: Sequence[str] = ENDPOINTS
    says: str = ""
    calls: Sequence[str] = ()
    finish: str = "end"
    refusals: Sequence[Refusal] = ()
    results: str = ""
    any_answer: bool = False

    def refusal(self, endpoint: str, upstream: str) -> str:
        """Return the path of the field that must be refused, or ""."""
        for refusal in self.refusals:
            if upstream in refusal.by and endpoint in refusal.paths:
                return refusal.paths[endpoint]
        return ""


def system(*parts: str | Part) -> Turn:
    return Turn("system", _parts(parts))


def user(*parts: str | Part, name: str = "", **own: Any) -> Turn:
    return Turn("user", _parts(parts), name, own)


def assistant(*parts: str | Part, **own: Any) -> Turn:
    return Turn("assistant", _parts(parts), "", own)


def result(call_id: str, *parts: str | Text | Image, is_error: bool = False) -> Result:
    contents = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Result(call_id, contents, is_error)


def _parts(parts: Sequence[str | Part]) -> tuple[Part, ...]:
    return tuple(Text(part) if isinstance(part, str) else part for part in parts)


@dataclass(frozen=True)
class Called:
    """A call in an answer; `arguments` as canonical JSON where they are JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Answer:
    """The content of an answer, whichever endpoint gave it and however.

    Attributes:
        finish: as of `Conversation`; at the chat endpoint `stop` is `end` too.
        usage: tokens read and written.
        message: what goes back in the next turn, in the endpoint's own form.
    """

    text: str
    refusal: str
    thoughts: str
    calls: tuple[Called, ...]
    finish: str
    stop_sequence: str
    usage: tuple[int, int]
    message: Any = field(compare=False, default=None)


@dataclass(frozen=True)
class Failure:
    """A refusal: the field's path, and the words."""

    status: int
    path: str
    words: str
