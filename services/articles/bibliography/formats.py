"""The formats of bibliographies by their names."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from services.articles.bibliography import bibtex, csl, ris
from services.articles.bibliography.entries import Entries, Omission, Reference


class Written(NamedTuple):
    """References in a format, and what the format cannot hold."""

    text: str
    omitted: Sequence[Omission] = ()


class BibliographyFormat(NamedTuple):
    """How a format is read and written.

    Attributes:
        parse: returns the references in a text; raises `SyntaxProblem`.
        write: returns references as a text.
    """

    parse: Callable[[str], Entries]
    write: Callable[[Sequence[Reference]], Written]


def _bibtex(references: Sequence[Reference], *, is_biblatex: bool) -> Written:
    return Written(bibtex.write(references, is_biblatex=is_biblatex))


FORMATS: Mapping[str, BibliographyFormat] = {
    "bibtex": BibliographyFormat(bibtex.parse, partial(_bibtex, is_biblatex=False)),
    "biblatex": BibliographyFormat(bibtex.parse, partial(_bibtex, is_biblatex=True)),
    "ris": BibliographyFormat(ris.parse, lambda references: Written(*ris.write(references))),
    "csl-json": BibliographyFormat(csl.parse, lambda references: Written(csl.write(references))),
}
