"""Whole chat completions that are passed through unchanged, or read in one step. Pure.

Only answers that translation would not change significantly: text only, with the values that
`events` and the facade would produce. An answer is translated if it contains anything unknown, or
anything that either of them renames, drops or adds. Three differences are ignored: nulls, an empty
list of annotations, and usage details that are zero or missing.
"""

from typing import Annotated, Any, Literal

import orjson
from msgspec import UNSET, DecodeError, Meta, Struct, UnsetType
from msgspec.json import Decoder

from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Usage
from gateway.inference.v1.inference_pb2 import Event, GenerateResponse
from services.common.messages.passthrough_answer import PassthroughAnswer, TokenCounts
from services.common.messages.plain_answer import PlainAnswer, PlainChoice
from services.inference.providers.bounds import MAX_NAME, MAX_TOKENS, dump
from services.inference.providers.finish_reasons import OPENAI_REASONS
from services.inference.providers.opaque_json import Json
from services.inference.providers.openai.answer_fields import KNOWN_ANSWER_FIELDS, add_unknown_usage

_ID = "chatcmpl-"


class _PromptDetails(Struct, gc=False):
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    # Billed at prices of their own.
    audio_tokens: int | None = None
    image_tokens: int | None = None


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
    # Fields of various servers; null means absent.
    tool_calls: None = None
    function_call: None = None
    audio: None = None
    reasoning: None = None
    reasoning_content: None = None


class _Choice(Struct, forbid_unknown_fields=True, gc=False):
    index: int
    message: _Message
    logprobs: None
    # Other reasons are renamed in translation, or have no counterpart.
    finish_reason: Literal["stop", "length", "content_filter"]
    stop_reason: None = None
    content_filter_results: None = None
    token_ids: None = None


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


def passthrough_answer(body: bytes, n: int) -> PassthroughAnswer | None:
    """Return a whole answer to pass through, None if it must be translated.

    Args:
        body: the response.
        n: number of requested choices.
    """
    read = _read(body, n)
    return None if read is None else PassthroughAnswer(body, read[1])


def plain_answer(body: bytes, n: int) -> PlainAnswer | None:
    """Return a plain answer for a caller of another dialect.

    None if it must be translated; arguments as for `passthrough_answer`.
    """
    read = _read(body, n)
    if read is None:
        return None
    answer, usage = read
    if len(answer.id) > MAX_NAME or len(answer.model) > MAX_NAME:
        return None
    choices = []
    for choice in answer.choices:
        text = choice.message.content
        if not text:
            return None
        choices.append(PlainChoice(text, OPENAI_REASONS[choice.finish_reason]))
    return PlainAnswer(answer.id, answer.model, choices, usage)


def whole_of_texts(body: bytes, answer: Json, n: int) -> Event | None:
    """Return the translation of a plain answer as one event, None if it takes several.

    Args:
        body: the response.
        answer: the parsed body.
        n: number of requested choices.
    """
    plain = plain_answer(body, n)
    if plain is None:
        return None
    whole = plain.response()
    try:
        _add_unknown_fields(whole, answer)
        add_unknown_usage(whole.usage, answer["usage"])
    except ValueError:
        return None
    return Event(whole=whole)


def _add_unknown_fields(whole: GenerateResponse, answer: Json) -> None:
    unknown_fields = {
        name: value
        for name, value in answer.items()
        if name not in KNOWN_ANSWER_FIELDS and value is not None
    }
    if unknown_fields:
        whole.extra.json = dump(unknown_fields)
        whole.extra.dialect = DIALECT_OPENAI


def _read(body: bytes, n: int) -> tuple[_Answer, TokenCounts | Usage] | None:
    """Return an answer that translation would not change, and its usage; else None."""
    try:
        answer = _ANSWER.decode(body)
        # The decoder does not check that skipped strings are UTF-8.
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
    usage = _usage(answer.usage, body)
    return None if usage is None else (answer, usage)


def _usage(reported: _Usage, body: bytes) -> TokenCounts | Usage | None:
    """Return the usage of an answer, None if translation would change its token counts.

    A `Usage` message if some tokens have prices of their own.
    """
    prompt, completion = reported.prompt_tokens, reported.completion_tokens
    read = written = reasoning = 0
    is_billed_apart = False
    if (of_prompt := reported.prompt_tokens_details) is not None:
        read, written = of_prompt.cached_tokens, of_prompt.cache_write_tokens
        is_billed_apart = bool(of_prompt.audio_tokens or of_prompt.image_tokens)
    if (of_completion := reported.completion_tokens_details) is not None:
        reasoning = of_completion.reasoning_tokens
    if not (
        prompt + completion == reported.total_tokens < MAX_TOKENS
        and 0 <= read
        and 0 <= written
        and read + written <= prompt
        and 0 <= completion
        and 0 <= reasoning < MAX_TOKENS
    ):
        return None
    counts = TokenCounts(prompt - read - written, completion, read, written, reasoning)
    if not is_billed_apart:
        return counts
    usage = counts.message()
    try:
        add_unknown_usage(usage, orjson.loads(body)["usage"])
    except ValueError:
        return None
    return usage
