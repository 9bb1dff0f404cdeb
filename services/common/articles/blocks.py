"""Types of the parts of a document: leaves, blocks and references.

The article service validates each block, leaf and style by its type. It validates `children` one by
one, since the allowed types depend on depth and siblings, and references by the names of their
fields. `SkipJsonSchema[None]` accepts a null that means the same as a missing field.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, SkipValidation, with_config
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from services.common.articles import limits, styles
from services.common.articles.styles import CLOSED
from services.common.articles.texts import at_most, css_length, from_zero, not_empty, up_to

Name = Annotated[str, at_most(limits.LEAF_TEXT)]
BlockId = Annotated[
    str,
    at_most(limits.IDENTIFIER),
    Field(description="Assigned by the server; a given value is replaced."),
]
TextDecoration = Annotated[
    Literal["underline", "line-through"] | None,
    Field(description="Line under or through the text."),
]
Color = Annotated[
    Annotated[str, at_most(limits.CSS_VALUE)] | None, Field(description="A CSS colour.")
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


@with_config(CLOSED)
class Marks(TypedDict, total=False):
    """Marks of text; null removes a mark."""

    bold: bool | None
    italic: bool | None
    textDecoration: TextDecoration
    color: Color


@with_config(CLOSED)
class TextLeaf(TypedDict):
    """A run of text with the same marks."""

    type: NotRequired[
        Annotated[
            Literal["default", "latex", "inlinecode", "url"],
            Field(description="`default` if omitted; `url` requires the field `url`."),
        ]
    ]
    text: Annotated[str, Field(max_length=limits.LEAF_TEXT), at_most(limits.LEAF_TEXT)]
    url: NotRequired[
        Annotated[
            Annotated[str, not_empty, at_most(limits.URL)] | SkipJsonSchema[None],
            Field(description="With `url`: target of the link."),
        ]
    ]
    bold: NotRequired[bool | None]
    italic: NotRequired[bool | None]
    textDecoration: NotRequired[TextDecoration]
    color: NotRequired[Color]
    cite: NotRequired[
        Annotated[
            Annotated[str, at_most(limits.IDENTIFIER)] | None,
            Field(description="Id of a reference."),
        ]
    ]


@with_config(CLOSED)
class Title(TypedDict):
    """The document's title."""

    id: NotRequired[BlockId]
    type: Literal["title"]
    children: NotRequired[SkipValidation[list[TextLeaf]]]
    style: NotRequired[styles.ElementStyle]


@with_config(CLOSED)
class Paragraph(TypedDict):
    """A paragraph."""

    id: NotRequired[BlockId]
    type: Literal["paragraph"]
    children: NotRequired[SkipValidation[list[TextLeaf]]]
    style: NotRequired[styles.ParagraphStyle]


@with_config(CLOSED)
class Abstract(TypedDict):
    """The abstract."""

    id: NotRequired[BlockId]
    type: Literal["abstract"]
    children: NotRequired[SkipValidation[list[TextLeaf]]]
    style: NotRequired[styles.AbstractStyle]


@with_config(CLOSED)
class Heading(TypedDict):
    """A heading of one of three levels."""

    id: NotRequired[BlockId]
    type: Literal["h1", "h2", "h3"]
    children: NotRequired[SkipValidation[list[TextLeaf]]]
    style: NotRequired[styles.HeadingStyle]


@with_config(CLOSED)
class LabelItem(TypedDict):
    """A name and its text."""

    id: NotRequired[BlockId]
    type: Literal["label-item"]
    name: NotRequired[Name]
    children: NotRequired[SkipValidation[list[TextLeaf]]]
    style: NotRequired[styles.ElementStyle]


@with_config(CLOSED)
class Label(TypedDict):
    """Either text, or items with names."""

    id: NotRequired[BlockId]
    type: Literal["label"]
    children: NotRequired[SkipValidation[list[TextLeaf] | list[LabelItem]]]
    style: NotRequired[styles.LabelStyle]


@with_config(CLOSED)
class Equation(TypedDict):
    """A formula on its own line."""

    id: NotRequired[BlockId]
    type: Literal["equation"]
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
    children: NotRequired[SkipValidation["list[TextLeaf | List]"]]
    style: NotRequired[styles.ElementStyle]


@with_config(CLOSED)
class List(TypedDict):
    """A list, down to 8 levels of elements."""

    id: NotRequired[BlockId]
    type: Literal["list"]
    children: NotRequired[SkipValidation[list[ListItem]]]
    style: NotRequired[styles.ListStyle]


@with_config(CLOSED)
class TableCell(TypedDict):
    """A cell that covers one or more slots."""

    id: NotRequired[BlockId]
    type: Literal["table-cell"]
    colSpan: NotRequired[Annotated[int, Field(ge=1), up_to(limits.TABLE_COLUMNS)]]
    rowSpan: NotRequired[Annotated[int, Field(ge=1), up_to(limits.TABLE_ROWS)]]
    children: NotRequired[SkipValidation[list[TextLeaf]]]
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
    rowLength: NotRequired[Count]
    colLength: NotRequired[Count]
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
class VoidContent(TypedDict, total=False):
    """The fields of blocks without children."""

    equation: Latex
    code: Source
    language: SourceLanguage
    image: ImageItems
    author: AuthorItems
    institution: Institutions


Block = Annotated[
    Title
    | Paragraph
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
Children = list[TextLeaf] | list[ListItem] | list[TableRow] | list[TableCell] | list[LabelItem]


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
