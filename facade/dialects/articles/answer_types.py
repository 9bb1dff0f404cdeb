"""Wire types of the `data` of HTTP responses.

Blocks, styles and references are JSON already, and are passed on unchanged.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.common.articles.blocks import Block, Properties, Reference, TableCell
from services.common.articles.styles import ArticleStyle

# The default of a field that may be omitted.
_ABSENT: Any = None

Revision = Annotated[int, Field(description="Number of operations committed to the document.")]
UnixSeconds = Annotated[int, Field(description="Unix seconds.")]


class _Answer(BaseModel):
    model_config = ConfigDict(defer_build=True)


class _EditAnswer(_Answer):
    revision: Revision
    suggestionId: Annotated[
        str,
        Field(description="With `suggest`: id of the suggestion; other ids are those it makes."),
    ] = _ABSENT


class Session(_Answer):
    """An open document."""

    sessionId: str
    blockCount: Annotated[int, Field(description="Number of top-level blocks.")]
    reused: Annotated[
        bool, Field(description="Whether an existing session of the caller was reused.")
    ]
    revision: Revision


class OpenSession(_Answer):
    """Somebody who has the document open."""

    user: str
    name: Annotated[str, Field(description="Empty if the user was deleted.")]
    own: Annotated[bool, Field(description="Whether it is a session of the caller's.")]
    this: Annotated[bool, Field(description="Whether it is the session of the request.")]
    clientId: Annotated[
        str, Field(description="Of the caller's sessions: the client that named itself.")
    ] = _ABSENT
    idle: Annotated[int, Field(description="Milliseconds since the last call that named it.")]


class Sessions(_Answer):
    """Who has a document open: at most 100 live sessions, the latest used first."""

    sessions: list[OpenSession]


class Done(_Answer):
    """Success."""

    ok: Literal[True]


class Edited(Done, _EditAnswer):
    """Success of an edit, which is durable."""


class SharePermission(_Answer):
    """The permissions of a document."""

    operation: Annotated[bool, Field(description="Whether the caller may edit the document.")]
    permission: Annotated[
        Literal["private", "group-only"],
        Field(description="Who can read and edit the document: its creator, or its group."),
    ]


class ArticleNode(_Answer):
    """A document in a list."""

    outer_id: Annotated[str, Field(description="Id of the document.")]
    name: str
    group: int
    sharePermission: SharePermission
    children: Annotated[list[Any], Field(max_length=0)]
    fileholderDeep: Annotated[int, Field(description="Depth in the group; 0 at the group's root.")]
    time_create: UnixSeconds


class ArticleGroup(_Answer):
    """A group and its documents; group 0 is the private one."""

    group_id: int
    name: str
    isCreator: bool
    articles: list[ArticleNode]
    time_create: UnixSeconds


class Articles(_Answer):
    """The caller's groups, the private one first."""

    articles: list[ArticleGroup]


class Created(_Answer):
    """The created document."""

    article: ArticleNode
    group: int


class Deleted(_Answer):
    """The deleted document."""

    article: Annotated[str, Field(description="Id of the document.")]


class BlockSummary(_Answer):
    """A block as Markdown."""

    id: str
    type: str
    text: str


class Document(_Answer):
    """A whole document."""

    blocks: list[BlockSummary]
    text: Annotated[str, Field(description="The document, or the requested blocks, as Markdown.")]
    style: ArticleStyle
    reference: list[Reference]
    version: Annotated[str, Field(description="Version of the document format.")]
    revision: Revision
    properties: Annotated[Properties, Field(description="What is set; absent if nothing is.")] = (
        _ABSENT
    )


class WholeBlock(_Answer):
    """One block."""

    block: Block | TableCell
    path: Annotated[list[int], Field(description="Child indices from the root.")]
    style: Annotated[
        dict[str, Any],
        Field(description="Effective style of the block, including the document's style."),
    ]
    text: Annotated[str, Field(description="The block as Markdown.")]
    revision: Revision


class Blocks(_Answer):
    """Blocks, all of one revision."""

    blocks: Annotated[list[WholeBlock], Field(description="In the order of the requested ids.")]
    revision: Revision


class ShownLabel(_Answer):
    """The text of references to a block."""

    text: Annotated[str, Field(description="Such as `Figure 3`.")]
    number: Annotated[str, Field(description="Such as `3`; with `form: number`.")]


class DocumentChanges(_Answer):
    """The changes of a document; only the revision if there are none."""

    revision: Revision
    order: Annotated[list[str], Field(description="Ids of all top-level blocks, in order.")] = (
        _ABSENT
    )
    changed: Annotated[
        list[str],
        Field(
            description="Ids of blocks that are new, or whose content, style or Markdown changed."
        ),
    ] = _ABSENT
    style: ArticleStyle = _ABSENT
    reference: list[Reference] = _ABSENT
    cited: Annotated[
        list[str],
        Field(
            description="Ids of the cited references, in the order of their citation "
            "numbers, from 1."
        ),
    ] = _ABSENT
    properties: Annotated[Properties, Field(description="What is set; absent if nothing is.")] = (
        _ABSENT
    )
    labels: Annotated[
        dict[str, ShownLabel],
        Field(description="By labels of blocks; absent if no block has one."),
    ] = _ABSENT


class Inserted(_EditAnswer):
    """The blocks that an edit inserted, copied or converted, or new rows or cells of a table."""

    ids: Annotated[list[str], Field(description="Their ids, in order.")]


class TextEdited(_EditAnswer):
    """The blocks in which texts were replaced."""

    changed: Annotated[list[str], Field(description="Ids of the changed blocks, in order.")]


class Omission(_Answer):
    """A part of a text, or of a document, that is not in the result."""

    place: Annotated[str, Field(description="The id of a reference, a line or an entry.")]
    reason: str


class ReferencesImported(_EditAnswer):
    """The added references, and what was left out."""

    ids: Annotated[list[str], Field(description="Ids of the added references, in order.")]
    skipped: Annotated[
        list[Omission],
        Field(description="Entries, and fields of entries, that the document does not hold."),
    ]


class Written(_EditAnswer):
    """The blocks of a text, and what was lost."""

    ids: Annotated[list[str], Field(description="Ids of the blocks, in order.")]
    lost: Annotated[
        list[Omission],
        Field(description="At most 1,000 parts of the text that documents do not hold."),
    ]


class ReferencesExported(_Answer):
    """References in a format."""

    text: str
    skipped: Annotated[list[Omission], Field(description="Fields that the format cannot hold.")]
    revision: Revision


class Exported(_Answer):
    """A document in a format: its text, or a file."""

    text: Annotated[str, Field(description="The document, unless it is in a file.")] = ""
    fileId: Annotated[str, Field(description="Id of the new file, with `as: file`.")] = ""
    filename: str
    mimeType: str
    size: Annotated[int, Field(alias="bytes", description="Size of the document in bytes.")]
    lost: Annotated[
        list[Omission],
        Field(description="At most 1,000 parts of the document that are missing or changed."),
    ]
    revision: Revision


class Imported(_EditAnswer):
    """The blocks and references of a document, and what was lost."""

    ids: Annotated[list[str], Field(description="Ids of the blocks, in order.")]
    referenceIds: Annotated[list[str], Field(description="Ids of the added references.")]
    lost: Annotated[
        list[Omission],
        Field(description="At most 1,000 parts of the document that documents here do not hold."),
    ]


class FormattedCitation(_Answer):
    """A citation in a style."""

    blockId: Annotated[str, Field(description="The element that cites.")]
    referenceIds: list[str]
    text: Annotated[str, Field(description="Markdown.")]


class FormattedReference(_Answer):
    """A reference in a style."""

    referenceId: str
    text: Annotated[str, Field(description="Markdown.")]


class ReferencesFormatted(_Answer):
    """Citations in document order, and all references in the order of the style."""

    citations: list[FormattedCitation]
    bibliography: list[FormattedReference]
    revision: Revision


class EditsApplied(_EditAnswer):
    """The results of edits, and the revision after all of them."""

    results: Annotated[
        list[dict[str, Any]],
        Field(description="For each edit the data of its endpoint, without `revision`."),
    ]


class ReferenceAdded(_EditAnswer):
    """The added reference."""

    id: str


class OutlineHeading(_Answer):
    """A block of the type title, or h1 to h6."""

    id: str
    path: Annotated[list[int], Field(description="Child indices from the root.")]
    type: str
    text: Annotated[str, Field(description="Plain text, at most 200 characters.")]
    words: Annotated[int, Field(description="Words in the blocks up to the next heading.")]


class Outline(_Answer):
    """The headings of a document."""

    headings: list[OutlineHeading]
    revision: Revision


class Place(_Answer):
    """A place of a text."""

    blockId: Annotated[str, Field(description="Id of the block, item or cell.")]
    offset: Annotated[int, Field(description="Position in its text, in characters.")]
    snippet: Annotated[str, Field(description="The text there, with some text around it.")]


class Places(_Answer):
    """The places of a text."""

    places: list[Place]
    hasMore: Annotated[bool, Field(description="Whether there are more.")]
    revision: Revision


class HistoryEntry(_Answer):
    """An edit in the history."""

    revision: Annotated[int, Field(description="The revision that it made.")]
    time: Annotated[int, Field(description="Unix milliseconds.")]
    own: Annotated[bool, Field(description="Whether the caller made it.")]
    operation: Annotated[
        str,
        Field(
            description="insert, delete, replace, append, restore, cite, style-leaf, style-block, "
            "style-article, add-reference, update-reference, delete-reference, sequence (several "
            "edits), undo or redo."
        ),
    ]
    reversed: Annotated[
        int, Field(description="For undo and redo: the revision that it reverses.")
    ] = _ABSENT


class HistoryPage(_Answer):
    """Edits, the newest first."""

    entries: list[HistoryEntry]
    hasMore: Annotated[bool, Field(description="Whether there are older ones.")]


class Difference(_Answer):
    """A block that differs between two revisions."""

    blockId: str
    before: Annotated[str, Field(description="Its Markdown; omitted for a new block.")] = _ABSENT
    after: Annotated[str, Field(description="Its Markdown; omitted for a removed one.")] = _ABSENT


class Differences(_Answer):
    """Differences between two revisions."""

    blocks: Annotated[
        list[Difference],
        Field(description="New and changed blocks in order, then removed ones; at most 500."),
    ]
    hasMore: Annotated[bool, Field(description="Whether there are more.")]
