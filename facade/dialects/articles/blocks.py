"""The wire types of what a document is made of: leaves, blocks, references.

They document; what they say is checked by the tree behind the service, which alone knows
what may stand where. An `id` that a caller sends with a new block is replaced.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from facade.dialects.articles import styles
from facade.dialects.articles.styles import CLOSED

MAX_LEAF = 50_000

BlockId = Annotated[str, Field(description="Made by the server; one sent is replaced.")]
TextDecoration = Annotated[
    Literal["underline", "line-through"] | None, Field(description="A line.")
]
Color = Annotated[str | None, Field(description="A CSS colour.")]


@with_config(CLOSED)
class TextLeaf(TypedDict):
    """A run of text with the same marks."""

    type: NotRequired[
        Annotated[
            Literal["default", "latex", "inlinecode", "url"],
            Field(description="`default` when left out; `url` needs the field `url`."),
        ]
    ]
    text: Annotated[str, Field(max_length=MAX_LEAF)]
    url: NotRequired[Annotated[str, Field(description="With `url`: where it leads.")]]
    bold: NotRequired[bool | None]
    italic: NotRequired[bool | None]
    textDecoration: NotRequired[TextDecoration]
    color: NotRequired[Color]
    cite: NotRequired[Annotated[str | None, Field(description="Id of a reference.")]]


@with_config(CLOSED)
class Title(TypedDict):
    """The document's title."""

    id: NotRequired[BlockId]
    type: Literal["title"]
    children: NotRequired[list[TextLeaf]]
    style: NotRequired[styles.ElementStyle]


@with_config(CLOSED)
class Paragraph(TypedDict):
    """A paragraph."""

    id: NotRequired[BlockId]
    type: Literal["paragraph"]
    children: NotRequired[list[TextLeaf]]
    style: NotRequired[styles.ParagraphStyle]


@with_config(CLOSED)
class Abstract(TypedDict):
    """The abstract."""

    id: NotRequired[BlockId]
    type: Literal["abstract"]
    children: NotRequired[list[TextLeaf]]
    style: NotRequired[styles.AbstractStyle]


@with_config(CLOSED)
class Heading(TypedDict):
    """A heading of one of three levels."""

    id: NotRequired[BlockId]
    type: Literal["h1", "h2", "h3"]
    children: NotRequired[list[TextLeaf]]
    style: NotRequired[styles.HeadingStyle]


@with_config(CLOSED)
class LabelItem(TypedDict):
    """A name and what belongs to it."""

    id: NotRequired[BlockId]
    type: Literal["label-item"]
    name: NotRequired[str]
    children: NotRequired[list[TextLeaf]]
    style: NotRequired[styles.ElementStyle]


@with_config(CLOSED)
class Label(TypedDict):
    """Text, or items under names; not both."""

    id: NotRequired[BlockId]
    type: Literal["label"]
    children: NotRequired[list[TextLeaf] | list[LabelItem]]
    style: NotRequired[styles.LabelStyle]


@with_config(CLOSED)
class Equation(TypedDict):
    """A formula on its own line."""

    id: NotRequired[BlockId]
    type: Literal["equation"]
    equation: NotRequired[Annotated[str, Field(max_length=10_000, description="LaTeX.")]]
    children: NotRequired[Annotated[list[Any], Field(max_length=0)]]
    style: NotRequired[styles.EquationStyle]


@with_config(CLOSED)
class Code(TypedDict):
    """A listing."""

    id: NotRequired[BlockId]
    type: Literal["code"]
    code: NotRequired[Annotated[str, Field(max_length=200_000)]]
    language: NotRequired[Annotated[str, Field(max_length=64)]]
    children: NotRequired[Annotated[list[Any], Field(max_length=0)]]
    style: NotRequired[styles.CodeStyle]


@with_config(CLOSED)
class ImageItem(TypedDict):
    """A picture: at `url`, or in the file `fileId`."""

    url: NotRequired[
        Annotated[str, Field(description="http, https, or data:image of at most 1 MiB.")]
    ]
    fileId: NotRequired[Annotated[str, Field(description="A file of the caller's.")]]
    alt: NotRequired[str]
    title: NotRequired[str]
    width: NotRequired[int | float | str]
    height: NotRequired[int | float | str]


@with_config(CLOSED)
class Image(TypedDict):
    """Pictures beside each other."""

    id: NotRequired[BlockId]
    type: Literal["image"]
    image: NotRequired[list[ImageItem]]
    children: NotRequired[Annotated[list[Any], Field(max_length=0)]]
    style: NotRequired[styles.ImageStyle]


@with_config(CLOSED)
class AuthorItem(TypedDict):
    """An author."""

    id: NotRequired[Annotated[int, Field(ge=0, description="Its place from 1 if left out.")]]
    name: str
    institutionId: NotRequired[Annotated[int, Field(ge=0, description="0: none.")]]
    isStar: NotRequired[Annotated[bool, Field(description="Marked by a star.")]]


@with_config(CLOSED)
class Institution(TypedDict):
    """Where authors work."""

    id: NotRequired[Annotated[int, Field(ge=0, description="Its place from 1 if left out.")]]
    name: str


@with_config(CLOSED)
class Author(TypedDict):
    """The authors, and where they work."""

    id: NotRequired[BlockId]
    type: Literal["author"]
    author: NotRequired[list[AuthorItem]]
    institution: NotRequired[list[Institution]]
    children: NotRequired[Annotated[list[Any], Field(max_length=0)]]
    style: NotRequired[styles.AuthorStyle]


@with_config(CLOSED)
class ListItem(TypedDict):
    """An item: its text, and one more list under it."""

    id: NotRequired[BlockId]
    type: Literal["list-item"]
    children: NotRequired["list[TextLeaf | List]"]
    style: NotRequired[styles.ElementStyle]


@with_config(CLOSED)
class List(TypedDict):
    """A list, down to 8 levels of elements."""

    id: NotRequired[BlockId]
    type: Literal["list"]
    children: NotRequired[list[ListItem]]
    style: NotRequired[styles.ListStyle]


@with_config(CLOSED)
class TableCell(TypedDict):
    """A cell over one or more slots."""

    id: NotRequired[BlockId]
    type: Literal["table-cell"]
    colSpan: NotRequired[Annotated[int, Field(ge=1)]]
    rowSpan: NotRequired[Annotated[int, Field(ge=1)]]
    children: NotRequired[list[TextLeaf]]
    style: NotRequired[styles.ElementStyle]


@with_config(CLOSED)
class TableRow(TypedDict):
    """A row; a slot that a span covers has no cell."""

    id: NotRequired[BlockId]
    type: Literal["table-row"]
    children: NotRequired[Annotated[list[TableCell], Field(max_length=50)]]
    style: NotRequired[styles.ElementStyle]


@with_config(CLOSED)
class Table(TypedDict):
    """A table; the server counts its rows and columns."""

    id: NotRequired[BlockId]
    type: Literal["table"]
    rowLength: NotRequired[int]
    colLength: NotRequired[int]
    children: NotRequired[Annotated[list[TableRow], Field(max_length=200)]]
    style: NotRequired[styles.TableStyle]


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
# What a block may hold.
Children = list[TextLeaf] | list[ListItem] | list[TableRow] | list[TableCell] | list[LabelItem]


@with_config(ConfigDict(extra="allow", strict=True))
class Reference(TypedDict, total=False):
    """A source that the document cites.

    Any further name of letters, digits, `_` and `-` may hold a string or a list of them.
    """

    id: Annotated[str, Field(description="Made by the server when left out.")]
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
