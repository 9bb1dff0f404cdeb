"""Types of references in the formats; a reference has the type of the one that it was read from."""

import re

# The type in BibTeX, in CSL, in RIS.
_TYPES = (
    ("article", "article-journal", "JOUR"),
    ("book", "book", "BOOK"),
    ("incollection", "chapter", "CHAP"),
    ("inproceedings", "paper-conference", "CONF"),
    ("phdthesis", "thesis", "THES"),
    ("techreport", "report", "RPRT"),
    ("online", "webpage", "ELEC"),
    ("dataset", "dataset", "DATA"),
    ("software", "software", "COMP"),
    ("patent", "patent", "PAT"),
    ("unpublished", "manuscript", "UNPB"),
    ("misc", "document", "GEN"),
)
# Those of CSL that are types of BibLaTeX, too.
_OF_BOTH = ("thesis", "report")
_BIBTEX_OF_CSL = {csl: bibtex for bibtex, csl, _ in _TYPES if csl not in _OF_BOTH}
_BIBTEX_OF_RIS = {ris: bibtex for bibtex, _, ris in _TYPES}
_CSL = {bibtex: csl for bibtex, csl, _ in _TYPES} | {
    **{"inbook": "chapter", "mastersthesis": "thesis", "thesis": "thesis", "report": "report"},
    **{"conference": "paper-conference", "proceedings": "book", "www": "webpage"},
}
_RIS = {bibtex: ris for bibtex, _, ris in _TYPES} | {
    **{"inbook": "CHAP", "mastersthesis": "THES", "thesis": "THES", "report": "RPRT"},
    **{"conference": "CONF", "proceedings": "BOOK", "www": "ELEC"},
}
_LETTERS = re.compile(r"[A-Za-z]+", re.ASCII)
_RIS_TYPE = re.compile(r"[A-Z]{2,8}", re.ASCII)
_CSL_TYPE = re.compile(r"[a-z]+([-_][a-z]+)*", re.ASCII)


def to_bibtex(kind: str) -> str:
    """Return the type of an entry."""
    kind = _BIBTEX_OF_CSL.get(kind, kind)
    return kind if _LETTERS.fullmatch(kind) else "misc"


def to_csl(kind: str) -> str:
    """Return the type of an item."""
    kind = _CSL.get(kind, kind)
    return kind if _CSL_TYPE.fullmatch(kind) else "document"


def to_ris(kind: str) -> str:
    """Return the type of a record."""
    ris = _RIS.get(_BIBTEX_OF_CSL.get(kind, kind)) or kind.upper()
    return ris if _RIS_TYPE.fullmatch(ris) else "GEN"


def from_ris(ris: str) -> str:
    """Return the type of a reference for that of a record."""
    return _BIBTEX_OF_RIS.get(ris) or ris.lower()
