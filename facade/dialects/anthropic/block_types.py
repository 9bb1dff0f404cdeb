"""Wire types of a message: content blocks, and the sources of media.

Unknown fields, and blocks and sources of unknown types, are accepted; see `types`.
"""

import re
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, with_config
from typing_extensions import TypedDict

from facade.dialects.field_types import MAX_BLOCKS
from facade.dialects.validation import UNTYPED

# Types are built on first use: a process uses few of them.
OPEN = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)

Text = Annotated[str, Field(min_length=1)]
_MIME_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+", re.IGNORECASE | re.ASCII)
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]\S*", re.IGNORECASE)


def _mime_type(text: str) -> str:
    if _MIME_TYPE.fullmatch(text) is None:
        raise ValueError("must be a MIME type, such as image/png or application/pdf")
    return text


def _web_address(text: str) -> str:
    if _WEB_ADDRESS.fullmatch(text) is None:
        raise ValueError("must be an http:// or https:// URL")
    return text


def _tag_by_type(*names: str) -> Discriminator:
    """Return a discriminator of a union by the object's `type`; other types are `#other`."""
    tags = {name: f"#{name}" for name in names}

    def tag(value: Any) -> str | None:
        if isinstance(value, dict):
            kind = value.get("type")
            return tags.get(kind, "#other") if isinstance(kind, str) else UNTYPED
        return None

    return Discriminator(tag)


@with_config(OPEN)
class CacheControl(TypedDict):
    """A point where the provider's prompt cache may end."""

    type: Annotated[str, Field(description="`ephemeral`.")]


@with_config(OPEN)
class Other(TypedDict):
    """An object of an unknown type, passed on to providers of this dialect."""

    type: str


@with_config(OPEN)
class Base64Source(TypedDict):
    """The medium's bytes."""

    type: Literal["base64"]
    media_type: Annotated[
        str, AfterValidator(_mime_type), Field(description="MIME type, such as `image/png`.")
    ]
    data: Annotated[Text, Field(description="Content in base64.")]


@with_config(OPEN)
class UrlSource(TypedDict):
    """A medium on the web."""

    type: Literal["url"]
    url: Annotated[
        str, AfterValidator(_web_address), Field(description="An http:// or https:// URL.")
    ]


@with_config(OPEN)
class FileSource(TypedDict):
    """A medium in the gateway's file store."""

    type: Literal["file"]
    file_id: Annotated[Text, Field(description="Id of the file.")]


@with_config(OPEN)
class TextSource(TypedDict):
    """A document of plain text."""

    type: Literal["text"]
    media_type: Literal["text/plain"]
    data: Annotated[Text, Field(description="The text.")]


ImageSource = Annotated[
    Annotated[Base64Source, Tag("#base64")]
    | Annotated[UrlSource, Tag("#url")]
    | Annotated[FileSource, Tag("#file")]
    | Annotated[Other, Tag("#other")],
    _tag_by_type("base64", "url", "file"),
]
DocumentSource = Annotated[
    Annotated[Base64Source, Tag("#base64")]
    | Annotated[UrlSource, Tag("#url")]
    | Annotated[FileSource, Tag("#file")]
    | Annotated[TextSource, Tag("#text")]
    | Annotated[Other, Tag("#other")],
    _tag_by_type("base64", "url", "file", "text"),
]


class Cacheable(TypedDict):
    """A block or a tool after which the provider's prompt cache may end."""

    cache_control: NotRequired[CacheControl | None]


@with_config(OPEN)
class TextBlock(Cacheable):
    """Text; empty text is dropped."""

    type: Literal["text"]
    text: str


@with_config(OPEN)
class ImageBlock(Cacheable):
    """An image."""

    type: Literal["image"]
    source: ImageSource


@with_config(OPEN)
class DocumentBlock(Cacheable):
    """A document: PDF, DOCX or text."""

    type: Literal["document"]
    source: DocumentSource
    title: NotRequired[str | None]


@with_config(OPEN)
class ThinkingBlock(Cacheable):
    """Thinking of the model; see `thinking_block_strategy`."""

    type: Literal["thinking"]
    thinking: str
    signature: NotRequired[str | None]


@with_config(OPEN)
class RedactedThinkingBlock(Cacheable):
    """Thinking that only its provider can read."""

    type: Literal["redacted_thinking"]
    data: str


@with_config(OPEN)
class ToolUseBlock(Cacheable):
    """The model's call of a tool."""

    type: Literal["tool_use"]
    id: Text
    name: Text
    input: dict[str, Any]


ResultBlock = Annotated[
    Annotated[TextBlock, Tag("#text")]
    | Annotated[ImageBlock, Tag("#image")]
    | Annotated[DocumentBlock, Tag("#document")]
    | Annotated[Other, Tag("#other")],
    _tag_by_type("text", "image", "document"),
]


@with_config(OPEN)
class ToolResultBlock(Cacheable):
    """The result of a tool call."""

    type: Literal["tool_result"]
    tool_use_id: Annotated[Text, Field(description="The `id` of the tool call.")]
    content: NotRequired[
        Annotated[
            Annotated[str, Tag("#string")]
            | Annotated[
                list[ResultBlock], Field(fail_fast=True, max_length=MAX_BLOCKS), Tag("#blocks")
            ]
            | None,
            Field(union_mode="left_to_right"),
        ]
    ]
    is_error: NotRequired[bool | None]


ContentBlock = Annotated[
    Annotated[TextBlock, Tag("#text")]
    | Annotated[ImageBlock, Tag("#image")]
    | Annotated[DocumentBlock, Tag("#document")]
    | Annotated[ThinkingBlock, Tag("#thinking")]
    | Annotated[RedactedThinkingBlock, Tag("#redacted_thinking")]
    | Annotated[ToolUseBlock, Tag("#tool_use")]
    | Annotated[ToolResultBlock, Tag("#tool_result")]
    | Annotated[Other, Tag("#other")],
    _tag_by_type(
        "text", "image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result"
    ),
]


@with_config(OPEN)
class Message(TypedDict):
    """One message; consecutive messages of one role are merged."""

    role: Literal["user", "assistant", "system"]
    content: NotRequired[
        Annotated[
            Annotated[str, Tag("#string")]
            | Annotated[
                list[ContentBlock], Field(fail_fast=True, max_length=MAX_BLOCKS), Tag("#blocks")
            ],
            Field(
                union_mode="left_to_right",
                description="Optional in a system message with settings, otherwise required.",
            ),
        ]
    ]
