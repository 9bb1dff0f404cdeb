"""Wire types of the requests, for validation and for the OpenAPI document.

Fields marked `SkipValidation` are sent to the service as JSON and validated there (see
`facade.dialects.articles.reading`); their types here are only documentation. Unknown fields are
ignored, except in requests whose fields are themselves the change.

Source: the service interface, Document editing.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from services.common.articles import styles
from services.common.articles.blocks import (
    AuthorItem,
    Block,
    Children,
    Color,
    ImageItem,
    Institution,
    Reference,
    TextDecoration,
    TextLeaf,
)

_INT64 = 2**63
# The default of an omitted field; `model_fields_set` distinguishes it from null.
_ABSENT: Any = None

Index = Annotated[int, Field(ge=0)]
# Validation stops at the first wrong index: reporting a million would take seconds.
Path = Annotated[list[Index], Field(min_length=1, fail_fast=True)]
SessionId = Annotated[str, Field(description="From session/create.")]
BlockId = Annotated[str, Field(description="From block/insert or doc/read.")]


class _Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", defer_build=True)


class CreateSession(_Body):
    """Names the document to open."""

    docId: str = Field(description="From doc/create or doc/list.")


class OfSession(_Body):
    """Names a session."""

    sessionId: SessionId


class ListArticles(_Body):
    """A request without fields."""


class CreateArticle(_Body):
    """Describes the document to create."""

    group: Annotated[int, Field(ge=-_INT64, lt=_INT64)] | None = Field(
        0, description="Of the caller's groups; 0 is the private one."
    )
    name: str | None = Field(None, description="At most 200 characters; `Untitled` if left out.")


class DeleteArticle(_Body):
    """Names the document to delete."""

    docId: str


class ReadBlock(OfSession):
    """Names the block to read."""

    blockId: BlockId


class ReadBlocks(OfSession):
    """Names the blocks to read."""

    blockIds: Annotated[list[BlockId], Field(min_length=1, max_length=500, fail_fast=True)]


class ReadChanges(OfSession):
    """Names the revision that the caller has seen."""

    since: Annotated[int, Field(ge=0, lt=_INT64)] | None = Field(
        None, description="Without it every block counts as changed."
    )


class EditBody(OfSession):
    """Names a session, and the expected revision of its document."""

    ifRevision: Annotated[int, Field(ge=0, lt=_INT64)] | None = Field(
        None, description="The revision the caller has seen: 409 when there is a newer one."
    )


class InsertBlocks(EditBody):
    """Describes blocks to insert, all or none."""

    path: Path = Field(
        description="Child indices from the root; the first block goes before what is there now."
    )
    blocks: SkipValidation[Annotated[list[Block], Field(min_length=1, max_length=500)]]


class DeleteBlock(EditBody):
    """Names the element to delete."""

    blockId: BlockId


class ReplaceText(EditBody):
    """Describes the new content of a block, by at least one field that fits its type."""

    blockId: BlockId
    children: SkipValidation[str | Children] = Field(
        _ABSENT, description="A string, leaves, or the elements of a list, table or label."
    )
    equation: SkipValidation[str] = Field(_ABSENT, description="equation alone: LaTeX.")
    code: SkipValidation[str] = Field(_ABSENT, description="code alone.")
    language: SkipValidation[str] = Field(_ABSENT, description="code alone.")
    image: SkipValidation[list[ImageItem]] = Field(_ABSENT, description="image alone.")
    author: SkipValidation[list[AuthorItem]] = Field(_ABSENT, description="author alone.")
    institution: SkipValidation[list[Institution]] = Field(_ABSENT, description="author alone.")


class AppendText(EditBody):
    """Describes text to append."""

    blockId: BlockId
    text: SkipValidation[str | list[TextLeaf]]


class Cite(EditBody):
    """Describes a citation to set or clear, under a block or on one leaf."""

    blockId: BlockId | None = Field(None, description="This or `leafPath`.")
    leafPath: Path | None = Field(None, description="This or `blockId`: indices from the root.")
    cite: str | None = Field(None, description="Id of a reference; null clears the citation.")


class AddReference(EditBody):
    """Describes a reference to add."""

    reference: SkipValidation[Reference]


class UpdateReference(EditBody):
    """Describes changes to the reference with that `id`; null removes a field."""

    reference: SkipValidation[Reference]


class DeleteReference(EditBody):
    """Names the reference to delete; its citations go too."""

    referenceId: str


# Unknown fields are errors. Where the fields are the change itself, all are sent to the service,
# which rejects unknown ones; otherwise the translation rejects them.
_CHANGE = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})


class SetBlockStyle(EditBody):
    """Describes changes to a block's own properties; null removes one."""

    model_config = _CHANGE

    blockId: BlockId
    style: SkipValidation[styles.ListCss | None] = Field(
        None, description="`columnGap`, `rowGap`: image, list alone; `alignItems`: list alone."
    )
    indent: SkipValidation[styles.Indent] = Field(None, description="paragraph alone.")
    serial: SkipValidation[styles.Serial] = Field(None, description="equation and image alone.")
    isHideIndex: SkipValidation[styles.IsHideIndex] = Field(None, description="h1, h2, h3 alone.")
    textAlign: SkipValidation[styles.TextAlign] = Field(None, description="table alone.")
    verticalAlign: SkipValidation[styles.VerticalAlign] = Field(None, description="table alone.")
    firstRowBold: SkipValidation[styles.Flag] = Field(None, description="table alone.")
    firstColBold: SkipValidation[styles.Flag] = Field(None, description="table alone.")
    padding: SkipValidation[styles.Value] = Field(None, description="table alone.")
    isHideLanguage: SkipValidation[styles.IsHideLanguage] = Field(None, description="code alone.")
    nameWidth: SkipValidation[styles.NameWidth] = Field(None, description="label alone.")
    twoColumn: SkipValidation[styles.Flag] = Field(None, description="label alone.")
    columnGap: SkipValidation[styles.Value] = Field(None, description="label alone.")
    rowGap: SkipValidation[styles.Value] = Field(None, description="label alone.")
    language: SkipValidation[styles.Language] = Field(None, description="abstract alone.")
    titlePosition: SkipValidation[styles.TitlePosition] = Field(None, description="abstract alone.")
    titlePadding: SkipValidation[styles.Value] = Field(
        None, description="abstract and image alone."
    )
    titleLanguage: SkipValidation[styles.Language] = Field(None, description="image alone.")
    titleMargin: SkipValidation[styles.Value] = Field(None, description="image alone.")
    columns: SkipValidation[styles.Columns] = Field(None, description="image alone.")
    columnRatios: SkipValidation[styles.ColumnRatios] = Field(None, description="image alone.")
    authorStyle: SkipValidation[styles.AuthorCss | None] = Field(None, description="author alone.")
    institutionStyle: SkipValidation[styles.AuthorCss | None] = Field(
        None, description="author alone."
    )
    orderType: SkipValidation[styles.OrderType] = Field(None, description="list alone.")
    orderWidth: SkipValidation[styles.Value] = Field(None, description="list alone.")
    indentWidth: SkipValidation[styles.Value] = Field(None, description="list alone.")
    isTemplate: SkipValidation[styles.IsTemplate] = None


class SetLeafStyle(EditBody):
    """Describes changes to the marks of a block's plain leaves, or of one; null removes one."""

    model_config = _CHANGE

    blockId: BlockId | None = Field(None, description="This or `leafPath`.")
    leafPath: Path | None = Field(None, description="This or `blockId`: indices from the root.")
    bold: SkipValidation[bool | None] = None
    italic: SkipValidation[bool | None] = None
    textDecoration: SkipValidation[TextDecoration] = None
    color: SkipValidation[Color] = None


class SetArticleStyle(EditBody):
    """Describes changes to the document's style, merged by RFC 7396."""

    model_config = _CHANGE

    style: SkipValidation[styles.ArticleStyle]
