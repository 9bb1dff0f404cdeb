"""Wire types of the requests that change a document; see `facade.dialects.articles.bodies`."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, SkipValidation

from facade.dialects.articles.bodies import (
    INT64,
    ArticleBody,
    BibliographyFormat,
    BlockId,
    Path,
    PictureFiles,
    RepeatableBody,
)
from services.common.articles import styles
from services.common.articles.blocks import (
    Align,
    AuthorItem,
    Block,
    BlockLabel,
    Caption,
    Children,
    ImageItem,
    Institution,
    ListStart,
    Properties,
    Reference,
)
from services.common.articles.leaves import (
    CiteValue,
    Color,
    InlineLeaf,
    Script,
    TextDecoration,
)

Count = Annotated[int, Field(ge=1, lt=2**32)]
Slot = Annotated[int, Field(ge=0, lt=2**32)]
# Unknown fields are errors. Where the fields are the change itself, all are sent to the service,
# which rejects unknown ones; otherwise the translation rejects them.
_CHANGE = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})
# The default of an omitted field; `model_fields_set` distinguishes it from null.
_ABSENT: Any = None


class EditBody(RepeatableBody):
    """Names a session, and the expected revision of its document."""

    ifRevision: Annotated[int, Field(ge=0, lt=INT64)] | None = Field(
        None,
        description="Expected revision; the request fails with 409 if the document has a "
        "newer one.",
    )
    suggest: bool = Field(
        False,
        description="Store the edit as a suggestion, which suggestion/accept applies, and change "
        "nothing.",
    )


class BlockEditBody(EditBody):
    """Names a session, and the revision at which the caller has read the block."""

    ifBlockRevision: Annotated[int, Field(ge=0, lt=INT64)] | None = Field(
        None,
        description="Revision at which the block was read; the request fails with 409 if this "
        "block has changed since, or if that is more than 64 edits ago.",
    )


class InsertBlocks(EditBody):
    """Describes blocks to insert, all or none."""

    path: Path = Field(
        description="Child indices from the root; the blocks are inserted before the "
        "element at this position."
    )
    blocks: SkipValidation[Annotated[list[Block], Field(min_length=1, max_length=500)]]


class WriteMarkdown(EditBody):
    """A text in Markdown to insert as blocks, all or none."""

    markdown: str = Field(
        description="CommonMark with tables, `$…$`, `$$`, `[@key, p. 3]`, `@key`, footnotes, "
        "`{#label}`, `^2^` and `~2~`, in all edits of a request at most 200,000 characters; YAML "
        "before it may give title, authors, abstract, date, keywords, lang and dir."
    )
    position: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = Field(
        None, description="Position of the first block in the document; the end if omitted."
    )
    files: PictureFiles | None = None


class DeleteBlock(BlockEditBody):
    """Names the element to delete."""

    blockId: BlockId


class MoveBlock(BlockEditBody):
    """Names an element to move, and where to."""

    blockId: BlockId
    section: bool = Field(
        False,
        description="Whether the blocks below a heading, up to the next that is not lower, move "
        "with it.",
    )
    path: Path | None = Field(
        None,
        description="Either this or `beforeId`: child indices from the root, in the document as "
        "it is; the element comes before the one there.",
    )
    beforeId: BlockId | None = Field(None, description="Either this or `path`.")


class DuplicateBlock(BlockEditBody):
    """Names an element to copy."""

    blockId: BlockId
    section: bool = Field(
        False,
        description="Whether the blocks below a heading, up to the next that is not lower, are "
        "copied, too.",
    )
    path: Path | None = Field(None, description="As in block/move; if omitted, after the original.")
    beforeId: BlockId | None = Field(None, description="As in block/move.")


class ConvertBlocks(EditBody):
    """Names adjacent top-level blocks, and the type that they get."""

    blockIds: Annotated[list[BlockId], Field(min_length=1, max_length=500, fail_fast=True)]
    type: str = Field(
        description="`title`, `paragraph`, `abstract`, `h1` to `h6`, `quote`, `label`, `code`, "
        "`equation` or `list`."
    )


class EditTable(BlockEditBody):
    """Describes a change of a table; positions count slots of the grid."""

    blockId: BlockId
    action: Literal[
        "insert-rows",
        "delete-rows",
        "insert-columns",
        "delete-columns",
        "merge-cells",
        "split-cell",
        "align-columns",
    ]
    row: Slot = Field(0, description="For rows and cells: the first row.")
    column: Slot = Field(0, description="For columns and cells: the first column.")
    rows: Count = Field(1, description="Number of rows, at most 200.")
    columns: Count = Field(1, description="Number of columns, at most 50.")
    align: Literal["start", "center", "end"] | None = Field(
        None, description="With `align-columns`; null leaves it to the style of the table."
    )


class ReplaceText(BlockEditBody):
    """Describes the new content of a block, by at least one field that fits its type."""

    # Unknown fields are ignored but for `type`, which the translation rejects.
    model_config = ConfigDict(extra="allow")

    blockId: BlockId
    children: SkipValidation[str | Children] = Field(
        _ABSENT, description="A string, leaves, or the elements of a list, table or label."
    )
    equation: SkipValidation[str] = Field(_ABSENT, description="Only for equation: LaTeX.")
    code: SkipValidation[str] = Field(_ABSENT, description="Only for code.")
    language: SkipValidation[str] = Field(_ABSENT, description="Only for code.")
    image: SkipValidation[list[ImageItem]] = Field(_ABSENT, description="Only for image.")
    author: SkipValidation[list[AuthorItem]] = Field(_ABSENT, description="Only for author.")
    institution: SkipValidation[list[Institution]] = Field(_ABSENT, description="Only for author.")
    label: SkipValidation[BlockLabel | None] = Field(
        _ABSENT,
        description="Only for headings, image, table, equation and code: null removes it.",
    )
    caption: SkipValidation[Caption] = Field(
        _ABSENT, description="Only for image and table; null removes it."
    )
    align: SkipValidation[Align | None] = Field(
        _ABSENT, description="Only for table; null removes it."
    )
    start: SkipValidation[ListStart | None] = Field(
        _ABSENT, description="Only for list; null removes it."
    )


class AppendText(BlockEditBody):
    """Describes text to append."""

    blockId: BlockId
    text: SkipValidation[str | list[InlineLeaf]]


class TextEdit(ArticleBody):
    """A text, and what takes its place."""

    old: str = Field(
        description="Plain text, or inline Markdown as in doc/read, within one paragraph, heading, "
        "item, cell, formula, listing or title of an image."
    )
    new: str = Field(
        description="Inline Markdown; text without marks gets those of the replaced text. "
        "Citations stay."
    )
    all: bool = Field(False, description="Replace every occurrence; else there must be only one.")


class EditText(BlockEditBody):
    """Describes texts to replace, all or none, in order."""

    edits: Annotated[
        list[TextEdit],
        Field(
            min_length=1,
            max_length=200,
            fail_fast=True,
            description="Texts of at most 20,000 characters in all.",
        ),
    ]
    blockId: BlockId | None = Field(None, description="The block to search; all if omitted.")
    dryRun: bool = Field(False, description="Return what would change, and change nothing.")


class ApplyEdits(EditBody):
    """Describes edits to apply in order, all or none."""

    edits: Annotated[
        list[
            Annotated[
                dict[str, Any],
                Field(
                    json_schema_extra={
                        "properties": {"endpoint": {"type": "string"}},
                        "required": ["endpoint"],
                    }
                ),
            ]
        ],
        Field(
            min_length=1,
            max_length=200,
            fail_fast=True,
            description="The body of an edit, without sessionId, with its path below "
            "`/article/v1/` as `endpoint`, such as `block/insert`. In `blockId` and `anchorId`, "
            '`"$2.0"` is the first id of the blocks that the third edit inserts.',
        ),
    ]
    dryRun: bool = Field(False, description="Return the results, and change nothing.")


class Cite(BlockEditBody):
    """Describes a citation to set or clear, under a block or on one leaf."""

    blockId: BlockId | None = Field(None, description="Either this or `leafPath`.")
    leafPath: Path | None = Field(
        None,
        description="Either this or `blockId`: child indices from the root, or from `anchorId`.",
    )
    anchorId: BlockId | None = Field(
        None, description="With `leafPath`: the element that it counts from."
    )
    cite: SkipValidation[CiteValue] = Field(
        None,
        description="Id of a reference, or citations that share one pair of brackets; null clears "
        "the citation. Notes are not changed.",
    )


class AddReference(EditBody):
    """Describes a reference to add."""

    reference: SkipValidation[Reference]


class ImportReferences(EditBody):
    """A bibliography whose references are added, except those whose id the document has."""

    format: BibliographyFormat
    text: str = Field(description="The bibliography; at most 2,000 references in a document.")


class UpdateReference(EditBody):
    """Describes changes to the reference with that `id`; null removes a field."""

    reference: SkipValidation[Reference]


class DeleteReference(EditBody):
    """Names the reference to delete; its citations go too."""

    referenceId: str


class SetBlockStyle(BlockEditBody):
    """Describes changes to a block's own properties; null removes one."""

    model_config = _CHANGE

    blockId: BlockId
    style: SkipValidation[styles.ListCss | None] = Field(
        None,
        description="`columnGap` and `rowGap`: only for image and list; `alignItems`: "
        "only for list.",
    )
    indent: SkipValidation[styles.Indent] = Field(None, description="Only for paragraph.")
    serial: SkipValidation[styles.Serial] = Field(None, description="Only for equation and image.")
    isHideIndex: SkipValidation[styles.IsHideIndex] = Field(None, description="Only for h1 to h6.")
    textAlign: SkipValidation[styles.TextAlign] = Field(None, description="Only for table.")
    verticalAlign: SkipValidation[styles.VerticalAlign] = Field(None, description="Only for table.")
    firstRowBold: SkipValidation[styles.Flag] = Field(None, description="Only for table.")
    firstColBold: SkipValidation[styles.Flag] = Field(None, description="Only for table.")
    padding: SkipValidation[styles.Value] = Field(None, description="Only for table.")
    isHideLanguage: SkipValidation[styles.IsHideLanguage] = Field(
        None, description="Only for code."
    )
    nameWidth: SkipValidation[styles.NameWidth] = Field(None, description="Only for label.")
    twoColumn: SkipValidation[styles.Flag] = Field(None, description="Only for label.")
    columnGap: SkipValidation[styles.Value] = Field(None, description="Only for label.")
    rowGap: SkipValidation[styles.Value] = Field(None, description="Only for label.")
    language: SkipValidation[styles.Language] = Field(None, description="Only for abstract.")
    titlePosition: SkipValidation[styles.TitlePosition] = Field(
        None, description="Only for abstract."
    )
    titlePadding: SkipValidation[styles.Value] = Field(
        None, description="Only for abstract and image."
    )
    titleLanguage: SkipValidation[styles.Language] = Field(None, description="Only for image.")
    titleMargin: SkipValidation[styles.Value] = Field(None, description="Only for image.")
    columns: SkipValidation[styles.Columns] = Field(None, description="Only for image.")
    columnRatios: SkipValidation[styles.ColumnRatios] = Field(None, description="Only for image.")
    authorStyle: SkipValidation[styles.AuthorCss | None] = Field(
        None, description="Only for author."
    )
    institutionStyle: SkipValidation[styles.AuthorCss | None] = Field(
        None, description="Only for author."
    )
    orderType: SkipValidation[styles.OrderType] = Field(None, description="Only for list.")
    orderWidth: SkipValidation[styles.Value] = Field(None, description="Only for list.")
    indentWidth: SkipValidation[styles.Value] = Field(None, description="Only for list.")
    isTemplate: SkipValidation[styles.IsTemplate] = None


class SetLeafStyle(BlockEditBody):
    """Describes changes to the marks of a block's plain leaves, or of one; null removes one."""

    model_config = _CHANGE

    blockId: BlockId | None = Field(None, description="Either this or `leafPath`.")
    leafPath: Path | None = Field(
        None,
        description="Either this or `blockId`: child indices from the root, or from `anchorId`.",
    )
    anchorId: BlockId | None = Field(
        None, description="With `leafPath`: the element that it counts from."
    )
    bold: SkipValidation[bool | None] = None
    italic: SkipValidation[bool | None] = None
    textDecoration: SkipValidation[TextDecoration] = None
    color: SkipValidation[Color] = None
    script: SkipValidation[Script] = None


class SetProperties(EditBody):
    """Describes changes to what is known of a document, merged by RFC 7396."""

    properties: SkipValidation[Properties]


class SetArticleStyle(EditBody):
    """Describes changes to the document's style, merged by RFC 7396."""

    model_config = _CHANGE

    style: SkipValidation[styles.ArticleStyle]
