"""Wire types of the requests, for validation and for the OpenAPI document.

Fields marked `SkipValidation` are sent to the service as JSON and validated there (see
`facade.dialects.articles.reading`); their types here are only documentation. Unknown fields are
ignored, except in requests whose fields are themselves the change.

Source: the service interface, Document editing.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.common.articles import limits

INT64 = 2**63

Index = Annotated[int, Field(ge=0)]
# Validation stops at the first wrong index: reporting a million would take seconds.
Path = Annotated[list[Index], Field(min_length=1, fail_fast=True)]
SessionId = Annotated[str, Field(description="Session id, from session/create.")]
BlockId = Annotated[str, Field(description="Block id, from block/insert or doc/read.")]
PictureFiles = Annotated[
    dict[str, Annotated[str, Field(max_length=limits.IDENTIFIER)]],
    Field(
        max_length=limits.FILES_A_TEXT,
        description="Ids of files of the caller by the addresses of pictures in the text, such as "
        "`figures/a.png`.",
    ),
]


class ArticleBody(BaseModel):
    """A body of a request about documents."""

    model_config = ConfigDict(strict=True, extra="ignore", defer_build=True)


class CreateSession(ArticleBody):
    """Names the document to open."""

    docId: str = Field(description="Document id, from doc/create or doc/list.")
    clientId: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        None,
        description="Name of a client, in printable ASCII characters, such as one of several "
        "agents with one key: it has a session of its own, which no other ends.",
    )


class OfSession(ArticleBody):
    """Names a session."""

    sessionId: SessionId


class ListArticles(ArticleBody):
    """A request without fields."""


class CreateArticle(ArticleBody):
    """Describes the document to create."""

    group: Annotated[int, Field(ge=-INT64, lt=INT64)] | None = Field(
        0, description="Id of one of the caller's groups; 0 is the private group."
    )
    name: str | None = Field(None, description="At most 200 characters; `Untitled` if omitted.")
    source: str | None = Field(
        None,
        alias="from",
        description="Id of a document that the caller may read, whose style and blocks the new one "
        "gets.",
    )
    content: Literal["template", "all"] = Field(
        "template",
        description="With `from`: only the top-level blocks with `isTemplate`, and the references "
        "that they cite, or all blocks and references.",
    )


class DeleteArticle(ArticleBody):
    """Names the document to delete."""

    docId: str


class ReadArticle(OfSession):
    """Names a session, and optionally some blocks of its document."""

    first: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        0, alias="from", description="Position of the first block."
    )
    limit: Annotated[int, Field(ge=1, lt=2**32)] | None = Field(
        None, description="Maximum number of blocks; all others if omitted."
    )
    blockIds: Annotated[list[BlockId], Field(max_length=500, fail_fast=True)] | None = Field(
        None, description="Only these blocks, in this order; not with `from` and `limit`."
    )
    images: Literal["url", "none"] = Field(
        "url",
        description="`none` leaves images out. With `url`, one that the document contains as a "
        "data: URL is named by the fields of doc/image.",
    )
    citations: Literal["number", "key"] = Field(
        "number",
        description="`key`: citations name references by their ids, as in `[@newton, p. 3]`, so "
        "that doc/write reads them in any document with these references.",
    )


class ReadBlock(OfSession):
    """Names the block to read."""

    blockId: BlockId


class ReadBlocks(OfSession):
    """Names the blocks to read."""

    blockIds: Annotated[list[BlockId], Field(min_length=1, max_length=500, fail_fast=True)]


class ReadImage(OfSession):
    """Names a picture of an image block."""

    blockId: BlockId
    index: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        0, description="Position of the picture in the block."
    )


class ReadChanges(OfSession):
    """Names the revision that the caller has seen."""

    since: Annotated[int, Field(ge=0, lt=INT64)] | None = Field(
        None, description="Last known revision; if omitted, every block counts as changed."
    )
    waitSeconds: Annotated[int, Field(ge=0, le=30)] = Field(
        0, description="How long to wait for a change if there is none since `since`."
    )


class RepeatableBody(OfSession):
    """Names a session, and optionally the request."""

    requestId: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        None,
        description="Id of this request, in printable ASCII characters: sent again within 24 "
        "hours, it is answered as the first time, and nothing is applied.",
    )


BibliographyFormat = Literal["bibtex", "biblatex", "ris", "csl-json"]


class ExportReferences(OfSession):
    """Names references, and the format to return them in."""

    format: BibliographyFormat
    referenceIds: Annotated[list[str], Field(max_length=2_000, fail_fast=True)] | None = Field(
        None, description="Ids of references; all if omitted."
    )


ExportFormat = Literal[
    "markdown",
    "html",
    "pdf",
    "docx",
    "latex",
    "typst",
    "epub",
    "jats",
    "odt",
    "bibtex",
    "csl-json",
]
Style = Annotated[str, Field(max_length=100)]


class ExportArticle(OfSession):
    """Names the format to return a document in."""

    format: ExportFormat
    style: Style | None = Field(
        None,
        description="Style of the citations, by its name at zotero.org/styles (`apa`); that of "
        "the article if omitted, and `[1]` if it has none.",
    )
    target: Literal["text", "file"] = Field(
        "text", alias="as", description="`file` stores a new file of the caller."
    )


class ImportArticle(RepeatableBody):
    """A document in another format."""

    format: Literal["markdown", "docx", "latex", "html", "jats"]
    text: str | None = Field(None, description="The document; or `fileId`, as for `docx`.")
    fileId: Annotated[str, Field(max_length=200)] | None = Field(
        None,
        description="Id of a file of the caller, at most 16 MiB; except for `docx`, also a ZIP "
        "archive of the document with what it includes, its .bib files and its pictures.",
    )
    position: Annotated[int, Field(ge=0, lt=2**32)] | None = Field(
        None, description="Position of the first block; the end if omitted."
    )
    ifRevision: Annotated[int, Field(ge=0, lt=INT64)] | None = Field(
        None, description="The last known revision; if there is a newer one, nothing is done."
    )
    suggest: bool = Field(False, description="As in an edit.")
    files: PictureFiles | None = None


class FormatReferences(OfSession):
    """Names the style of citations and references."""

    style: Style | None = Field(
        None, description="As in doc/export; required if the article has none."
    )
    locale: Annotated[str, Field(max_length=35)] | None = Field(
        None, description="Language of the references (`de`, `en-GB`); by default the style's."
    )


class FindText(OfSession):
    """Names a text to find."""

    query: Annotated[str, Field(min_length=1, max_length=1_000)]
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    regex: bool = Field(
        False, description="Whether `query` is a regular expression, in the syntax of RE2."
    )


Revision = Annotated[int, Field(ge=0, lt=INT64)]


class ListHistory(OfSession):
    """Names a page of the history."""

    before: Revision | None = Field(None, description="Only edits below this revision.")
    limit: Annotated[int, Field(ge=1, le=500)] = 500


class RestoreRevision(RepeatableBody):
    """Names the revision to restore."""

    revision: Revision = Field(description="0 is the empty document.")


class ReadDifferences(OfSession):
    """Names the revisions to compare."""

    first: Revision = Field(alias="from", description="The earlier revision.")
    last: Revision | None = Field(
        None, alias="to", description="The later revision; the current one if omitted."
    )
