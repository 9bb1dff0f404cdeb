"""Whole chat completions that are passed through unchanged, or read at once. Pure.

Only answers whose translation would change nothing significant: text only, with the values that
`events` and the facade would produce. Everything that either of them renames, drops or adds is
translated, and so is everything unknown. Three differences are ignored: nulls, an empty list of
annotations, and usage details that are zero or missing.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, DecodeError, Meta, Struct, UnsetType
from msgspec.json import Decoder

from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Opaque, Usage
from gateway.inference.v1.inference_pb2 import Event
from services.common.passed_answer import PassedAnswer, TokenCounts
from services.inference.providers.bounds import MAX_TOKENS, dump, name_of
from services.inference.providers.openai import unnamed
from services.inference.providers.openai.events import REASONS
from services.inference.providers.openai.usage import set_unnamed
from services.inference.providers.request_fields import Json

_ID = "chatcmpl-"
# Others have another word for callers, or none.
_REASONS = ("stop", "length", "content_filter")
# What translating gives back of each object; of the answer itself it gives back all.
_OF_CHOICES = frozenset({"index", "message", "logprobs", "finish_reason"})
_OF_MESSAGES = frozenset({"role", "content", "refusal", "annotations"})
_OF_USAGE = frozenset(
    {
        *("prompt_tokens", "completion_tokens", "total_tokens"),
        *("prompt_tokens_details", "completion_tokens_details"),
    }
)


class _PromptDetails(Struct, gc=False):
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    audio_tokens: int | None = None


class _CompletionDetails(Struct, gc=False):
    reasoning_tokens: int = 0


class _Usage(Struct, forbid_unknown_fields=True, gc=False):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class _Message(Struct, forbid_unknown_fields=True, gc=False):
    role: Literal["assistant"]
    content: str
    refusal: None
    annotations: Annotated[list[Any], Meta(max_length=0)] | None = None


class _Choice(Struct, forbid_unknown_fields=True, gc=False):
    index: int
    message: _Message
    logprobs: None
    finish_reason: Literal["stop", "length", "content_filter"]


class _Answer(Struct, gc=False):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: Annotated[str, Meta(min_length=1)]
    choices: list[_Choice]
    usage: _Usage
    error: None = None
    obfuscation: UnsetType = UNSET


_ANSWER = Decoder(_Answer)


def passed_answer(body: bytes, n: int) -> PassedAnswer | None:
    """Return a whole answer that is passed through, None if it has to be looked at further.

    Most are found by this one scan of their JSON; `passthrough` finds the others.

    Args:
        body: the response.
        n: number of requested choices.
    """
    try:
        answer = _ANSWER.decode(body)
        # Strings that are not built are not checked to be UTF-8.
        if not body.isascii():
            body.decode()
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    choices = answer.choices
    if not answer.id.startswith(_ID) or len(choices) != n:
        return None
    if n == 1:
        if choices[0].index != 0:
            return None
    elif [choice.index for choice in choices] != list(range(n)):
        return None
    counts = _counts(answer.usage)
    return None if counts is None else PassedAnswer(body, counts)


def _counts(told: _Usage) -> TokenCounts | None:
    """Return token counts, None if translation would change them."""
    prompt, completion = told.prompt_tokens, told.completion_tokens
    read = written = reasoning = 0
    if (of_prompt := told.prompt_tokens_details) is not None:
        if of_prompt.audio_tokens:
            return None  # they have a price of their own
        read, written = of_prompt.cached_tokens, of_prompt.cache_write_tokens
    if (of_completion := told.completion_tokens_details) is not None:
        reasoning = of_completion.reasoning_tokens
    if (
        prompt + completion == told.total_tokens < MAX_TOKENS
        and 0 <= read
        and 0 <= written
        and read + written <= prompt
        and 0 <= completion
        and 0 <= reasoning < MAX_TOKENS
    ):
        return TokenCounts(prompt - read - written, completion, read, written, reasoning)
    return None


def passthrough(body: bytes, answer: Json, n: int) -> PassedAnswer | None:
    """Return a whole answer that is passed through, or None if it must be translated.

    Args:
        body: the unparsed response.
        answer: the parsed body, not an error.
        n: number of requested choices.
    """
    event = _read(answer, n)
    if event is None:
        return None
    told = answer["usage"]
    if (told.get("prompt_tokens_details") or {}).get("audio_tokens"):
        # They have a price of their own.
        try:
            set_unnamed(event.whole.usage, told)
        except ValueError:
            return None
    return PassedAnswer(body, event.whole.usage)


def whole_of_texts(answer: Json, n: int) -> Event | None:
    """Return an answer that could be passed through as its translation in one event.

    None if it must be translated a part at a time; arguments are those of `passthrough`.
    """
    event = _read(answer, n)
    if event is None:
        return None
    whole = event.whole
    try:
        whole.id, whole.model = name_of(answer["id"]), name_of(answer["model"])
        if not answer.keys() <= unnamed.OF_ANSWERS:
            _set_unnamed(whole.extra, answer)
        set_unnamed(whole.usage, answer["usage"])
    except ValueError:
        return None
    for given in answer["choices"]:
        choice = whole.choices.add()
        if text := given["message"]["content"]:
            choice.blocks.add(text=text)
        choice.finish.reason = REASONS[given["finish_reason"]]
    return event


def _set_unnamed(extra: Opaque, answer: Json) -> None:
    rest = {
        name: value
        for name, value in answer.items()
        if name not in unnamed.OF_ANSWERS and value is not None
    }
    if rest:
        extra.json = dump(rest)
        extra.dialect = DIALECT_OPENAI


def _read(answer: Json, n: int) -> Event | None:
    """Return an event with the usage of an answer that could be passed through, else None."""
    choices = answer.get("choices")
    if not (_has_usual_head(answer) and isinstance(choices, list) and len(choices) == n):
        return None
    for number, choice in enumerate(choices):
        if not _is_plain(choice, number):
            return None
    event = Event()
    if not _read_usage(answer.get("usage"), event.whole.usage):
        return None
    return event


def _has_usual_head(answer: Json) -> bool:
    name, model = answer.get("id"), answer.get("model")
    return (
        isinstance(name, str)
        and name.startswith(_ID)
        and isinstance(model, str)
        and model != ""
        and answer.get("object") == "chat.completion"
        and type(answer.get("created")) is int
        and "obfuscation" not in answer
    )


def _is_plain(choice: Any, number: int) -> bool:
    if not isinstance(choice, dict):
        return False
    index, message = choice.get("index"), choice.get("message")
    return (
        type(index) is int
        and index == number
        and choice.get("finish_reason") in _REASONS
        and choice.get("logprobs", 0) is None  # null, and not missing
        and _says_nothing_beside(choice, _OF_CHOICES)
        and isinstance(message, dict)
        and message.get("role") == "assistant"
        and isinstance(message.get("content"), str)
        and message.get("refusal", 0) is None
        and message.get("annotations") in (None, [])
        and _says_nothing_beside(message, _OF_MESSAGES)
    )


def _says_nothing_beside(fields: Json, named: frozenset[str]) -> bool:
    return fields.keys() <= named or all(
        value is None for name, value in fields.items() if name not in named
    )


def _read_usage(told: Any, usage: Usage) -> bool:
    """Read token counts; return whether translation would not change them."""
    if not (isinstance(told, dict) and _says_nothing_beside(told, _OF_USAGE)):
        return False
    prompt, completion = told.get("prompt_tokens"), told.get("completion_tokens")
    total: Any = told.get("total_tokens")
    read: Any = 0
    written: Any = 0
    reasoning: Any = 0
    details = told.get("prompt_tokens_details")
    if details is not None:
        if not isinstance(details, dict):
            return False
        read, written = details.get("cached_tokens", 0), details.get("cache_write_tokens", 0)
    details = told.get("completion_tokens_details")
    if details is not None:
        if not isinstance(details, dict):
            return False
        reasoning = details.get("reasoning_tokens", 0)
    if not (
        type(prompt) is type(completion) is type(total) is int
        and type(read) is type(written) is type(reasoning) is int
        and prompt + completion == total < MAX_TOKENS
        and 0 <= read
        and 0 <= written
        and read + written <= prompt
        and 0 <= completion
        and 0 <= reasoning < MAX_TOKENS
    ):
        return False
    usage.input_tokens = prompt - read - written
    usage.output_tokens = completion
    if read or written or reasoning:
        usage.cache_creation_input_tokens = written
        usage.cache_read_input_tokens = read
        usage.reasoning_tokens = reasoning
    return True
