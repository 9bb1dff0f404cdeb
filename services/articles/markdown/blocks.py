"""Markdown of each block type; an empty block renders to ""."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from services.articles.markdown.citations import ShownReferences
from services.articles.markdown.escape import (
    destination,
    formula,
    info_string,
    newlines,
    one_line,
)
from services.articles.markdown.inline import inline
from services.articles.markdown.lines import cell, heading, paragraph
from services.articles.markdown.tables import cell_markdown, row_markdown, table
from services.articles.tree.nodes import HEADING_TYPES, Element, Leaf
from services.articles.tree.style import Style, computed_style

# Address of a file: the download endpoint of the HTTP API, for its owner.
_FILE_ADDRESS = "/beta/v1/files/{}/content"
# Names a picture that is in the document itself: the endpoint that returns it, and its fields.
_INLINE_ADDRESS = "/article/v1/doc/image?blockId={}&index={}"
_DATA_URL = re.compile("data:", re.IGNORECASE)
_HEADINGS = {"title": "#", **{kind: "#" * n for n, kind in enumerate(HEADING_TYPES, 1)}}
_ABSTRACT_NAMES = {"en": "Abstract:", "zh": "摘要\uff1a"}
_BACKTICKS = re.compile(r"`{3,}")
_TWO_DOLLARS = re.compile(r"\$(?=\$)")
_BLANK_LINES = re.compile(r"\n\s*\n")


class MarkdownContext(NamedTuple):
    """The style and the numbers of the rendered document, and whether images are shown."""

    style: Style
    shown: ShownReferences
    with_images: bool = True


def block_markdown(element: Element, context: MarkdownContext) -> str:
    """Return the Markdown of an element of any type."""
    return _RENDERERS[element.type](element, context)


def _source(element: Element, context: MarkdownContext) -> str:
    leaves = element.leaves
    if not any(leaf.text.strip() or leaf.cite is not None for leaf in leaves):
        return ""
    return inline(leaves, context.shown)


def _heading(element: Element, context: MarkdownContext) -> str:
    source = _source(element, context)
    label = _identifier(element)
    if not source and not label:
        return ""
    return " ".join(part for part in (_HEADINGS[element.type], heading(source), label) if part)


def _identifier(element: Element) -> str:
    return "" if element.label is None else f"{{#{element.label}}}"


def _paragraph(element: Element, context: MarkdownContext) -> str:
    return paragraph(_source(element, context))


def _quote(element: Element, context: MarkdownContext) -> str:
    lines = _paragraph(element, context).split("\n")
    return "\n".join([f"> {line}" for line in lines]) if lines != [""] else ""


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
    bold = inline((Leaf(newlines(name).replace("\n", " "), bold=True),), context.shown).strip()
    return " ".join(part for part in (bold, _source(item, context)) if part)


def _equation(element: Element, context: MarkdownContext) -> str:
    source = formula(str(element.content["equation"])).strip()
    source = _BLANK_LINES.sub("\n", _TWO_DOLLARS.sub("$ ", source))
    label = _identifier(element)
    if not source and not label:
        return ""
    lines = ["$$", source, f"$$ {label}".rstrip()]
    return "\n".join([line for line in lines if line])


def _code(element: Element, context: MarkdownContext) -> str:
    code = newlines(str(element.content["code"]))
    if not code and element.label is None:
        return ""
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=2)
    fence = "`" * (longest + 1)
    language = info_string(str(element.content["language"]))
    info = " ".join(part for part in (language, _identifier(element)) if part)
    return f"{fence}{info}\n{code}\n{fence}"


def _image(element: Element, context: MarkdownContext) -> str:
    if not context.with_images:
        return ""
    images: Any = element.content["image"]
    if element.label is None and not element.caption:
        return "\n".join(_one_image(image, element, index) for index, image in enumerate(images))
    # The last picture has the caption in its brackets, and what it had there as an attribute.
    *others, last = images or [{}]
    lines = [_one_image(image, element, index) for index, image in enumerate(others)]
    caption = cell(inline(element.caption, context.shown))
    attributes = [_identifier(element)[1:-1], f'alt="{_quoted(last.get("alt", ""))}"']
    bare = _address(last, element, len(others)) if images else ""
    shown = f"![{caption}]({bare}){{{' '.join(part for part in attributes if part)}}}"
    return "\n".join([*lines, shown])


def _one_image(image: Mapping[str, Any], element: Element, index: int) -> str:
    return f"![{one_line(image.get('alt', ''))}]({_address(image, element, index)})"


def _quoted(text: str) -> str:
    return one_line(text).replace('"', '\\"')


def _address(image: Mapping[str, Any], element: Element, index: int) -> str:
    if "fileId" in image:
        url = _FILE_ADDRESS.format(image["fileId"])
    elif _DATA_URL.match(image["url"]):
        # A text of megabytes, which nobody reads.
        url = _INLINE_ADDRESS.format(element.id, index)
    else:
        url = image["url"]
    title = ""
    if image.get("title"):
        title = f' "{_quoted(image["title"])}"'
    return f"{destination(url)}{title}"


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
    ids = author.get("institutionIds") or [author["institutionId"]]
    marks = [str(numbers[each]) for each in ids if each in numbers]
    if author["isStar"]:
        marks.append("\\*")
    above = f"<sup>{','.join(marks)}</sup>" if marks else ""
    name = one_line(author["name"])
    if "orcid" in author:
        name = f"[{name}](https://orcid.org/{author['orcid']})"
    if "email" in author:
        above += f" [{one_line(author['email'])}](mailto:{destination(author['email'])})"
    return name + above


def _list(element: Element, context: MarkdownContext) -> str:
    ordered = computed_style(context.style, element).get("orderType") != "disc"
    items = []
    first_number = int(str(element.content.get("start", 1)))
    for number, item in enumerate(element.elements, first_number):
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
    return table(element, context.shown, computed_style(context.style, element).get("textAlign"))


def _row(element: Element, context: MarkdownContext) -> str:
    return row_markdown(element, context.shown)


def _cell(element: Element, context: MarkdownContext) -> str:
    return cell_markdown(element, context.shown)


_RENDERERS: dict[str, Callable[[Element, MarkdownContext], str]] = {
    **dict.fromkeys(_HEADINGS, _heading),
    "paragraph": _paragraph,
    "quote": _quote,
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
