"""Types of the leaves of a document: runs of text, notes, references to blocks, citations."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field, SkipValidation, with_config
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from services.common.articles import limits
from services.common.articles.styles import CLOSED
from services.common.articles.texts import at_most, block_label, not_empty, one_line

TextDecoration = Annotated[
    Literal["underline", "line-through"] | None,
    Field(description="Line under or through the text."),
]
Color = Annotated[
    Annotated[str, at_most(limits.CSS_VALUE)] | None, Field(description="A CSS colour.")
]
Script = Annotated[Literal["super", "sub"] | None, Field(description="Above or below the line.")]
Affix = Annotated[str, Field(max_length=limits.AFFIX), at_most(limits.AFFIX), one_line]


@with_config(CLOSED)
class Marks(TypedDict, total=False):
    """Marks of text; null removes a mark."""

    bold: bool | None
    italic: bool | None
    textDecoration: TextDecoration
    color: Color
    script: Script


@with_config(CLOSED)
class CitationItem(TypedDict):
    """A citation with the words beside its number."""

    id: Annotated[str, at_most(limits.IDENTIFIER), Field(description="Id of a reference.")]
    prefix: NotRequired[Affix | SkipJsonSchema[None]]
    locator: NotRequired[
        Annotated[
            Affix | SkipJsonSchema[None],
            Field(description="The place in the source, such as `p. 3`."),
        ]
    ]
    suffix: NotRequired[Affix | SkipJsonSchema[None]]
    narrative: NotRequired[
        Annotated[
            bool | None,
            Field(
                description="Only in the first: the names of the authors come before the brackets."
            ),
        ]
    ]


Citations = Annotated[list[CitationItem], Field(min_length=1, max_length=limits.CITATIONS)]
CiteValue = Annotated[
    str | Citations | None,
    Field(description="Id of a reference, or citations that share one pair of brackets."),
]


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
            Field(description="With `url` or `inlinecode`: target of the link."),
        ]
    ]
    bold: NotRequired[bool | None]
    italic: NotRequired[bool | None]
    textDecoration: NotRequired[TextDecoration]
    color: NotRequired[Color]
    script: NotRequired[Script]
    cite: NotRequired[SkipValidation[CiteValue]]
    form: NotRequired[
        Annotated[
            Literal["display"] | None,
            Field(description="With `latex`: a formula on a line of its own in the text."),
        ]
    ]


@with_config(CLOSED)
class RefLeaf(TypedDict):
    """A reference to a block, which reads `Figure 3`, by the number that the block has."""

    type: Literal["ref"]
    ref: Annotated[str, block_label, Field(description="The label of a block.")]
    form: NotRequired[
        Annotated[
            Literal["number"] | None, Field(description="`number`: the number alone is shown.")
        ]
    ]
    text: NotRequired[Annotated[str, Field(max_length=0)]]
    bold: NotRequired[bool | None]
    italic: NotRequired[bool | None]
    textDecoration: NotRequired[TextDecoration]
    color: NotRequired[Color]
    script: NotRequired[Script]
    cite: NotRequired[SkipValidation[CiteValue]]


@with_config(CLOSED)
class NoteLeaf(TypedDict):
    """A footnote; it holds no further one."""

    type: Literal["note"]
    text: NotRequired[
        Annotated[
            str,
            Field(max_length=limits.LEAF_TEXT, description="Plain text, instead of `children`."),
            at_most(limits.LEAF_TEXT),
        ]
    ]
    children: NotRequired[
        SkipValidation[Annotated[list[TextLeaf | RefLeaf], Field(max_length=limits.INLINE_LEAVES)]]
    ]


InlineLeaf = TextLeaf | RefLeaf | NoteLeaf
