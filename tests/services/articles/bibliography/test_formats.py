"""Bibliographies: what is read, written and read again stays the same."""

import unicodedata
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.articles.bibliography.entries import Omission, SyntaxProblem, spaced
from services.articles.bibliography.formats import FORMATS
from tests.grid import each_row
from tests.thoroughness import examples

EXAMPLES = settings(max_examples=examples(25))

BIB = r"""
Text between entries, with user@example.org, is a comment.
@comment{ignored}  @preamble{"\newcommand{x}"}
@string{cup = "Cambridge " # {University Press}}
@Article{knuth:84.x+y\u00e9,
  Author = {Donald E. Knuth and {Barnes and Noble} and G{\"o}del, Kurt and others},
  title = {The {DNA} of $\alpha_{1}$: \emph{Caf\'e} \& na\"{\i}ve {\TeX} --- 50\% \unknown{x}},
  journal = cup # " Letters", pages = "12--34", number = 3, year = 1984, month = mar,
  url = {http://a.b/c_d%20e\_f}, type = {Note},
}
@book(paren, title = {In parentheses}, date = {2020-05-01})
""".replace("\\u00e9", "é")

KNUTH = {
    "id": "knuth:84.x+yé",
    "type": "article",
    "author": ["Donald E. Knuth", "Barnes and Noble", "Gödel, Kurt", "others"],
    "literalNames": ["Barnes and Noble"],
    "title": r"The DNA of $\alpha_{1}$: Café & naïve TeX — 50% \unknown{x}",
    "journal": "Cambridge University Press Letters",
    "pages": "12\u201334",
    "issue": "3",
    "year": "1984",
    "month": "3",
    "url": "http://a.b/c_d%20e_f",
    "bib-type": "Note",
}

_CHARACTERS = st.sampled_from([*"abAB ${}\\%&#_~^-`'\",@=\u2013é中", " and ", "DNA"])
TEXTS = st.lists(_CHARACTERS, max_size=12).map("".join)
NAMES = st.lists(TEXTS, max_size=3)
REFERENCES = st.fixed_dictionaries(
    {"type": st.sampled_from(["article", "book", "misc", "webpage", "odd-type", "x1"])},
    optional={
        **{name: TEXTS for name in ("title", "journal", "abstract", "url", "pages", "note")},
        **{name: TEXTS for name in ("issue", "number", "bib-issue", "bib-type", "date", "year")},
        **{name: NAMES for name in ("author", "editor")},
    },
)
KEYS = st.text("aé:.+ ,{}", min_size=1, max_size=4)


@each_row("name", FORMATS)
@EXAMPLES
@given(entries=st.lists(st.tuples(KEYS, REFERENCES), max_size=3))
def test_what_was_read_is_written_and_read_again(name: str, entries: list[tuple]) -> None:
    shape = FORMATS[name]
    references = [
        {**fields, "id": f"{key}{number}"} for number, (key, fields) in enumerate(entries)
    ]
    first = shape.parse(shape.write(references).text)
    assert len(first.references) == len(references)
    again = shape.parse(shape.write(first.references).text)
    assert again.references == first.references
    assert not again.omitted


@EXAMPLES
@given(TEXTS)
def test_any_text_is_a_value_of_bibtex(text: str) -> None:
    reference = {"id": "k", "type": "misc", "title": text, "note": text}
    read = FORMATS["bibtex"].parse(FORMATS["bibtex"].write([reference]).text)
    normal = unicodedata.normalize("NFC", spaced(text))
    assert read.references == [{**reference, "title": normal, "note": normal}]


def test_a_bib_file_is_read() -> None:
    entries = FORMATS["bibtex"].parse(BIB)
    paren = {"id": "paren", "type": "book", "title": "In parentheses"}
    assert entries.references == [KNUTH, {**paren, "date": "2020-05-01", "year": "2020"}]
    assert not entries.omitted
    for name in ("bibtex", "biblatex"):
        written = FORMATS[name].write(entries.references).text
        assert "{DNA}" in written and "{Barnes and Noble}" in written
        assert FORMATS[name].parse(written).references == entries.references
    assert "journaltitle = {Cambridge" in written


def test_broken_entries_are_named_and_the_others_are_read() -> None:
    text = """@a{one, title = {x}, title = {y}, odd.name = 1}
@a{two, title = undefined}
@a{three title = {x}}
@a{, title = {x}}
@a{four, title = {x
@a{five, note = {fine}}"""
    entries = FORMATS["bibtex"].parse(text)
    assert [reference["id"] for reference in entries.references] == ["one", "five"]
    assert entries.omitted == [
        Omission("one", "the second field title"),
        Omission("two", "the abbreviation undefined is not defined"),
        Omission("three", "} is missing"),
        Omission("line 4", "the entry has no key"),
        Omission("four", "a value does not end"),
        Omission("one", "the field odd.name, whose name is not allowed"),
    ]


def test_records_of_ris_are_read() -> None:
    text = """\ufeffTY  - JOUR\r
ID  - k
AU  - Knuth, Donald E.
AU  - Gödel, Kurt
TI  - A title that goes
   on
JO  - Letters
Y1  - 1984/03/02/
SP  - 12
EP  - 34
KW  - a
KW  - b
C7  - odd
ER  -
stray
TY  - BOOK
"""
    entries = FORMATS["ris"].parse(text)
    assert entries.references == [
        {
            **{"id": "k", "type": "article", "author": ["Knuth, Donald E.", "Gödel, Kurt"]},
            **{"title": "A title that goes on", "journal": "Letters", "year": "1984"},
            **{"date": "1984-03-02", "pages": "12\u201334", "keywords": ["a", "b"]},
            "ris-C7": "odd",
        }
    ]
    places = [omission.place for omission in entries.omitted]
    assert places == ["line 15", "the last record"]
    written = FORMATS["ris"].write([{**KNUTH, "id": "k"}])
    fields = {omission.reason.rpartition(" ")[2] for omission in written.omitted}
    assert fields == {"month", "literalNames", "bib-type"}


def test_items_of_csl_are_read() -> None:
    item = {
        **{"id": "k", "type": "article-journal", "title": "T", "volume": 3, "DOI": "10/x"},
        "author": [
            {"family": "Gogh", "given": "Vincent", "non-dropping-particle": "van"},
            {"literal": "Barnes and Noble"},
            {"family": "King", "given": "Martin", "suffix": "Jr."},
        ],
        "issued": {"date-parts": [[1984, 3]]},
        "custom": {"a": 1},
    }
    entries = FORMATS["csl-json"].parse(orjson.dumps([item, 5]).decode())
    assert entries.references == [
        {
            **{"id": "k", "type": "article-journal", "title": "T", "volume": "3", "doi": "10/x"},
            "author": ["van Gogh, Vincent", "Barnes and Noble", "King, Jr., Martin"],
            "literalNames": ["Barnes and Noble"],
            **{"year": "1984", "date": "1984-03"},
        }
    ]
    assert [omission.place for omission in entries.omitted] == ["k", "item 1"]
    for wrong in ("{", "5", '"x"'):
        with pytest.raises(SyntaxProblem):
            FORMATS["csl-json"].parse(wrong)


def test_values_that_grow_are_refused() -> None:
    doubling = "@string{a0 = {0123456789}}\n" + "".join(
        f"@string{{a{n} = a{n - 1} # a{n - 1} # a{n - 1}}}\n" for n in range(1, 40)
    )
    entries = FORMATS["bibtex"].parse(doubling + "@a{k, title = a5}")
    assert len(str(entries.references[0]["title"])) == 10 * 3**5
    many = doubling + "".join(f"@a{{k{n}, title = a7}}" for n in range(1_000))
    with pytest.raises(SyntaxProblem):
        FORMATS["bibtex"].parse(many)
    with pytest.raises(SyntaxProblem):
        FORMATS["bibtex"].parse("@a{b,c={" * 200)


@each_row(
    "text",
    [
        "@a{k, t = {" + "{" * 500_000,
        "@a{k, author = {" + "a and " * 80_000 + "b}}",
        "@a{k, t = {" + "\\$" * 150_000 + "}}",
        "@a{k, t = {" + "$a" * 150_000 + "}}",
        "@" * 1_000_000,
        "@a {" * 250_000,
        "@a{k, t = " + "{x} # " * 100_000,
        "\\" * 1_000_000,
    ],
)
def test_hostile_files_are_read_in_linear_steps(text: str) -> None:
    for name in ("bibtex", "ris", "csl-json"):
        try:
            references = FORMATS[name].parse(text).references
        except SyntaxProblem:
            continue
        FORMATS[name].write(references)


LIBRARY = (Path(__file__).parent / "library.bib").read_text()


def test_a_library_comes_back_equal() -> None:
    """Entries of all types, with what people and programs write in them."""
    first = FORMATS["biblatex"].parse(LIBRARY)
    references = [*{one["id"]: one for one in reversed(first.references)}.values()][::-1]
    assert (len(references), first.omitted) == (120, [])
    by_id = {str(one["id"]): one for one in references}
    assert by_id["incoll2000"]["booktitle"] == "Collected waves"
    assert by_id["child2"]["publisher"] == "Its own" and by_id["child2"]["year"] == "2013"
    assert by_id["xchild"]["location"] == "Leiden" and "xdata" not in by_id["xchild"]
    assert by_id["mendeley1"]["url"] == "http://example.org/mend_1%20a"
    assert "https://example.org the page" in by_id["percent2014"]["note"]
    for name in ("bibtex", "biblatex"):
        again = FORMATS[name].parse(FORMATS[name].write(references).text)
        for read, reference in zip(again.references, references, strict=True):
            assert read == reference
        assert not again.omitted


def test_what_entries_have_from_others_is_bounded() -> None:
    large = "@book{p, publisher = {" + "x" * 40_000 + "}, crossref = {p}}"
    children = "".join(f"@inbook{{c{number}, crossref = {{p}}}}" for number in range(300))
    with pytest.raises(SyntaxProblem):
        FORMATS["bibtex"].parse(large + children)
    circle = "@xdata{a, xdata = {b}, note = {n}} @xdata{b, xdata = {a, none}} @misc{c, xdata = {a}}"
    entries = FORMATS["bibtex"].parse(circle)
    assert entries.references == [{"id": "c", "type": "misc", "note": "n"}]
    assert [one.place for one in entries.omitted] == ["c"]
