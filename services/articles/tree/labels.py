"""Numbers of figures, tables, equations, sections and listings, and what references to them say."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from services.articles.tree.nodes import HEADING_TYPES, OBJECT, Element, Json
from services.articles.tree.sequence import BlockSequence
from services.articles.tree.style import Style

_KINDS = {"image": "figure", "table": "table", "equation": "equation", "code": "listing"}
_NAMES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "figure": "Figure {}",
        "table": "Table {}",
        "equation": "Eq. ({})",
        "section": "Section {}",
        "listing": "Listing {}",
    },
    "zh": {
        "figure": "图 {}",
        "table": "表 {}",
        "equation": "式 ({})",
        "section": "第 {} 节",
        "listing": "代码 {}",
    },
    "de": {
        "figure": "Abbildung {}",
        "table": "Tabelle {}",
        "equation": "Gl. ({})",
        "section": "Abschnitt {}",
        "listing": "Listing {}",
    },
    "fr": {
        "figure": "Figure {}",
        "table": "Tableau {}",
        "equation": "Éq. ({})",
        "section": "Section {}",
        "listing": "Listing {}",
    },
    "es": {
        "figure": "Figura {}",
        "table": "Tabla {}",
        "equation": "Ec. ({})",
        "section": "Sección {}",
        "listing": "Listado {}",
    },
}
# What references to a label say that no block has.
MISSING, MISSING_NUMBER = "??", "?"


class LabelNumber(NamedTuple):
    """The number of a block with a label.

    Attributes:
        kind: figure, table, equation, section or listing.
        number: its number, such as "3" or "1.2"; "" for a heading without one.
        text: the text of a heading; "" for others.
    """

    kind: str
    number: str
    text: str = ""


def label_numbers(blocks: BlockSequence, style: Style) -> dict[str, LabelNumber]:
    """Return the number of each block with a label, by its label.

    Images, tables and listings count if they have a label or a caption, equations if they have a
    label; the property `serial` of their style decides otherwise, but not about those with a label.
    Headings count unless `isHideIndex` is set, from the highest level that occurs.
    """
    if not blocks.has_labels():
        return {}
    counted = [element for element in blocks.counted() if _is_counted(element, style)]
    counts = dict.fromkeys(_KINDS, 0)
    levels = [HEADING_TYPES.index(e.type) for e in counted if e.type in HEADING_TYPES]
    top = min(levels, default=0)
    sections = [0] * len(HEADING_TYPES)
    numbers: dict[str, LabelNumber] = {}
    for element in counted:
        if element.type in counts:
            counts[element.type] += 1
            number = LabelNumber(_KINDS[element.type], str(counts[element.type]))
        else:
            level = HEADING_TYPES.index(element.type)
            sections[level] += 1
            sections[level + 1 :] = [0] * (len(sections) - level - 1)
            shown = ".".join(map(str, sections[top : level + 1]))
            number = LabelNumber("section", shown, _text(element))
        if element.label is not None:
            numbers[element.label] = number
    for element in _uncounted(blocks, numbers):
        numbers[str(element.label)] = LabelNumber("section", "", _text(element))
    return numbers


def _uncounted(blocks: BlockSequence, numbers: Mapping[str, LabelNumber]) -> Iterable[Element]:
    for element in blocks.counted():
        if element.label is not None and element.label not in numbers:
            yield element


def _is_counted(element: Element, style: Style) -> bool:
    if element.type in HEADING_TYPES:
        return not _property(element, style, "isHideIndex")
    if element.label is not None:
        return True
    serial = _property(element, style, "serial")
    return bool(element.caption) if serial is None else bool(serial)


def _property(element: Element, style: Style, name: str) -> Json:
    """Return a property of the computed style, without computing all of it."""
    if name in element.style:
        return element.style[name]
    of_type = style.get(element.type)
    return of_type.get(name) if isinstance(of_type, Mapping) else None


def _text(heading: Element) -> str:
    return " ".join("".join(leaf.text for leaf in heading.leaves).replace(OBJECT, "").split())


def ref_text(number: LabelNumber | None, form: str | None, language: Json) -> str:
    """Return what a reference to a block says.

    Args:
        number: the number of the block; None if there is no such block.
        form: "number" for the number alone.
        language: the language of the document, or None.
    """
    if number is None:
        return MISSING_NUMBER if form == "number" else MISSING
    if not number.number:
        return number.text or MISSING
    if form == "number":
        return number.number
    names = _NAMES.get(str(language or "en").split("-")[0].lower(), _NAMES["en"])
    return names[number.kind].format(number.number)


def all_names() -> Iterable[str]:
    """Return the names of all kinds in all languages, with `{}` for the number."""
    return {name for names in _NAMES.values() for name in names.values()}
