"""Types of styles: their values, and the properties of each block type.

In a change of style (block/style, style/article), null removes a value.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from services.common.articles import limits
from services.common.articles.texts import at_most, css_value

CLOSED = ConfigDict(extra="forbid", strict=True)

# A CSS value such as a length, a colour or a weight, as text or as a number.
Value = Annotated[str | int | float | None, css_value]
Flag = bool | None
Ratio = Annotated[int | float, Field(gt=0)]

Language = Annotated[
    Literal["none", "zh", "en"] | None,
    Field(description="Language of the block's heading; `none` if omitted."),
]
TextAlign = Annotated[
    Literal["center", "start", "end"] | None, Field(description="Horizontal alignment of cells.")
]
TitlePosition = Annotated[
    Literal["left", "top"] | None, Field(description="Position of the block's heading.")
]
VerticalAlign = Annotated[
    Literal["top", "middle", "bottom", "start", "center", "end"] | None,
    Field(description="Vertical alignment of cells in their rows."),
]
OrderType = Annotated[
    Literal["disc", "decimal", "lower-alpha", "upper-alpha", "lower-roman", "upper-roman"] | None,
    Field(description="Marker of the items; `disc` if omitted."),
]
Columns = Annotated[
    Annotated[int, Field(ge=1, le=3)] | None, Field(description="Number of pictures side by side.")
]
ColumnRatios = Annotated[
    Annotated[list[Ratio], Field(min_length=1, max_length=3, fail_fast=True)] | None,
    Field(description="Relative widths of the columns."),
]
NameWidth = Annotated[
    Annotated[str, at_most(limits.CSS_VALUE)] | None,
    Field(description="Width of the names, a CSS length."),
]
Indent = Annotated[Flag, Field(description="Whether the first line is indented.")]
Serial = Annotated[Flag, Field(description="Whether the block is numbered.")]
IsHideIndex = Annotated[Flag, Field(description="Whether the number is hidden.")]
IsHideLanguage = Annotated[Flag, Field(description="Whether the name of the language is hidden.")]
CitationStyle = Annotated[
    Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$"), at_most(100)] | None,
    Field(description="Style of citations in exports, by its name at zotero.org/styles: `apa`."),
]
IsTemplate = Annotated[Flag, Field(description="Whether the block belongs to a template.")]


@with_config(CLOSED)
class InheritableCss(TypedDict, total=False):
    """CSS that blocks inherit from the document."""

    fontFamily: Value
    fontSize: Value
    fontWeight: Value
    color: Value
    lineHeight: Value
    letterSpacing: Value


@with_config(CLOSED)
class CssStyle(InheritableCss, total=False):
    """CSS of a block."""

    backgroundColor: Value
    justifyContent: Value
    marginTop: Value
    marginBottom: Value
    width: Value
    borderStyle: Value
    borderWidth: Value
    borderRadius: Value
    borderColor: Value


@with_config(CLOSED)
class ImageCss(CssStyle, total=False):
    """CSS of pictures beside each other."""

    columnGap: Value
    rowGap: Value


@with_config(CLOSED)
class ListCss(ImageCss, total=False):
    """CSS of a list."""

    alignItems: Value


@with_config(CLOSED)
class AuthorCss(InheritableCss, total=False):
    """CSS of the names, or of the institutions, in an author block."""

    justifyContent: Value
    width: Value
    gap: Value


@with_config(CLOSED)
class ElementStyle(TypedDict, total=False):
    """Style of a block without specific properties; base of most other styles."""

    style: Annotated[CssStyle | None, Field(description="CSS of the block.")]
    isTemplate: IsTemplate


@with_config(CLOSED)
class ParagraphStyle(ElementStyle, total=False):
    """Style of a paragraph."""

    indent: Indent


@with_config(CLOSED)
class HeadingStyle(ElementStyle, total=False):
    """Style of a heading, h1 to h6."""

    isHideIndex: IsHideIndex


@with_config(CLOSED)
class AbstractStyle(ElementStyle, total=False):
    """Style of an abstract."""

    language: Language
    titlePosition: TitlePosition
    titlePadding: Value


@with_config(CLOSED)
class LabelStyle(ElementStyle, total=False):
    """Style of a label."""

    nameWidth: NameWidth
    columnGap: Value
    rowGap: Value
    twoColumn: Flag


@with_config(CLOSED)
class EquationStyle(ElementStyle, total=False):
    """Style of an equation."""

    serial: Serial


@with_config(CLOSED)
class CodeStyle(ElementStyle, total=False):
    """Style of code."""

    isHideLanguage: IsHideLanguage


@with_config(CLOSED)
class ImageStyle(TypedDict, total=False):
    """Style of images."""

    style: Annotated[ImageCss | None, Field(description="CSS of the block.")]
    isTemplate: IsTemplate
    serial: Serial
    titleLanguage: Language
    titleMargin: Value
    titlePadding: Value
    columns: Columns
    columnRatios: ColumnRatios


@with_config(CLOSED)
class AuthorStyle(ElementStyle, total=False):
    """Style of authors."""

    authorStyle: Annotated[AuthorCss | None, Field(description="CSS of the names.")]
    institutionStyle: Annotated[AuthorCss | None, Field(description="CSS of the institutions.")]


@with_config(CLOSED)
class ListStyle(TypedDict, total=False):
    """Style of a list."""

    style: Annotated[ListCss | None, Field(description="CSS of the block.")]
    isTemplate: IsTemplate
    orderType: OrderType
    orderWidth: Value
    indentWidth: Value


@with_config(CLOSED)
class TableStyle(ElementStyle, total=False):
    """Style of a table."""

    textAlign: TextAlign
    verticalAlign: VerticalAlign
    firstRowBold: Flag
    firstColBold: Flag
    padding: Value


@with_config(CLOSED)
class Margin(TypedDict, total=False):
    """Margins of a page."""

    top: Value
    right: Value
    bottom: Value
    left: Value


@with_config(CLOSED)
class GlobalStyle(InheritableCss, total=False):
    """Style of the whole document."""

    paperSize: Literal["A3", "A4", "A5", "B5", "Letter", "Legal"] | None
    orientation: Literal["portrait", "landscape"] | None
    citationStyle: CitationStyle
    margin: Margin | None


# `global` is a keyword of Python, so this type cannot be written as a class.
_Global = TypedDict("_Global", {"global": GlobalStyle | None}, total=False)


@with_config(CLOSED)
class ArticleStyle(_Global, total=False):
    """Style of a document: of the whole document, and of each block type."""

    title: ElementStyle | None
    paragraph: ParagraphStyle | None
    abstract: AbstractStyle | None
    h1: HeadingStyle | None
    h2: HeadingStyle | None
    h3: HeadingStyle | None
    h4: HeadingStyle | None
    h5: HeadingStyle | None
    h6: HeadingStyle | None
    quote: ElementStyle | None
    label: LabelStyle | None
    equation: EquationStyle | None
    code: CodeStyle | None
    image: ImageStyle | None
    author: AuthorStyle | None
    list: ListStyle | None
    table: TableStyle | None
