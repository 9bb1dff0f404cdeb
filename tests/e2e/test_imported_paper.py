"""A paper in Markdown, with its bibliography, is imported, corrected, and exported.

The files are read back by libraries that had no part in them.
"""

import io
import json
import re
import zipfile
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import docx
import pypdf
import pytest
from lxml import etree

from tests.e2e.gateway import Gateway
from tests.facade.article_papers import png

FOLDER = Path(__file__).parent
BIBLIOGRAPHY = (FOLDER / "imported.bib").read_text()
# What is in every export.
WORDS = """How tides are read|Ada Quay|Ben Shore|Harbour College|Tide Office
We read gauges, and say so.|Introduction|Gauges are read twice a day|rises by 10|boldly|gently
never|gauge_py|A footnote|Figure 1|The sea is never still.|Method|The gauge|Read the gauge.
Twice a day.|Wait.|Brest|6.9|Saint-Malo|10.7|Heights in metres|the height|Results|Table 1
Section 1""".replace("\n", "|").split("|")
REFERENCES = (
    *("Doodson", "Harmonic Development", "Cartwright", "Tables of Tidal", "Müller", "Øresund"),
    *("O’Neil", "waves", "NOAA", "Currents"),  # noqa: RUF001  # an apostrophe as typeset
)


class Paper:
    """Calls about one document."""

    def __init__(self, gateway: Gateway) -> None:
        self.address, self.key = gateway.address, gateway.key
        document = self.call("doc/create", name="Tides")["article"]["outer_id"]
        session = self.call("session/create", docId=document)["sessionId"]
        self.edit = partial(self.call, sessionId=session)

    def send(self, path: str, body: bytes, headers: dict[str, str]) -> bytes:
        with urlopen(Request(f"{self.address}{path}", body or None, headers)) as answer:
            content: bytes = answer.read()
            return content

    def call(self, endpoint: str, /, **body: Any) -> Any:
        headers = {"x-api-key": self.key, "Content-Type": "application/json"}
        answer = self.send(f"/article/v1/{endpoint}", json.dumps(body).encode(), headers)
        return json.loads(answer)["data"]

    def upload(self, content: bytes) -> str:
        form = (
            b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n--x\r\n'
            b'Content-Disposition: form-data; name="file"; filename="gauge.png"\r\n\r\n'
            b"%b\r\n--x--\r\n"
        )
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        headers["Authorization"] = f"Bearer {self.key}"
        file_id: str = json.loads(self.send("/v1/files", form % content, headers))["id"]
        return file_id

    def export(self, name: str, **options: str) -> tuple[Any, bytes]:
        answer = self.edit("doc/export", format=name, **{"as": "file", **options})
        headers = {"Authorization": f"Bearer {self.key}"}
        return answer, self.send(f"/v1/files/{answer['fileId']}/content", b"", headers)


@pytest.fixture(scope="module")
def paper(plain_gateway: Gateway) -> Paper:
    paper = Paper(plain_gateway)
    imported = paper.edit("reference/import", format="bibtex", text=BIBLIOGRAPHY)
    assert (len(imported["ids"]), imported["skipped"]) == (7, [])
    address = f"/beta/v1/files/{paper.upload(png())}/content"
    markdown = (FOLDER / "imported.md").read_text().replace("FIGURE", address)
    answer = paper.edit("doc/import", format="markdown", text=markdown)
    assert answer["lost"] == []
    assert (
        len(paper.edit("block/text/edit", edits=[{"old": "rread", "new": "read"}])["changed"]) == 1
    )
    return paper


def missing(shown: str, words: tuple[str, ...] | list[str]) -> list[str]:
    shown = squeezed(shown)
    return [word for word in words if squeezed(word) not in shown]


def squeezed(text: str) -> str:
    """Return a text without spaces, hyphens at the ends of lines, and kinds of apostrophes."""
    return re.sub(r"[\s\u00ad~-]", "", text.replace("\u2010", "").replace("'", "\u2019"))


def test_a_pdf_says_all_of_it(paper: Paper) -> None:
    answer, content = paper.export("pdf", style="apa")
    pages = pypdf.PdfReader(io.BytesIO(content)).pages
    shown = "\n".join(page.extract_text() for page in pages)
    assert missing(shown, [*WORDS, *REFERENCES, "1921, p. 3", "(2010)"]) == []
    assert [one for one in "𝑎𝐺𝑀𝑟𝑑𝛼ℎ𝑡" if one not in shown] == []  # noqa: RUF001  # letters of formulas
    images = [image for page in pages for image in page.images]
    assert [image.image and image.image.size for image in images] == [(40, 30)]
    assert all(one["place"] == "keywords" or "font" in one["reason"] for one in answer["lost"])


def test_a_docx_says_all_of_it(paper: Paper) -> None:
    answer, content = paper.export("docx", style="apa")
    assert answer["lost"] == []
    body = docx.Document(io.BytesIO(content)).element.body
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        notes = etree.fromstring(archive.read("word/footnotes.xml"))
        pictures = [name for name in archive.namelist() if name.startswith("word/media/")]
        assert [archive.read(name) for name in pictures] == [png()]
    shown = "".join([*body.itertext(), *notes.itertext()])
    assert missing(shown, [*WORDS, *REFERENCES, "1921, p. 3", "李明", "潮汐的高度"]) == []
    formulas = ["".join(one.itertext()) for one in body.iter("{*}oMath")]
    assert [text.replace(" ", "") for text in formulas][:1] == ["h=αt2"]  # noqa: RUF001  # a Greek letter
    assert any("2GMr" in formula and "d3" in formula for formula in formulas)


def test_latex_says_all_of_it(paper: Paper) -> None:
    answer, content = paper.export("latex")
    # All of it is in the source.
    [lost] = answer["lost"]
    assert lost["reason"].startswith("letters that pdfLaTeX does not have")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        source = archive.read("How-tides-are-read.tex").decode()
        assert archive.read("figures/figure-1.png") == png()
    plain = re.sub(
        r"\\(?:emph|textbf|texttt|textsuperscript|textsubscript|st|ul)\b|[{}\\]", "", source
    )
    assert missing(plain, [*WORDS, *REFERENCES[:6], "李明"]) == []
    for formula in (r"a = \frac{2 G M r}{d^3} \quad \text{if } r \ll d", r"\(h = \alpha t^2\)"):
        assert formula in source
    for command in (
        r"\includegraphics",
        r"\caption{The gauge}",
        r"\footnote{A footnote",
        r"\label{sec-intro}",
    ):
        assert command in source


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("name", ["biblatex", "bibtex", "csl-json"])
def test_115_references_come_back_equal(plain_gateway: Gateway, name: str) -> None:
    entries = BIBLIOGRAPHY.partition("@article")[2]
    copies = [re.sub(r"(@\w+\{)", rf"\g<1>k{n}.", f"@article{entries}") for n in range(17)]
    header = BIBLIOGRAPHY.partition("@article")[0]
    first, second = Paper(plain_gateway), Paper(plain_gateway)
    added = first.edit("reference/import", format="bibtex", text=header + "".join(copies))
    assert (len(added["ids"]), added["skipped"]) == (119, [])
    exported = first.edit("reference/export", format=name)
    back = second.edit("reference/import", format=name, text=exported["text"])
    assert (back["skipped"], exported["skipped"]) == ([], [])
    again = second.edit("reference/export", format=name)["text"]
    assert again == exported["text"]
    if name != "csl-json":
        # Dates of items are not written as they are in BibTeX.
        assert second.edit("doc/read")["reference"] == first.edit("doc/read")["reference"]
