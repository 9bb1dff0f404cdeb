"""Learn which optional fields a model rejects, from its provider's error responses.

No table of models is complete. An optional field is sent to unknown models; if the provider
responds 400 and names the field, the request is repeated without it, and so are later requests to
that model. The same applies to unknown fields of messages, which client libraries send back.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import MediaKind
from gateway.errors.v1 import errors_pb2
from services.common.errors import UpstreamError
from services.inference.circuit_breaker import ModelKey
from services.inference.learned.output_bounds import OutputBounds, bound_in, room_in
from services.inference.learned.refused_paths import (
    TOOL,
    may_leave_out,
    refused_betas,
    refused_keyword,
    refused_paths,
    refused_tool,
    snake,
    steps_of,
)
from services.inference.learned.text_bounds import refused_length

# A final assistant message, which the model would continue.
PREFILL = "prefill"
# Thinking of earlier turns that no provider has signed.
UNSIGNED_THINKING = "unsigned_thinking"
# Thinking of earlier turns, as sent to servers of OpenAI's dialect.
REASONING_CONTENT = "reasoning_content"

# Thinking in any form.
ANY_THINKING = "any_thinking"
# A token budget of thinking, for models that control it by effort.
THINKING_BUDGET = "thinking_budget"
# Thinking in a request that forces a tool call.
THINKING_WITH_FORCED_TOOL = "thinking_with_forced_tool"
# Messages of the model without thinking.
CALLS_WITHOUT_THOUGHTS = "calls_without_thoughts"
# Thinking in its place, for servers that require it; some take an empty text as missing.
NO_THOUGHTS = "…"
# Tool calls without a Gemini thought signature.
UNSIGNED_CALLS = "unsigned_calls"
# A user message directly after a tool result.
USER_AFTER_TOOL = "user_after_tool"
# Tool call ids other than SHORT_ID letters and digits, or longer than some maximum.
LONG_IDS = "long_ids"
SHORT_ID = 9
# The name of a message's author.
MESSAGE_NAME = "messages.name"
# Encrypted thinking in an answer of OpenAI's responses.
ENCRYPTED_REASONING = "encrypted_reasoning"
# Google's `generateContent`, for models that are in its Interactions API alone.
GENERATE_CONTENT = "generate_content"
# Requests usage in a stream, which some servers always send.
STREAM_OPTIONS = "stream_options"

# By providers' names. Fields that change the meaning of an answer (tools, stop sequences, length
# limits) are not included.
_OPTIONAL = (
    *("temperature", "top_p", "top_k", "min_p", "seed"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
    *("reasoning_effort", "reasoning", "thinking", "verbosity", REASONING_CONTENT),
    *("enable_thinking", "chat_template_kwargs"),
    *("user", "safety_identifier", "metadata", "service_tier", "store"),
    *("parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "cache_control"),
    *("prompt_cache_breakpoint", "prompt_cache_options"),
    *("context_management", "inference_geo", "speed", "truncation", STREAM_OPTIONS),
    # Of embeddings: the gateway converts vectors itself.
    "encoding_format",
    # Unknown fields of messages that other providers add to answers.
    *("reasoning_details", "extra_content", "annotations"),
)
# Fields that change the meaning of an answer, with their neutral values; with such a value, a
# rejected field is left out.
DEFAULTS: Mapping[str, Sequence[object]] = {
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "response_format": ({"type": "text"},),
    "tool_choice": ("auto", {"type": "auto"}),
}
# One limit with two names: if one is rejected, the other is sent.
RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

_KNOWN = frozenset((*_OPTIONAL, *RENAMED, *DEFAULTS))
# Names for rejected kinds of media, and the kinds.
MEDIA: Mapping[str, MediaKind.ValueType] = {
    "media.image": conversation_pb2.MEDIA_KIND_IMAGE,
    "media.document": conversation_pb2.MEDIA_KIND_DOCUMENT,
    "media.audio": conversation_pb2.MEDIA_KIND_AUDIO,
}

# All names with a meaning here; a model may reject other body fields too.
NAMES = _KNOWN | {
    *(PREFILL, UNSIGNED_THINKING, ANY_THINKING, THINKING_BUDGET, THINKING_WITH_FORCED_TOOL),
    CALLS_WITHOUT_THOUGHTS,
    *(UNSIGNED_CALLS, USER_AFTER_TOOL, LONG_IDS, MESSAGE_NAME, ENCRYPTED_REASONING),
    GENERATE_CONTENT,
    *MEDIA,
}
# Prefixes of rejected unknown fields of messages, and of their parts or tool calls.
OF_MESSAGES = "messages[]."
OF_BLOCKS = "messages[].content[]."
# Names that change messages without unknown fields.
_OF_CONVERSATIONS = frozenset(
    {CALLS_WITHOUT_THOUGHTS, UNSIGNED_CALLS, USER_AFTER_TOOL, LONG_IDS, MESSAGE_NAME}
)
# Maximum names without a meaning here that are stored per model, as callers can invent them.
_MAX_LEARNT = 40
# Essential fields of a message. A provider that rejects one rejects the message.
_OF_EVERY_MESSAGE = frozenset(
    ("role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio")
)
# Essential fields of a part or call.
_OF_EVERY_BLOCK = frozenset(
    {
        *("type", "text", "refusal", "image_url", "input_audio", "file", "source", "content"),
        *("id", "index", "name", "input", "arguments", "function", "custom", "tool_use_id"),
        *("thinking", "signature", "data", "is_error"),
    }
)
# Objects in a part of a message whose unknown fields are removed from the body.
_INNER = frozenset(("source", "image_url", "input_audio", "file", "citations", "caller"))
# Fields of the other conversations that are essential.
_OF_EVERY_ITEM = _OF_EVERY_MESSAGE | _OF_EVERY_BLOCK | {"call_id", "output", "parts", "summary"}
_NAMES = re.compile(rf"\b(?:{'|'.join(sorted(_KNOWN, key=len, reverse=True))})\b")
# Such as "Thinking level MINIMAL is not supported for this model."
_GOOGLES_THINKING = re.compile(
    r"Thinking (?:level|budget|is)\b|\bthinking is not supported\b"
    r"|thinking_(?:level|budget|config)\b"
)
# Such as "Penalty is not enabled for models/gemini-2.0-flash-lite".
_GOOGLES_PENALTY = re.compile(r"\bPenalty is not (?:enabled|supported)\b")
_PENALTIES = ["presence_penalty", "frequency_penalty"]
_CODES = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})
_WORDS = re.compile(
    r"unsupported|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields)|deprecated"
    r"|(?:not|n't|never) (?:be )?(?:supported|support|permitted|allowed|accept|compatible|enabled)"
    # Moonshot: "invalid temperature: only 1 is allowed for this model"
    r"|cannot both|may only|only [\d.]{1,8} is allowed for",
    re.IGNORECASE,
)
# Rejections that do not name a field.
_SHAPES = (
    (
        PREFILL,
        re.compile(
            r"not support (?:assistant message )?prefill|must end with a user message",
            re.IGNORECASE,
        ),
    ),
    (ANY_THINKING, re.compile(r"does not support thinking|think value \S+ is not supported")),
    (THINKING_BUDGET, re.compile(r"thinking\.type\.enabled\W+is not supported")),
    (
        THINKING_WITH_FORCED_TOOL,
        re.compile(
            r"[Tt]hinking\b.{0,80}\btool_choice\b.{0,40}\bforces? tool use"
            r"|tool_choice\b.{0,80}\b(?:incompatible|not (?:supported|compatible|allowed))\b"
            r".{0,40}\bthinking"
        ),
    ),
    (
        CALLS_WITHOUT_THOUGHTS,
        # DeepSeek and MiMo, of each of their APIs; Kimi; and their proxies.
        re.compile(
            r"(?:reasoning_content|\bthinking)\W.{0,200}(?:must|should|need to) be (?:passed|sent)"
            r" back|[Mm]issing (?:required )?(?:field |parameter )?\W?reasoning_content"
            r"|reasoning_content\W{1,3}(?:field )?(?:is|was) (?:missing|required|not provided)"
            r"|(?:must|should) (?:include|have) (?:an? )?(?:non-empty )?\W?reasoning_content"
        ),
    ),
    (UNSIGNED_CALLS, re.compile(r"missing a \W?thought_signature")),
    (MESSAGE_NAME, re.compile(r'"messages", ?\d+, ?"\w+", ?"name"')),
    (USER_AFTER_TOOL, re.compile(r"Unexpected role 'user' after role 'tool'")),
    (
        LONG_IDS,
        re.compile(
            rf"must be a-z, A-Z, 0-9, with a length of {SHORT_ID}\b"
            r"|tool_call(?:s\[\d+\]\.|_)id': string too long"
        ),
    ),
    ("reasoning_effort", re.compile(r"invalid reasoning value")),
    (ENCRYPTED_REASONING, re.compile(r"[Ee]ncrypted content is not supported")),
    (GENERATE_CONTENT, re.compile(r"\b(?:only supports|use) (?:the )?Interactions API")),
)
# Rejections of a value, where another value would be accepted.
_OF_VALUES = re.compile(
    r"\bsupported values (?:are|include)\b|\binvalid reasoning value\b", re.IGNORECASE
)
# Fields that enable thinking in any dialect.
_ASKS_TO_THINK = frozenset({"thinking", "reasoning", "reasoning_effort"})
# Models whose rejections are stored; the least recently used one is evicted.
_MAX_MODELS = 1_000


def _no_medium(part: str, noun: str) -> str:
    """Return a pattern for rejections of a kind of media.

    Args:
        part: the type of its content parts, in OpenAI's dialect.
        noun: the name in error messages.
    """
    return (
        rf"unknown variant `{part}`|part type\W+{part}\b|tag '{part}' found using"
        rf"|\b{part} is only supported by certain"
        rf"|(?<![.\w])(?:{noun})s?(?: inputs?| contents?| parts?)? (?:is|are) not supported"
        rf"|\b(?:not|n't) (?:support|read) (?:any )?(?:{noun})s?\b"
        r"(?!/| (?:of|with|in|over|larger|format|type)\b)"
        rf"|found that support (?:{noun}) input"
    )


_MEDIA_REFUSALS = (
    (
        "media.image",
        re.compile(
            _no_medium("image_url", "image|vision")
            + r"|at most 0 image\(s\)|is not a multimodal model",
            re.IGNORECASE,
        ),
    ),
    ("media.document", re.compile(_no_medium("file", "file|pdf|document"), re.IGNORECASE)),
    ("media.audio", re.compile(_no_medium("input_audio", "audio"), re.IGNORECASE)),
)
# Servers also report unreadable media as a server error, or as a missing model.
_OF_MEDIA = frozenset(
    {
        errors_pb2.REASON_UPSTREAM_REJECTED,
        errors_pb2.REASON_UPSTREAM_ERROR,
        errors_pb2.REASON_MODEL_NOT_FOUND,
    }
)


class Refusals:
    """The rejected fields of each model, as named by `new_refusals`, and its rejected values.

    Attributes:
        by_model: the rejected fields, by model.
        output_bounds: the largest accepted `max_tokens`, by model.
    """

    def __init__(self) -> None:
        self.by_model: OrderedDict[ModelKey, frozenset[str]] = OrderedDict()
        self.output_bounds = OutputBounds()

    def of(self, key: ModelKey) -> frozenset[str]:
        """Return the fields that a model has rejected."""
        return self.by_model.get(key, frozenset())

    def add(self, key: ModelKey, name: str) -> None:
        """Store that a model rejects a field."""
        self.by_model[key] = self.of(key) | {name}
        self.by_model.move_to_end(key)
        if len(self.by_model) > _MAX_MODELS:
            self.by_model.popitem(last=False)


def changes_messages(refused_fields: frozenset[str]) -> bool:
    """Return whether messages are serialized differently without these fields."""
    return not _OF_CONVERSATIONS.isdisjoint(refused_fields) or any(
        name.startswith(OF_MESSAGES) for name in refused_fields
    )


def all_refused(always_refused: frozenset[str], learnt: frozenset[str]) -> frozenset[str]:
    """Return known and learnt rejections; of a limit's two names the learnt one counts."""
    if not (always_refused or learnt):
        return learnt
    refused = always_refused or learnt
    if always_refused and learnt:
        refused = learnt | (always_refused - {RENAMED[name] for name in RENAMED.keys() & learnt})
    return refused | _ASKS_TO_THINK if ANY_THINKING in refused else refused


def new_refusals(error: UpstreamError, refused_before: frozenset[str]) -> list[str]:
    """Return the newly rejected fields of an error response.

    Each is the name of an optional field, an unknown field prefixed with OF_MESSAGES or OF_BLOCKS,
    another of the names above, or one of `refused_paths` and `text_bounds`. A value out of range is
    not a rejection of the field: the caller gets that error.
    """
    medium = _refused_medium(error)
    names = [medium] if medium else _refused(error)
    fresh = [name for name in dict.fromkeys(names) if name and name not in refused_before]
    if len(fresh) > 1 and fresh[-1].startswith(TOOL):
        # The parameters are replaced only if they are still rejected without the rest.
        fresh.pop()
    room = _MAX_LEARNT - len(refused_before - NAMES)
    return [name for number, name in enumerate(fresh) if name in NAMES or number < room]


def _refused_medium(error: UpstreamError) -> str:
    if error.reason not in _OF_MEDIA or not error.body:
        return ""
    words = _read(error.body)[2]
    return next((name for name, pattern in _MEDIA_REFUSALS if pattern.search(words)), "")


def _refused(error: UpstreamError) -> list[str]:
    if error.reason != errors_pb2.REASON_UPSTREAM_REJECTED:
        return []
    param, code, words = _read(error.body)
    names = _of_kind(param, words) or _of_fields(param, code, words)
    # What is known to be rejected was not all.
    tool = refused_tool(param, words)
    return [*names, tool] if tool else names


def _of_fields(param: str, code: str, words: str) -> list[str]:
    """Return the rejected fields."""
    if code not in _CODES and not _WORDS.search(words):
        return []
    paths = refused_paths(param, words)
    names = [name for path in paths if (name := _name_of(path))]
    if names or (paths and not param):
        return names
    if (name := param.partition(".")[0].partition("[")[0]) in _KNOWN:
        return [name]
    if _GOOGLES_PENALTY.search(words):
        return [*_PENALTIES]
    if _GOOGLES_THINKING.search(words):
        return ["thinking"]
    if paths or not (named := _NAMES.findall(words)):
        return []
    # If two names exclude each other, the second is more specific.
    return [named[-1] if "both" in words else named[0]]


def _of_kind(param: str, words: str) -> list[str]:
    """Return what an error rejects, other than a field at a path of the body."""
    for shape, pattern in _SHAPES:
        # MiMo has its words in `param`.
        if pattern.search(words) or pattern.search(param):
            return [shape]
    if name := refused_length(words) or refused_keyword(words):
        return [name]
    return list(refused_betas(words))


def _name_of(path: str) -> str:
    """Return the name of a rejected field at a path, or "" if the field is essential."""
    steps = steps_of(path)
    if not steps:
        return ""
    first, last = steps[0], steps[-1]
    if len(steps) == 1:
        return last if last in _KNOWN else may_leave_out(path)
    if "cache_control" in steps:
        return may_leave_out(path)
    if first == "messages":
        if not _INNER.isdisjoint(steps[1:-1]):
            return "" if last in _OF_EVERY_ITEM else path
        if not {"content", "tool_calls"}.isdisjoint(steps[1:-1]):
            return _of_messages(last, _OF_EVERY_BLOCK, OF_BLOCKS)
        return _of_messages(last, _OF_EVERY_MESSAGE, OF_MESSAGES)
    if first == "contents" and last == "id":
        return path  # Google finds the call of a result by its name and place
    if first in ("input", "contents", "system"):
        return "" if last in _OF_EVERY_ITEM else path
    if first == "generation_config" and snake(last) in _OPTIONAL:
        return snake(last)
    if last == "effort" and first in _KNOWN:
        return first
    return may_leave_out(path)


def _of_messages(name: str, needed: frozenset[str], place: str) -> str:
    if name in _KNOWN:
        return name
    return "" if name in needed else place + name


def output_bound(error: UpstreamError) -> int:
    """Return the bound on `max_tokens` that an error response names, or 0."""
    if error.reason != errors_pb2.REASON_UPSTREAM_REJECTED:
        return 0
    param, _, message = _read(error.body)
    return bound_in(f"{param} {message}")


def output_room(error: UpstreamError) -> int:
    """Return the output tokens for which an error response leaves room in the context, or 0."""
    if error.reason != errors_pb2.REASON_CONTEXT_LENGTH_EXCEEDED:
        return 0
    return room_in(_read(error.body)[2])


def refuses_value(error: UpstreamError) -> bool:
    """Return whether an error response rejects a field's value rather than the field."""
    return _OF_VALUES.search(error.body) is not None


def _read(body: str) -> tuple[str, str, str]:
    """Return param, code and text of an error, as far as present."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "", "", body
    if isinstance(parsed, dict) and isinstance(parsed.get("error"), dict):
        parsed = parsed["error"]
    if not isinstance(parsed, dict):
        return "", "", body
    param, code, message = (parsed.get(name) for name in ("param", "code", "message"))
    match parsed.get("metadata"):
        case {"raw": str(raw)}:  # OpenRouter's copy of the underlying provider's error
            message = raw
    return (
        param if isinstance(param, str) else "",
        code if isinstance(code, str) else "",
        message if isinstance(message, str) else body,
    )
