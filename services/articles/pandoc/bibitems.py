r"""References of a document in LaTeX that lists them itself, in `thebibliography`.

Pandoc skips `\bibitem`; a macro before the document makes it leave the key before each text. Other
macros are for characters that it would skip, too.
"""

from collections.abc import Sequence

from services.articles.pandoc.syntax import Node
from services.articles.pandoc.to_leaves import LeafReader
from services.articles.tree.nodes import Json, Leaf

# The class of the list, and the beginning of the identifiers of what stands before each text.
LIST = "thebibliography"
_ITEM = "bibitem:"
# What a document begins with, on its first line.
MACROS = (
    rf"\newcommand{{\bibitem}}[2][]{{\par\hypertarget{{{_ITEM}#2}}{{}}}}"
    r"\newcommand{\textbar}{|}\newcommand{\textasciigrave}{`}\newcommand{\pandocbounded}[1]{#1}"
).encode()


def read_items(nodes: Sequence[Node], texts: LeafReader) -> tuple[list[Json], list[Node]]:
    """Return references as items of CSL-JSON, and the blocks of the list that are no texts.

    Each has its text as title, as nothing says what its parts are.
    """
    parts: dict[str, list[str]] = {}
    others: list[Node] = []
    key = ""
    for node in nodes:
        if node["t"] == "Div" and node["c"][0][0].startswith(_ITEM):
            key = node["c"][0][0].removeprefix(_ITEM).strip()
            parts.setdefault(key, [])
        elif not key:
            continue  # the width of the numbers
        elif node["t"] in ("Para", "Plain"):
            parts[key].append(_text(texts.leaves(node["c"])))
        else:
            others.append(node)
    return [{"id": key, "title": " ".join(text)} for key, text in parts.items()], others


def _text(leaves: Sequence[Leaf]) -> str:
    """Return the text of leaves, with formulas between dollars."""
    shown = [f"${leaf.text}$" if leaf.type == "latex" else leaf.text for leaf in leaves]
    return " ".join("".join(shown).split())
