"""Types of the parts of a document: blocks and references; those of leaves are in `leaves`.

The article service validates each block, leaf and style by its type. It validates `children` one by
one, since the allowed types depend on depth and siblings, and references by the names of their
fields. `SkipJsonSchema[None]` accepts a null that means the same as a missing field.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, SkipValidation, with_config
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from services.common.articles import limits, styles
from services.common.articles.leaves import InlineLeaf, NoteLeaf, RefLeaf, TextLeaf
from services.common.articles.styles import CLOSED
from services.common.articles.texts import (
    at_most,
    block_label,
    css_length,
    email,
    from_zero,
    language_tag,
    not_empty,
    one_line,
    orcid,
    up_to,
)

Name = Annotated[str, at_most(limits.LEAF_TEXT)]
BlockId = Annotated[
    str,
    at_most(limits.IDENTIFIER),
    Field(description="Assigned by the server; a given value is replaced."),
]
BlockLabel = Annotated[
    Annotated[str, Field(min_length=1, max_length=limits.LABEL), block_label]
    | SkipJsonSchema[None],
    Field(
        description="Name for leaves of type `ref`, unique in the document; without white space "
        'and `{}[]()<>#"\\|,;` and backticks.'
    ),
]
Latex = Annotated[
    str, Field(max_length=limits.EQUATION, description="LaTeX."), at_most(limits.EQUATION)
]
Source = Annotated[str, Field(max_length=limits.CODE), at_most(limits.CODE)]
SourceLanguage = Annotated[
    str, Field(max_length=limits.CODE_LANGUAGE), at_most(limits.CODE_LANGUAGE)
]
# JavaScript reads integers exactly below 2^53.
MAX_INTEGER = 2**53 - 1
NumberId = Annotated[int, Field(ge=0), up_to(MAX_INTEGER)]
Count = Annotated[int, from_zero, up_to(MAX_INTEGER)]


Caption = Annotated[
    SkipValidation[Annotated[list[InlineLeaf], Field(max_length=limits.INLINE_LEAVES)] | None],
    Field(description="Text beside the block; it counts among the figures or tables."),
]
Align = Annotated[
    list[Literal["start", "center", "end"] | None],
    Field(max_length=limits.TABLE_COLUMNS, fail_fast=True),
]
ListStart = Annotated[int, Field(ge=0), up_to(limits.LIST_START)]


@with_config(CLOSED)
class Title(TypedDict):
    """The document's title."""

    id: NotRequired[BlockId]
    type: Literal["title"]
    children: NotRequired[SkipValidation[list[InlineLeaf]]]
    style: NotRequired[styles.ElementStyle]


@with_config(CLOSED)
class Paragraph(TypedDict):
    """A paragraph."""

    id: NotRequired[BlockId]
    type: Literal["paragraph"]
    children: NotRequired[SkipValidation[list[InlineLeaf]]]
    style: NotRequired[styles.ParagraphStyle]


@with_config(CLOSED)
class Quote(TypedDict):
    """A quotation."""

    id: NotRequired[BlockId]
    type: Literal["quote"]
    children: NotRequired[SkipValidation[list[InlineLeaf]]]
    style: NotRequired[styles.ElementStyle]


@with_config(CLOSED)
class Abstract(TypedDict):
    """The abstract."""

    id: NotRequired[BlockId]
    type: Literal["abstract"]
    children: NotRequired[SkipValidation[list[InlineLeaf]]]
    style: NotRequired[styles.AbstractStyle]


@with_config(CLOSED)
class Heading(TypedDict):
    """A heading of one of six levels."""

    id: NotRequired[BlockId]
    type: Literal["h1", "h2", "h3", "h4", "h5", "h6"]
    label: NotRequired[BlockLabel]
    children: NotRequired[SkipValidation[list[InlineLeaf]]]
    style: NotRequired[styles.HeadingStyle]


@with_config(CLOSED)
class LabelItem(TypedDict):
    """A name and its text."""

    id: NotRequired[BlockId]
    type: Literal["label-item"]
    name: NotRequired[Name]
    children: NotRequired[SkipValidation[list[InlineLeaf]]]
    style: NotRequired[styles.ElementStyle]


@with_config(CLOSED)
class Label(TypedDict):
    """Either text, or items with names."""

    id: NotRequired[BlockId]
    type: Literal["label"]
    children: NotRequired[SkipValidation[list[InlineLeaf] | list[LabelItem]]]
    style: NotRequired[styles.LabelStyle]


@with_config(CLOSED)
class Equation(TypedDict):
    """A formula on its own line."""

    id: NotRequired[BlockId]
    type: Literal["equation"]
    label: NotRequired[BlockLabel]
    equation: NotRequired[
        Annotated[
            str, Field(max_length=limits.EQUATION, description="LaTeX."), at_most(limits.EQUATION)
        ]
    ]
    children: NotRequired[SkipValidation[Annotated[list[Any], Field(max_length=0)]]]
    style: NotRequired[styles.EquationStyle]


@with_config(CLOSED)
class Code(TypedDict):
    """A listing."""

    id: NotRequired[BlockId]
    type: Literal["code"]
    label: NotRequired[BlockLabel]
    code: NotRequired[Source]
    language: NotRequired[
        Annotated[str, Field(max_length=limits.CODE_LANGUAGE), at_most(limits.CODE_LANGUAGE)]
    ]
    children: NotRequired[SkipValidation[Annotated[list[Any], Field(max_length=0)]]]
    style: NotRequired[styles.CodeStyle]


@with_config(CLOSED)
class ImageItem(TypedDict):
    """A picture: at `url`, or in the file `fileId`."""

    url: NotRequired[
        Annotated[
            Annotated[str, at_most(limits.DATA_URL)] | SkipJsonSchema[None],
            Field(description="An http or https URL, or a data:image URL of at most 1 MiB."),
        ]
    ]
    fileId: NotRequired[
        Annotated[
            Annotated[str, not_empty, at_most(limits.IDENTIFIER)] | SkipJsonSchema[None],
            Field(description="Id of one of the caller's files."),
        ]
    ]
    alt: NotRequired[Name | SkipJsonSchema[None]]
    title: NotRequired[Name | SkipJsonSchema[None]]
    width: NotRequired[Annotated[int | float | str, css_length] | SkipJsonSchema[None]]
    height: NotRequired[Annotated[int | float | str, css_length] | SkipJsonSchema[None]]


ImageItems = Annotated[list[ImageItem], Field(fail_fast=True)]


@with_config(CLOSED)
class Image(TypedDict):
    """Pictures beside each other."""

    id: NotRequired[BlockId]
    type: Literal["image"]
    label: NotRequired[BlockLabel]
    caption: NotRequired[Caption]
    image: NotRequired[ImageItems]
    children: NotRequired[SkipValidation[Annotated[list[Any], Field(max_length=0)]]]
    style: NotRequired[styles.ImageStyle]


@with_config(CLOSED)
class AuthorItem(TypedDict):
    """An author."""

    id: NotRequired[
        Annotated[NumberId, Field(description="If omitted, the position in the list, from 1.")]
    ]
    name: Name
    institutionId: NotRequired[
        Annotated[NumberId, Field(description="Id of an institution; 0 for none.")]
    ]
    institutionIds: NotRequired[
        Annotated[
            Annotated[list[NumberId], Field(max_length=limits.INSTITUTIONS_OF_AUTHOR)]
            | SkipJsonSchema[None],
            Field(description="Ids of several institutions; `institutionId` is the first."),
        ]
    ]
    orcid: NotRequired[Annotated[str, orcid] | SkipJsonSchema[None]]
    email: NotRequired[Annotated[str, email] | SkipJsonSchema[None]]
    isStar: NotRequired[
        Annotated[bool, Field(description="Whether the author is marked with a star.")]
    ]


@with_config(CLOSED)
class Institution(TypedDict):
    """An institution of authors."""

    id: NotRequired[
        Annotated[NumberId, Field(description="If omitted, the position in the list, from 1.")]
    ]
    name: Name


AuthorItems = Annotated[list[AuthorItem], Field(fail_fast=True)]
Institutions = Annotated[list[Institution], Field(fail_fast=True)]


@with_config(CLOSED)
class Author(TypedDict):
    """The authors and their institutions."""

    id: NotRequired[BlockId]
    type: Literal["author"]
    author: NotRequired[AuthorItems]
    institution: NotRequired[Institutions]
    children: NotRequired[SkipValidation[Annotated[list[Any], Field(max_length=0)]]]
    style: NotRequired[styles.AuthorStyle]


@with_config(CLOSED)
class ListItem(TypedDict):
    """A list item: its text, and optionally a nested list."""

    id: NotRequired[BlockId]
    type: Literal["list-item"]
    children: NotRequired[SkipValidation["list[TextLeaf | RefLeaf | NoteLeaf | List]"]]
    style: NotRequired[styles.ElementStyle]


@with_config(CLOSED)
class List(TypedDict):
    """A list, down to 8 levels of elements."""

    id: NotRequired[BlockId]
    type: Literal["list"]
    start: NotRequired[
        Annotated[
            ListStart | SkipJsonSchema[None], Field(description="First number; 1 if omitted.")
        ]
    ]
    children: NotRequired[SkipValidation[list[ListItem]]]
    style: NotRequired[styles.ListStyle]


@with_config(CLOSED)
class TableCell(TypedDict):
    """A cell that covers one or more slots."""

    id: NotRequired[BlockId]
    type: Literal["table-cell"]
    colSpan: NotRequired[Annotated[int, Field(ge=1), up_to(limits.TABLE_COLUMNS)]]
    rowSpan: NotRequired[Annotated[int, Field(ge=1), up_to(limits.TABLE_ROWS)]]
    children: NotRequired[SkipValidation[list[InlineLeaf]]]
    style: NotRequired[styles.ElementStyle]


Cells = Annotated[list[TableCell], Field(max_length=limits.TABLE_COLUMNS)]


@with_config(CLOSED)
class TableRow(TypedDict):
    """A row; a slot that a span covers has no cell."""

    id: NotRequired[BlockId]
    type: Literal["table-row"]
    children: NotRequired[SkipValidation[Cells]]
    style: NotRequired[styles.ElementStyle]


Rows = Annotated[list[TableRow], Field(max_length=limits.TABLE_ROWS)]


@with_config(CLOSED)
class Table(TypedDict):
    """A table; the server counts its rows and columns."""

    id: NotRequired[BlockId]
    type: Literal["table"]
    label: NotRequired[BlockLabel]
    caption: NotRequired[Caption]
    rowLength: NotRequired[Count]
    colLength: NotRequired[Count]
    align: NotRequired[
        Annotated[
            Align | SkipJsonSchema[None],
            Field(description="Alignment of each column; null and further ones: by the style."),
        ]
    ]
    children: NotRequired[SkipValidation[Rows]]
    style: NotRequired[styles.TableStyle]


# The type of each element, by its `type`.
ELEMENTS: dict[str, type] = {
    "title": Title,
    "paragraph": Paragraph,
    "abstract": Abstract,
    "h1": Heading,
    "h2": Heading,
    "h3": Heading,
    "h4": Heading,
    "h5": Heading,
    "h6": Heading,
    "quote": Quote,
    "label": Label,
    "list": List,
    "table": Table,
    "equation": Equation,
    "code": Code,
    "image": Image,
    "author": Author,
    "label-item": LabelItem,
    "list-item": ListItem,
    "table-row": TableRow,
    "table-cell": TableCell,
}


@with_config(CLOSED)
class BlockContent(TypedDict, total=False):
    """The fields of blocks beside their children; null removes an optional one."""

    equation: Latex
    code: Source
    language: SourceLanguage
    image: ImageItems
    author: AuthorItems
    institution: Institutions
    label: BlockLabel
    caption: Caption
    align: Align | None
    start: ListStart | None


@with_config(CLOSED)
class Properties(TypedDict, total=False):
    """The properties of a document as a whole; null removes one."""

    date: Annotated[
        Annotated[str, Field(max_length=limits.DATE), at_most(limits.DATE), one_line] | None,
        Field(description="Date of the document, as it is shown."),
    ]
    keywords: (
        Annotated[
            list[Annotated[str, at_most(limits.KEYWORD), one_line, not_empty]],
            Field(max_length=limits.KEYWORDS),
        ]
        | None
    )
    language: Annotated[
        Annotated[str, language_tag] | None,
        Field(description="Language of the text, such as `en` or `pt-BR` (BCP 47)."),
    ]
    direction: Annotated[Literal["ltr", "rtl"] | None, Field(description="Direction of the text.")]


Block = Annotated[
    Title
    | Paragraph
    | Quote
    | Abstract
    | Heading
    | Label
    | Equation
    | Code
    | Image
    | Author
    | List
    | Table
    | ListItem
    | TableRow
    | LabelItem,
    Field(discriminator="type"),
]
# The possible children of a block.
Children = list[InlineLeaf] | list[ListItem] | list[TableRow] | list[TableCell] | list[LabelItem]


@with_config(ConfigDict(extra="allow", strict=True))
class Reference(TypedDict, total=False):
    """A source that the document cites.

    Any further name of letters, digits, `_` and `-` may hold a string or a list of them.
    """

    id: Annotated[str, Field(description="Assigned by the server if omitted.")]
    name: str | None
    tag: str | None
    author: list[str] | None
    title: str | None
    journal: str | None
    year: str | None
    type: str | None
    volume: str | None
    issue: str | None
    pages: str | None
    publisher: str | None
    doi: str | None
    url: str | None
    isbn: str | None
    abstract: str | None
