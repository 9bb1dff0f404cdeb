"""A paper with what documents hold, for tests of its exports; no text in it occurs twice."""

import io

from PIL import Image

BIBLIOGRAPHY = r"""
@article{muller:2010+a, author = {Müller, Jürgen and {Tide Office}}, title = {On $x^2$ and tides},
  journal = {Nature}, year = 2010, volume = 3, number = 2, pages = {1--5}}
@book{newton.1687, author = {Newton, Isaac}, title = {Principia}, publisher = {Streater},
  year = 1687}
"""


def png(colour="red"):
    """Return a picture."""
    packed = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(packed, "PNG")
    return packed.getvalue()


def text(kind, *leaves):
    """Return a block of leaves, each a text or an object."""
    children = [leaf if isinstance(leaf, dict) else {"text": leaf} for leaf in leaves]
    return {"type": kind, "children": children}


def table(*rows):
    """Return a table of texts."""
    cells = [
        {"type": "table-row", "children": [text("table-cell", c) for c in row]} for row in rows
    ]
    return {"type": "table", "children": cells}


def paper(file_id):
    """Return the blocks of a paper that shows a file."""
    note = {"type": "note", "text": "", "children": [{"text": "Footed"}]}
    cited = [{"id": "newton.1687", "prefix": "see", "locator": "p. 3"}, {"id": "muller:2010+a"}]
    return [
        text("title", "Harbours"),
        {
            "type": "author",
            "author": [{"name": "Ada Quay", "institutionIds": [1, 2]}],
            "institution": [{"id": 1, "name": "Oxbow"}, {"id": 2, "name": "Fenland"}],
        },
        text("abstract", "Summarised"),
        {**text("h1", "Methods"), "label": "sec-m"},
        text(
            "paragraph",
            "Seen in ",
            {"type": "ref", "text": "", "ref": "fig-x"},
            ", ",
            {"text": "boldly", "bold": True},
            ", H",
            {"text": "2", "script": "sub"},
            "O, ",
            {"text": "a_b()", "type": "inlinecode"},
            note,
            " <b>inert</b>, 汉字 ",
            {"text": "E = mc^2", "type": "latex"},
            {"text": "", "cite": cited},
        ),
        text("quote", "Quoted"),
        {"type": "equation", "equation": r"\alpha + \frac{1}{2}", "label": "eq-x"},
        {"type": "code", "code": "print('listed')", "language": "python"},
        {
            "type": "image",
            "image": [{"fileId": file_id, "alt": "gauged"}],
            "caption": [{"text": "Captioned"}],
            "label": "fig-x",
        },
        {"type": "list", "children": [text("list-item", "Itemised")]},
        {**table(["Port", "Height"], ["Brest", "6.9"]), "caption": [{"text": "Tabled"}]},
    ]


# Words of the paper that are in each of its exports.
WORDS = (
    *("Harbours", "Ada", "Quay", "Oxbow", "Fenland", "Summarised", "Methods", "Figure 1", "boldly"),
    *("a_b()", "Footed", "<b>inert</b>", "Quoted", "listed", "Captioned", "Itemised", "Brest"),
    *("6.9", "Tabled", "Newton", "Principia", "Müller", "Tide Office", "汉字"),
)
