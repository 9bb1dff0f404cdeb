"""Render HTML, a DOCX via its HTML, and the markup of Typst as PDF with Typst.

Text of HTML is passed to Typst only as string literals, so that none of it is interpreted as markup
or code.
"""

import base64
import io
import re
import unicodedata
import zipfile
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import typst
from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag

from services.common.text.texts import parse_digits
from services.media.conversion import docx, images
from services.media.conversion.errors import ConversionError
from services.media.conversion.parts import PandocOutput, Source

# Missing glyphs are an error under this PDF standard, and would be empty boxes otherwise.
_STANDARD: Final = "a-2b"
_NO_GLYPH = re.compile(r'the text `"((?:[^"\\]|\\.)*)"` could not be displayed')
_ESCAPE = re.compile(r"\\u\{([0-9a-f]+)\}")
_HEAD = """#set page(paper: "a4", margin: 2cm, numbering: "1")
#set text(size: 11pt)
#set par(justify: false)
#set table(stroke: 0.5pt)
"""
# The markup in an archive; the others are pictures. In the first bytes of an SVG is its name.
_MAIN = "main.typ"
_SVG_WITHIN = 1_000
_NO_PICTURE = b"<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'></svg>"
_Markup: TypeAlias = bytes | dict[str, bytes]

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_STYLES = {
    "strong": "strong",
    "b": "strong",
    "em": "emph",
    "i": "emph",
    "u": "underline",
    "s": "strike",
    "sup": "super",
    "sub": "sub",
}


def docx_as_pdf(content: bytes) -> bytes:
    """Return a DOCX as PDF, with the plain layout of its HTML.

    Symbols without a glyph on this machine are replaced by their names.

    Raises:
        ConversionError: no font has the glyphs of its letters.
    """
    html = docx.as_html(content, _attributes)
    try:
        return _compiled(html)
    except typst.TypstError as error:
        missing = _missing(error)
    try:
        return _compiled(html.translate({ord(char): _name(char) for char in missing}))
    except typst.TypstError as error:
        if not _missing(error):
            raise
        raise ConversionError(
            "no font is installed for some characters of the document; convert it to text, or "
            "send a PDF"
        ) from None


def markup_as_pdf(source: Source, *, is_typst: bool) -> PandocOutput:
    """Return a document as PDF.

    The document is an archive of the markup of Typst (`main.typ`) and the pictures that it shows,
    whose names end in `.svg`; or it is HTML whose pictures are `data:` URLs.

    Raises:
        ConversionError: Typst cannot set it.
    """
    markup: _Markup
    if is_typst:
        markup = _unpacked(source.content)
    else:
        markup = _typst_of(source.content.decode()).encode()
    warnings: tuple[str, ...] = ()
    try:
        try:
            return PandocOutput(_pdf(markup, is_strict=True))
        except typst.TypstError as error:
            missing = "".join(sorted(_missing(error)))
            if missing:
                warnings = (f"no font here has the characters {missing[:64]}",)
        return PandocOutput(_pdf(markup, is_strict=False), warnings)
    except typst.TypstError as error:
        raise ConversionError(f"Typst cannot set the document: {str(error)[:300]}") from None


def _typst_of(html: str) -> str:
    body = BeautifulSoup(html, "html.parser").body
    assert body is not None
    for image in body.find_all("img"):
        url = str(image.get("src", ""))
        described = str(image.get("alt", ""))
        image.attrs = {"alt": described or url}
        if url.startswith("data:"):
            content = base64.b64decode(url.partition(",")[2])
            image.attrs = dict(_attributes(content, described))
    return _HEAD + "".join(_content(body))


def _compiled(html: str) -> bytes:
    source = _HEAD + "".join(_content(BeautifulSoup(html, "html.parser")))
    return _pdf(source.encode(), is_strict=True)


def _unpacked(archive: bytes) -> dict[str, bytes]:
    """Return the files of an archive: pictures as SVG, as Typst takes files only as text."""
    unpacked = {}
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        for name in files.namelist():
            content = files.read(name)
            unpacked[name] = content if name == _MAIN else _svg_of(content)
    return unpacked


def _svg_of(content: bytes) -> bytes:
    if b"<svg" in content[:_SVG_WITHIN]:
        try:
            content.decode()
            return content
        except UnicodeDecodeError:
            pass  # it is no SVG
    attributes = _attributes(content, "")
    if "src" not in attributes:
        return _NO_PICTURE
    return _svg(attributes["src"], attributes["width"], attributes["height"]).encode()


def _svg(source: str, width: object, height: object) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}'>"
        f"<image width='{width}' height='{height}' href='{source}'/></svg>"
    )


def _pdf(markup: _Markup, *, is_strict: bool) -> bytes:
    standards: Literal["a-2b"] | None = _STANDARD if is_strict else None
    # Its types name no dict, which it takes.
    source: Any = markup
    pdf: bytes = typst.compile(source, format="pdf", pdf_standards=standards)
    return pdf


def _missing(error: typst.TypstError) -> set[str]:
    """Return the characters for which an error reports missing glyphs."""
    texts = _NO_GLYPH.findall(error.diagnostic)
    return {char for text in texts for char in _ESCAPE.sub(_unescaped, text)}


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def _name(char: str) -> str:
    """Return the name of a symbol, "" for an invisible character, and a letter unchanged."""
    match unicodedata.category(char)[0]:
        case "S" | "P":
            return f"[{unicodedata.name(char, 'symbol').lower()}]"
        case "C" | "Z" | "M":
            return ""
    return char


def _content(parent: Tag) -> Iterator[str]:
    for child in parent.children:
        if isinstance(child, Tag):
            yield from _element(child)
        elif isinstance(child, NavigableString) and child:
            yield f"#{_string(child)};"


def _element(element: Tag) -> Iterator[str]:
    name = element.name
    if name in _HEADINGS:
        yield from _call(f"heading(level: {_HEADINGS[name]})", element)
    elif name in _STYLES:
        yield from _call(_STYLES[name], element)
    elif name == "p":
        yield from _content(element)
        yield "\n\n"
    elif name == "br":
        yield "#linebreak();"
    elif name in ("ul", "ol"):
        yield from _list("list" if name == "ul" else "enum", element)
    elif name == "table":
        yield from _table(element)
    elif name == "img":
        yield _picture(element)
    elif name in ("pre", "code"):
        block = ", block: true" if name == "pre" else ""
        yield f"#raw({_string(element.get_text())}{block});"
    else:
        yield from _content(element)


def _call(function: str, element: Tag) -> Iterator[str]:
    yield f"#{function}["
    yield from _content(element)
    yield "];"


def _list(function: str, element: Tag) -> Iterator[str]:
    items = element.find_all("li", recursive=False)
    if items:
        yield f"\n#{function}("
        for item in items:
            yield "["
            yield from _content(item)
            yield "],"
        yield ");\n"


def _table(element: Tag) -> Iterator[str]:
    rows = [row for row in element.find_all("tr") if row.find_parent("table") is element]
    cells = [row.find_all(["td", "th"], recursive=False) for row in rows]
    columns = max((sum(_span(cell, "colspan") for cell in row) for row in cells), default=0)
    if not columns:
        return
    for caption in element.find_all("caption", recursive=False):
        yield from _content(caption)
        yield "\n\n"
    yield f"\n#table(columns: (1fr,) * {columns},"
    for row in cells:
        for cell in row:
            spans = f"colspan: {_span(cell, 'colspan')}, rowspan: {_span(cell, 'rowspan')}"
            yield f"table.cell({spans})["
            yield from _content(cell)
            yield "],"
    yield ");\n"


def _span(cell: Tag, name: str) -> int:
    number = cell.get(name)
    span = parse_digits(number) if isinstance(number, str) else None
    return min(span or 1, 1000)


def _picture(element: Tag) -> str:
    """Return a picture as an SVG with a data URI, as Typst takes bytes only as text."""
    source, width, height = (element.get(name) for name in ("src", "width", "height"))
    if not source:
        return f"#box(stroke: 0.5pt, inset: 4pt)[#{_string(str(element.get('alt') or 'image'))};];"
    svg = _svg(str(source), width, height)
    return (
        f"#layout(size => image(bytes({_string(svg)}), "
        f"width: calc.min(size.width, {width} * 0.75pt)));"
    )


def _string(text: str) -> str:
    """Return a Typst string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "")
    return '"' + escaped.replace("\n", "\\n") + '"'


def _attributes(content: bytes, description: str) -> dict[str, str]:
    """Return the attributes of an embedded picture, as a data URI."""
    try:
        with images.opened(content) as image:
            picture = images.upright(image)
    except ConversionError:
        return {"alt": f"[image: {description}]" if description else "[image]"}
    packed = io.BytesIO()
    picture.save(packed, "PNG")
    return {
        "src": f"data:image/png;base64,{base64.b64encode(packed.getvalue()).decode()}",
        "width": str(picture.width),
        "height": str(picture.height),
    }
