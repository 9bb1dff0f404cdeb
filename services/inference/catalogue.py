"""What is known of well-known models, by the names their makers give them.

From OpenAI's, Anthropic's and Google's lists of models. One whose limits are not certain is
not here by name, because a wrong limit refuses requests that would be served: it has
what all of its family can do, and no limits. The settings (`[[models]]`) know better.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import MediaKind

Inputs = frozenset[MediaKind.ValueType]

_NOTHING: Inputs = frozenset()
_IMAGE: Inputs = frozenset({conversation_pb2.MEDIA_KIND_IMAGE})
_AUDIO: Inputs = frozenset({conversation_pb2.MEDIA_KIND_AUDIO})
_IMAGE_PDF: Inputs = _IMAGE | {conversation_pb2.MEDIA_KIND_DOCUMENT}
_ALL: Inputs = _IMAGE_PDF | _AUDIO | {conversation_pb2.MEDIA_KIND_VIDEO}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a model.

    Attributes:
        display_name: its name for people, or "".
        inputs: media it reads beside text, or None when unknown.
        context_window: tokens it can read (OpenAI's cover what it writes too), or 0.
        max_output_tokens: tokens it can write, or 0 when unknown.
        tools: whether it can call tools, or None when unknown.
        thinking: whether it can think before it answers, or None.
        structured_output: whether it can be held to a JSON Schema, or None.
        adaptive: whether it decides by itself how much it thinks, asked by an effort and
            not by a budget.
        prefills: whether it goes on with an assistant's message at the end.
        efforts: the efforts it can be asked for, weakest first; () when unknown.
        listed: whether it is shown to callers who ask which models there are.
    """

    display_name: str = ""
    inputs: Inputs | None = None
    context_window: int = 0
    max_output_tokens: int = 0
    tools: bool | None = None
    thinking: bool | None = None
    structured_output: bool | None = None
    adaptive: bool = False
    prefills: bool = True
    efforts: tuple[str, ...] = ()
    listed: bool = True


UNKNOWN = Facts()


@dataclass(frozen=True, slots=True)
class Maker:
    """Who makes models and serves them itself.

    Attributes:
        hosts: where it serves them.
        claimed: how the names begin that are its models when nothing else says so.
        unclaimed: names that begin so and are not served by it.
        models: its models by name, without the date of a snapshot.
        families: what the other models share, by how their names begin; the first counts.
    """

    hosts: Sequence[str]
    claimed: tuple[str, ...]
    unclaimed: tuple[str, ...]
    models: Mapping[str, Facts]
    families: Sequence[tuple[tuple[str, ...], Facts]]


def _gpt(
    name: str, window: int, output: int, *, thinking: bool = False, efforts: tuple[str, ...] = ()
) -> Facts:
    return Facts(name, _IMAGE_PDF, window, output, True, thinking, True, efforts=efforts)


def _text(name: str, window: int, output: int, *, thinking: bool = False) -> Facts:
    return Facts(name, _NOTHING, window, output, None, thinking, None)


_THREE_EFFORTS = ("low", "medium", "high")


def _reasoning(name: str, least_effort: str = "minimal") -> Facts:
    efforts = (least_effort, *_THREE_EFFORTS)
    return _gpt(name, 400_000, 128_000, thinking=True, efforts=efforts)


_OPENAI = Maker(
    hosts=("api.openai.com",),
    claimed=("gpt-", "o1", "o3", "o4", "chatgpt-", "ft:gpt-", "ft:o4"),
    unclaimed=("gpt-oss",),
    models={
        "gpt-3.5-turbo": Facts("GPT-3.5 Turbo", _NOTHING, 16_385, 4_096, True, False, False),
        "gpt-4": Facts("GPT-4", _NOTHING, 8_192, 8_192, True, False, False),
        "gpt-4-turbo": Facts("GPT-4 Turbo", _IMAGE, 128_000, 4_096, True, False, False),
        "gpt-4o": _gpt("GPT-4o", 128_000, 16_384),
        "gpt-4o-2024-05-13": Facts("GPT-4o", _IMAGE_PDF, 128_000, 4_096, True, False, False),
        "gpt-4o-mini": _gpt("GPT-4o mini", 128_000, 16_384),
        "chatgpt-4o": Facts("ChatGPT-4o", _IMAGE, 128_000, 16_384, None, False, None),
        "gpt-4.1": _gpt("GPT-4.1", 1_047_576, 32_768),
        "gpt-4.1-mini": _gpt("GPT-4.1 mini", 1_047_576, 32_768),
        "gpt-4.1-nano": _gpt("GPT-4.1 nano", 1_047_576, 32_768),
        "o1": _gpt("o1", 200_000, 100_000, thinking=True, efforts=_THREE_EFFORTS),
        "o1-mini": _text("o1-mini", 128_000, 65_536, thinking=True),
        "o1-preview": _text("o1-preview", 128_000, 32_768, thinking=True),
        "o3": _gpt("o3", 200_000, 100_000, thinking=True, efforts=_THREE_EFFORTS),
        "o3-mini": Facts("o3-mini", _NOTHING, 200_000, 100_000, True, True, True),
        "o4-mini": _gpt("o4-mini", 200_000, 100_000, thinking=True, efforts=_THREE_EFFORTS),
        "gpt-5": _reasoning("GPT-5"),
        "gpt-5-mini": _reasoning("GPT-5 mini"),
        "gpt-5-nano": _reasoning("GPT-5 nano"),
        "gpt-5-chat": Facts("GPT-5 Chat", _IMAGE, 128_000, 16_384, None, False, None),
        "gpt-5.1": _reasoning("GPT-5.1", least_effort="none"),
    },
    families=(
        # Models of other makers, behind servers that speak OpenAI's dialect.
        (("deepseek-reasoner", "deepseek-r1", "qwq", "magistral", "gpt-oss"), Facts(thinking=True)),
        (("gpt-audio", "gpt-4o-audio", "gpt-4o-mini-audio"), Facts(inputs=_AUDIO)),
        (("gpt-4o-search", "gpt-4o-mini-search", "gpt-3.5", "gpt-4-"), Facts(inputs=_NOTHING)),
        (("o1-mini", "o1-preview", "o3-mini"), Facts(inputs=_NOTHING, thinking=True)),
        (("chatgpt-", "gpt-5-chat"), Facts(inputs=_IMAGE)),
        (("gpt-", "o1", "o3", "o4"), Facts(inputs=_IMAGE_PDF)),
    ),
)


def _claude(
    name: str, window: int, output: int, *, thinking: bool = True, schema: bool | None = True
) -> Facts:
    return Facts(name, _IMAGE_PDF, window, output, True, thinking, schema)


def _claude_3(name: str, output: int) -> Facts:
    return _claude(name, 200_000, output, thinking=False, schema=False)


# What all models of this kind since 4.6 share, the coming ones most likely too.
_ADAPTIVE = Facts(
    inputs=_IMAGE_PDF, tools=True, adaptive=True, prefills=False, efforts=("low", "medium", "high")
)


def _claude_5(name: str) -> Facts:
    known = _claude(name, 1_000_000, 128_000)
    return replace(known, adaptive=True, prefills=_ADAPTIVE.prefills, efforts=_ADAPTIVE.efforts)


_BEFORE_4_6 = (
    *("claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2025", "claude-opus-4@"),
    *("claude-sonnet-4-0", "claude-sonnet-4-2025", "claude-sonnet-4@"),
    *("claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"),
)

_ANTHROPIC = Maker(
    hosts=("api.anthropic.com",),
    claimed=("claude-",),
    unclaimed=(),
    models={
        "claude-3-haiku": Facts("Claude Haiku 3", _IMAGE, 200_000, 4_096, True, False, False),
        "claude-3-opus": Facts("Claude Opus 3", _IMAGE, 200_000, 4_096, True, False, False),
        "claude-3-5-haiku": _claude_3("Claude Haiku 3.5", 8_192),
        "claude-3-5-sonnet": _claude_3("Claude Sonnet 3.5", 8_192),
        # A beta lets it write more, so its limit is not one for every request.
        "claude-3-7-sonnet": _claude("Claude Sonnet 3.7", 200_000, 0, schema=False),
        "claude-sonnet-4": _claude("Claude Sonnet 4", 200_000, 64_000, schema=False),
        "claude-sonnet-4-0": _claude("Claude Sonnet 4", 200_000, 64_000, schema=False),
        "claude-opus-4": _claude("Claude Opus 4", 200_000, 32_000, schema=False),
        "claude-opus-4-0": _claude("Claude Opus 4", 200_000, 32_000, schema=False),
        "claude-opus-4-1": _claude("Claude Opus 4.1", 200_000, 32_000, schema=None),
        "claude-sonnet-4-5": _claude("Claude Sonnet 4.5", 200_000, 64_000),
        "claude-haiku-4-5": _claude("Claude Haiku 4.5", 200_000, 64_000),
        "claude-opus-4-5": _claude("Claude Opus 4.5", 200_000, 64_000),
        "claude-opus-4-6": _claude_5("Claude Opus 4.6"),
        "claude-sonnet-4-6": _claude_5("Claude Sonnet 4.6"),
        "claude-opus-4-8": _claude_5("Claude Opus 4.8"),
        "claude-opus-5": _claude_5("Claude Opus 5"),
        "claude-sonnet-5": _claude_5("Claude Sonnet 5"),
    },
    families=(
        (("claude-2", "claude-instant"), Facts(inputs=_NOTHING)),
        (("claude-3-",), Facts(inputs=_IMAGE, tools=True)),
        (_BEFORE_4_6, Facts(inputs=_IMAGE_PDF, tools=True)),
        (("claude-",), _ADAPTIVE),
    ),
)


def _gemini(name: str, efforts: tuple[str, ...] = ()) -> Facts:
    return Facts(name, _ALL, 1_048_576, 65_536, True, True, True, efforts=efforts)


_GEMINI = Maker(
    hosts=("generativelanguage.googleapis.com",),
    claimed=("gemini-", "gemma-"),
    unclaimed=(),
    models={
        "gemini-2.0-flash": Facts("Gemini 2.0 Flash", _ALL, 1_048_576, 8_192, True, False, True),
        "gemini-2.5-pro": _gemini("Gemini 2.5 Pro"),
        "gemini-2.5-flash": _gemini("Gemini 2.5 Flash"),
        "gemini-2.5-flash-lite": _gemini("Gemini 2.5 Flash-Lite"),
        "gemini-3-pro-preview": _gemini("Gemini 3 Pro", ("low", "high")),
        "gemini-3-flash-preview": _gemini("Gemini 3 Flash", ("minimal", *_THREE_EFFORTS)),
        "gemini-3.1-pro-preview": _gemini("Gemini 3.1 Pro", _THREE_EFFORTS),
    },
    families=(
        # Of models that make vectors, and of open ones, nothing is certain.
        (("gemini-embedding", "gemma"), UNKNOWN),
        (("gemini-1", "gemini-2.0"), Facts(inputs=_ALL, tools=True, thinking=False)),
        (("gemini-",), Facts(inputs=_ALL, thinking=True)),
    ),
)

# By the kind of provider that speaks to them, which is the maker's dialect.
MAKERS: Mapping[str, Maker] = {"openai": _OPENAI, "anthropic": _ANTHROPIC, "gemini": _GEMINI}

_FINE_TUNED = "ft:"
_SNAPSHOT = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


def facts_of(kind: str, upstream: str) -> Facts:
    """Give what is known of the model `upstream` behind a provider of `kind`.

    Compatible servers serve models of every maker; one that goes by a well-known
    name is taken at its word. Of any other nothing is known: it has no limits, and is
    sent every medium until its provider refuses one.
    """
    maker = MAKERS.get(kind)
    if maker is None:
        return UNKNOWN
    if upstream.startswith(_FINE_TUNED):
        upstream = upstream.removeprefix(_FINE_TUNED).partition(":")[0]
    known = maker.models.get(upstream) or maker.models.get(_SNAPSHOT.sub("", upstream))
    if known is not None:
        return known
    for beginnings, facts in maker.families:
        if upstream.startswith(beginnings):
            return facts
    return UNKNOWN


def maker_of(upstream: str) -> str:
    """Give the kind of provider whose maker a bare name belongs to, or ""."""
    for kind, maker in MAKERS.items():
        if upstream.startswith(maker.claimed) and not upstream.startswith(maker.unclaimed):
            return kind
    return ""
