"""Markdown of each block type; an empty block renders to ""."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from services.articles.markdown.escape import (
    destination,
    formula,
    info_string,
    newlines,
    one_line,
)
from services.articles.markdown.inline import Numbers, inline
from services.articles.markdown.lines import heading, paragraph
from services.articles.markdown.tables import cell_markdown, row_markdown, table
from services.articles.tree.nodes import Element, Leaf
from services.articles.tree.style import Style, computed_style

# Address of a file: the download endpoint of the HTTP API, for its owner.
_FILE_ADDRESS = "/beta/v1/files/{}/content"
# Names a picture that is in the document itself: the endpoint that returns it, and its fields.
_INLINE_ADDRESS = "/article/v1/doc/image?blockId={}&index={}"
_DATA_URL = re.compile("data:", re.IGNORECASE)
_HEADINGS = {"title": "#", "h1": "#", "h2": "##", "h3": "###"}
_ABSTRACT_NAMES = {"en": "Abstract:", "zh": "摘要\uff1a"}
_BACKTICKS = re.compile(r"`{3,}")
_TWO_DOLLARS = re.compile(r"\$(?=\$)")
_BLANK_LINES = re.compile(r"\n\s*\n")


class MarkdownContext(NamedTuple):
    """The style and the citation numbers of the rendered document, and whether images are shown."""

    style: Style
    numbers: Numbers
    with_images: bool = True


def block_markdown(element: Element, context: MarkdownContext) -> str:
    """Return the Markdown of an element of any type."""
    return _RENDERERS[element.type](element, context)


def _source(element: Element, context: MarkdownContext) -> str:
    leaves = element.leaves
    if not any(leaf.text.strip() or leaf.cite is not None for leaf in leaves):
        return ""
    return inline(leaves, context.numbers)


def _heading(element: Element, context: MarkdownContext) -> str:
    source = _source(element, context)
    return f"{_HEADINGS[element.type]} {heading(source)}" if source else ""


def _paragraph(element: Element, context: MarkdownContext) -> str:
    return paragraph(_source(element, context))


def _abstract(element: Element, context: MarkdownContext) -> str:
    source = _source(element, context)
    name = _ABSTRACT_NAMES.get(str(computed_style(context.style, element).get("language")))
    return paragraph(f"**{name}** {source}" if name and source else source)


def _label(element: Element, context: MarkdownContext) -> str:
    if not element.elements:
        return _paragraph(element, context)
    sources = [_item_source(item, context) for item in element.elements]
    return paragraph("\n".join(source for source in sources if source))


def _label_item(element: Element, context: MarkdownContext) -> str:
    return paragraph(_item_source(element, context))


def _item_source(item: Element, context: MarkdownContext) -> str:
    name = str(item.content["name"])
    bold = inline((Leaf(newlines(name).replace("\n", " "), bold=True),), {}).strip()
    return " ".join(part for part in (bold, _source(item, context)) if part)


def _equation(element: Element, context: MarkdownContext) -> str:
    source = formula(str(element.content["equation"])).strip()
    source = _BLANK_LINES.sub("\n", _TWO_DOLLARS.sub("$ ", source))
    return f"$$\n{source}\n$$" if source else ""


def _code(element: Element, context: MarkdownContext) -> str:
    code = newlines(str(element.content["code"]))
    if not code:
        return ""
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=2)
    fence = "`" * (longest + 1)
    language = info_string(str(element.content["language"]))
    return f"{fence}{language}\n{code}\n{fence}"


def _image(element: Element, context: MarkdownContext) -> str:
    if not context.with_images:
        return ""
    images: Any = element.content["image"]
    return "\n".join(_one_image(image, element, index) for index, image in enumerate(images))


def _one_image(image: Mapping[str, Any], element: Element, index: int) -> str:
    if "fileId" in image:
        url = _FILE_ADDRESS.format(image["fileId"])
    elif _DATA_URL.match(image["url"]):
        # A text of megabytes, which nobody reads.
        url = _INLINE_ADDRESS.format(element.id, index)
    else:
        url = image["url"]
    title = ""
    if image.get("title"):
        quoted = one_line(image["title"]).replace('"', '\\"')
        title = f' "{quoted}"'
    return f"![{one_line(image.get('alt', ''))}]({destination(url)}{title})"


def _author(element: Element, context: MarkdownContext) -> str:
    authors: Any = element.content["author"]
    institutions: Any = element.content["institution"]
    numbers = {institution["id"]: n for n, institution in enumerate(institutions, 1)}
    lines = []
    if authors:
        lines.append(", ".join(_one_author(author, numbers) for author in authors))
    for number, institution in enumerate(institutions, 1):
        lines.append(f"<sup>{number}</sup> {one_line(institution['name'])}")
    return paragraph("\n".join(lines))


def _one_author(author: Mapping[str, Any], numbers: Mapping[int, int]) -> str:
    marks = []
    if author["institutionId"] in numbers:
        marks.append(str(numbers[author["institutionId"]]))
    if author["isStar"]:
        marks.append("\\*")
    above = f"<sup>{','.join(marks)}</sup>" if marks else ""
    return one_line(author["name"]) + above


def _list(element: Element, context: MarkdownContext) -> str:
    ordered = computed_style(context.style, element).get("orderType") != "disc"
    items = []
    for number, item in enumerate(element.elements, 1):
        marker = f"{number}." if ordered else "-"
        lines = _list_item(item, context).split("\n")
        indent = " " * (len(marker) + 1)
        first = f"{marker} {lines[0]}" if lines[0] else marker
        items.append("\n".join([first, *(line and indent + line for line in lines[1:])]))
    return "\n".join(items)


def _list_item(element: Element, context: MarkdownContext) -> str:
    text = _paragraph(element, context)
    nested = [block_markdown(child, context) for child in element.elements if child.children]
    if not nested:
        return text
    # An empty first item right below text would be read as a part of the text.
    first = element.elements[0].elements[0]
    gap = "\n\n" if text and not _paragraph(first, context) else "\n"
    return text + gap + nested[0]


def _table(element: Element, context: MarkdownContext) -> str:
    return table(element, context.numbers, computed_style(context.style, element).get("textAlign"))


def _row(element: Element, context: MarkdownContext) -> str:
    return row_markdown(element, context.numbers)


def _cell(element: Element, context: MarkdownContext) -> str:
    return cell_markdown(element, context.numbers)


_RENDERERS: dict[str, Callable[[Element, MarkdownContext], str]] = {
    **dict.fromkeys(_HEADINGS, _heading),
    "paragraph": _paragraph,
    "abstract": _abstract,
    "label": _label,
    "label-item": _label_item,
    "equation": _equation,
    "code": _code,
    "image": _image,
    "author": _author,
    "list": _list,
    "list-item": _list_item,
    "table": _table,
    "table-row": _row,
    "table-cell": _cell,
}
