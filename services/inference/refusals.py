"""Optional fields that a model refuses: read from its provider's answers, and remembered.

Nobody's table of models is complete. A field that an answer is as good without is sent to
a model of which nothing else is known; when its provider answers 400 and names the field,
the request is sent once more without it, and so is every later one to that model. So are
fields of messages that have no name here: client libraries add them to what they send back.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import MediaKind
from gateway.errors.v1 import errors_pb2
from services.common.errors import UpstreamError
from services.inference.fallback.circuit_breaker import ModelKey

# An assistant's message at the end, which the model would go on with.
PREFILL = "prefill"
# Thoughts of earlier turns that are signed by nobody but the gateway, if at all.
UNSIGNED_THINKING = "unsigned_thinking"
# The thoughts of earlier turns, as servers of OpenAI's dialect take them.
REASONING_CONTENT = "reasoning_content"

# Thinking, however it is asked for.
ANY_THINKING = "any_thinking"
# A budget of tokens for thinking, where a model decides by itself how much it thinks.
THINKING_BUDGET = "thinking_budget"
# Calls of tools without the thoughts that led to them, even if these are empty.
CALLS_WITHOUT_THOUGHTS = "calls_without_thoughts"
# Calls of tools without a thought signature of Gemini's.
UNSIGNED_CALLS = "unsigned_calls"
# A user's message right after the result of a tool.
USER_AFTER_TOOL = "user_after_tool"
# Ids of tool calls that are anything but SHORT_ID letters and digits.
LONG_IDS = "long_ids"
SHORT_ID = 9
# The name of who speaks, in a message.
MESSAGE_NAME = "messages.name"
# Asks a stream for its usage, which some servers tell anyway.
STREAM_OPTIONS = "stream_options"

# By the names that providers have for them. Fields that would change what an answer means
# (tools, stop sequences, limits of length) are not among them.
_OPTIONAL = (
    *("temperature", "top_p", "top_k", "min_p", "seed"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
    *("reasoning_effort", "reasoning", "thinking", "verbosity", REASONING_CONTENT),
    *("enable_thinking", "chat_template_kwargs"),
    *("user", "safety_identifier", "metadata", "service_tier", "store"),
    *("parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "cache_control"),
    *("context_management", "inference_geo", "speed", STREAM_OPTIONS),
    # Of messages: what other providers say beside their answers.
    *("reasoning_details", "extra_content", "annotations"),
)
# Fields that change what an answer means, and what they say where they change nothing: with such
# a value they are left out where a model refuses them.
DEFAULTS: Mapping[str, Sequence[object]] = {
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "response_format": ({"type": "text"},),
    "tool_choice": ("auto", {"type": "auto"}),
}
# One limit with two names: each is sent under the other one when it is refused.
RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

_KNOWN = frozenset((*_OPTIONAL, *RENAMED, *DEFAULTS))
# Media that a model reads none of, and the kinds that they are.
MEDIA: Mapping[str, MediaKind.ValueType] = {
    "media.image": conversation_pb2.MEDIA_KIND_IMAGE,
    "media.document": conversation_pb2.MEDIA_KIND_DOCUMENT,
    "media.audio": conversation_pb2.MEDIA_KIND_AUDIO,
}

# All names that mean something here; a model may refuse other fields of a request's body too.
NAMES = _KNOWN | {
    *(PREFILL, UNSIGNED_THINKING, ANY_THINKING, THINKING_BUDGET, CALLS_WITHOUT_THOUGHTS),
    *(UNSIGNED_CALLS, USER_AFTER_TOOL, LONG_IDS, MESSAGE_NAME),
}
# What comes before the name of a refused field of a message that has no name here, and before
# that of one of its parts or tool calls.
OF_MESSAGES = "messages[]."
OF_BLOCKS = "messages[].content[]."
# What changes messages that hold nothing without a name here.
_OF_CONVERSATIONS = frozenset(
    {CALLS_WITHOUT_THOUGHTS, UNSIGNED_CALLS, USER_AFTER_TOOL, LONG_IDS, MESSAGE_NAME}
)
# Such fields of one model that are remembered: callers make them up.
_MAX_OF_MESSAGES = 20
# What a message means. A provider that refuses one of these refuses the message.
_OF_EVERY_MESSAGE = frozenset(
    ("role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio")
)
# What such a part or call means.
_OF_EVERY_BLOCK = frozenset(
    {
        *("type", "text", "refusal", "image_url", "input_audio", "file", "source", "content"),
        *("id", "index", "name", "input", "arguments", "function", "custom", "tool_use_id"),
        *("thinking", "signature", "data", "is_error"),
    }
)
_PATHS = re.compile(
    # messages[1].x, messages.1.x, messages.1.assistant.x
    r"\bmessages[.\[]\d+\]?(?:\.(?:system|developer|user|assistant|tool))?\.(\w+)(?!\w|[.\[]\w)"
    # 'messages.1' : property 'x' is unsupported
    r"|\bmessages\.\d+' : property '(\w+)'"
    # ('x' was unexpected) - 'messages.1'
    r"|'(\w+)' was unexpected\) - 'messages\.\d+'"
    # "loc": ["body", "messages", 1, "assistant", "x"]
    r'|"messages",\s*\d+,\s*(?:"\w+",\s*)?"(\w+)"\s*\]'
)
_BLOCK_PATHS = re.compile(
    # messages[1].tool_calls[0].x, messages.1.content.0.tool_use.x
    r"\bmessages[.\[]\d+\]?(?:\.(?:system|developer|user|assistant|tool))?\.(?:content|tool_calls)"
    r"[.\[]\d+\]?(?:\.\w+|\[\d+\])*\.(\w+)(?!\w|[.\[]\w)"
    # 'messages.1.tool_calls.0' : property 'x' is unsupported
    r"|\bmessages\.\d+\.(?:content|tool_calls)\.\d+' : property '(\w+)'"
    # "loc": ["body", "messages", 1, "assistant", "tool_calls", 0, "function", "x"]
    r"""|['"]messages['"],\s*\d+,\s*(?:['"]\w+['"],\s*)?['"](?:content|tool_calls)['"]"""
    r"""(?:,\s*(?:\d+|['"]\w+['"]))*,\s*['"](\w+)['"]\s*[\])]"""
)
# "loc": ["body", "messages", 1, "user", "content", 0, "text", "x"], or in Python's words, whose
# last name it is; beside it stands what the caller wrote.
_LOCATIONS = re.compile(
    r"""['"]loc['"]:\s*[\[(]\s*['"]body['"](?:,\s*(?:\d+|['"](\w+)['"]))*\s*[\])]"""
)
_NAMES = re.compile(rf"\b(?:{'|'.join(sorted(_KNOWN, key=len, reverse=True))})\b")
# "Thinking level MINIMAL is not supported for this model." and the like.
_GOOGLES_THINKING = re.compile(r"Thinking (?:level|budget|is)\b|thinking_(?:level|budget|config)\b")
_CODES = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})
_WORDS = re.compile(
    r"unsupported|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields)|deprecated"
    r"|(?:not|n't|never) (?:be )?(?:supported|support|permitted|allowed|accept|compatible|enabled)"
    r"|cannot both|may only",
    re.IGNORECASE,
)
# Refusals of something that has no field of its own.
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
        CALLS_WITHOUT_THOUGHTS,
        re.compile(r"reasoning_content\W.*must be passed back|Missing `reasoning_content`"),
    ),
    (UNSIGNED_CALLS, re.compile(r"missing a \W?thought_signature")),
    (MESSAGE_NAME, re.compile(r'"messages", ?\d+, ?"\w+", ?"name"')),
    (USER_AFTER_TOOL, re.compile(r"Unexpected role 'user' after role 'tool'")),
    (LONG_IDS, re.compile(rf"must be a-z, A-Z, 0-9, with a length of {SHORT_ID}\b")),
    ("reasoning_effort", re.compile(r"invalid reasoning value")),
)
# A refusal of what a field says, where another value would do.
_OF_VALUES = re.compile(
    r"\bsupported values (?:are|include)\b|\binvalid reasoning value\b", re.IGNORECASE
)
# What asks a model to think in the bodies of servers of any dialect.
_ASKS_TO_THINK = frozenset({"thinking", "reasoning", "reasoning_effort"})
# Models whose refusals are remembered; the one that was asked longest ago is forgotten.
_MAX_MODELS = 1_000


def _no_medium(part: str, noun: str) -> str:
    """Return a pattern of refusals of a medium.

    Args:
        part: the type of its content parts, as OpenAI's dialect has it.
        noun: what servers call it.
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
# Servers tell of a medium that nobody reads also as a fault of theirs, or as a missing model.
_OF_MEDIA = frozenset(
    {
        errors_pb2.REASON_UPSTREAM_REJECTED,
        errors_pb2.REASON_UPSTREAM_ERROR,
        errors_pb2.REASON_MODEL_NOT_FOUND,
    }
)


class Refusals:
    """What each model has refused, by names of `new_refusal`."""

    def __init__(self) -> None:
        self._by_model: OrderedDict[ModelKey, frozenset[str]] = OrderedDict()

    def of(self, key: ModelKey) -> frozenset[str]:
        """Return what a model has refused so far."""
        if not self._by_model:
            return frozenset()
        return self._by_model.get(key, frozenset())

    def add(self, key: ModelKey, name: str) -> None:
        """Remember that a model refuses a field."""
        self._by_model[key] = self.of(key) | {name}
        self._by_model.move_to_end(key)
        if len(self._by_model) > _MAX_MODELS:
            self._by_model.popitem(last=False)


def changes_messages(without: frozenset[str]) -> bool:
    """Return whether messages are written otherwise for a model that refuses this."""
    return not _OF_CONVERSATIONS.isdisjoint(without) or any(
        name.startswith(OF_MESSAGES) for name in without
    )


def all_refused(known: frozenset[str], learnt: frozenset[str]) -> frozenset[str]:
    """Return what is known to be refused and what was; of a limit's two names the latter counts."""
    refused = known or learnt
    if known and learnt:
        refused = learnt | (known - {RENAMED[name] for name in RENAMED.keys() & learnt})
    return refused | _ASKS_TO_THINK if ANY_THINKING in refused else refused


def new_refusal(error: UpstreamError, known: frozenset[str]) -> str:
    """Return what a provider's answer refuses that was not known to be refused, or "".

    It is the name of an optional field, one of a message behind OF_MESSAGES or OF_BLOCKS, or
    another of the names above. A value out of bounds is no refusal of the field: the caller
    reads of that.
    """
    name = _refused_medium(error) or _refused(error)
    if name in known:
        return ""
    if name.startswith(OF_MESSAGES):
        others = sum(other.startswith(OF_MESSAGES) for other in known)
        return name if others < _MAX_OF_MESSAGES else ""
    return name


def _refused_medium(error: UpstreamError) -> str:
    if error.reason not in _OF_MEDIA or not error.body:
        return ""
    words = _read(error.body)[2]
    return next((name for name, told in _MEDIA_REFUSALS if told.search(words)), "")


def _refused(error: UpstreamError) -> str:
    if error.reason != errors_pb2.REASON_UPSTREAM_REJECTED:
        return ""
    param, code, words = _read(error.body)
    for shape, told in _SHAPES:
        if told.search(words):
            return shape
    if code not in _CODES and not _WORDS.search(words):
        return ""
    if (name := param.partition(".")[0].partition("[")[0]) in _KNOWN:
        return name
    located = _LOCATIONS.findall(words)
    if named := [name for name in located if name in _KNOWN]:
        return _of_two(named, words)
    if found := _PATHS.search(f"{param} {words}"):
        return _of_messages(next(filter(None, found.groups())), _OF_EVERY_MESSAGE, OF_MESSAGES)
    if found := _BLOCK_PATHS.search(f"{param} {words}"):
        return _of_messages(next(filter(None, found.groups())), _OF_EVERY_BLOCK, OF_BLOCKS)
    if _GOOGLES_THINKING.search(words):
        return "thinking"
    if located or not (named := _NAMES.findall(words)):
        return ""
    return _of_two(named, words)


def _of_two(names: Sequence[str], words: str) -> str:
    """Return the refused one of the names; of two that exclude each other the second is finer."""
    return names[-1] if "both" in words else names[0]


def _of_messages(name: str, needed: frozenset[str], place: str) -> str:
    if name in _KNOWN:
        return name
    return "" if name in needed else place + name


def refuses_value(error: UpstreamError) -> bool:
    """Return whether an answer refuses what a field says, and not the field."""
    return _OF_VALUES.search(error.body) is not None


def _read(body: str) -> tuple[str, str, str]:
    """Return param, code and all words of an error, as far as it has them."""
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "", "", body
    if isinstance(told, dict) and isinstance(told.get("error"), dict):
        told = told["error"]
    if not isinstance(told, dict):
        return "", "", body
    param, code, message = (told.get(name) for name in ("param", "code", "message"))
    match told.get("metadata"):
        case {"raw": str(raw)}:  # OpenRouter tells so what the provider behind it said
            message = raw
    return (
        param if isinstance(param, str) else "",
        code if isinstance(code, str) else "",
        message if isinstance(message, str) else body,
    )
