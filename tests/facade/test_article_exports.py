"""Documents leave and enter in other formats, read here by other libraries."""

import asyncio
import io
import json
import re
import zipfile
from unittest.mock import patch

import aiohttp
import docx
import pypdf
import pytest
import pytest_asyncio
from lxml import etree, html

from services.accounts.repository import AccountRepository
from services.common.settings import parse
from services.common.storage.database import open_engine
from services.media.conversion import pandoc
from tests.facade.article_editor import Editor
from tests.facade.article_papers import BIBLIOGRAPHY, WORDS, paper, png
from tests.gateway_in_process import running_gateway
from tests.grid import each_row
from tests.thoroughness import sampled

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Author(Editor):
    """A user with documents and files."""

    def __init__(self, gateway, key):
        super().__init__(gateway, key)
        self.exported = {}

    @property
    def bearer(self):
        return {"Authorization": f"Bearer {self.key}"}

    async def upload(self, content, name="tide.png"):
        form = aiohttp.FormData()
        form.add_field("purpose", "user_data")
        form.add_field("file", content, filename=name)
        url = f"{self.gateway.url}/v1/files"
        async with self.gateway.http.post(url, data=form, headers=self.bearer) as answer:
            return (await answer.json())["id"]

    async def download(self, file_id):
        url = f"{self.gateway.url}/v1/files/{file_id}/content"
        async with self.gateway.http.get(url, headers=self.bearer) as answer:
            assert answer.status == 200
            return await answer.read()

    async def file_count(self):
        url = f"{self.gateway.url}/v1/files"
        async with self.gateway.http.get(url, headers=self.bearer) as answer:
            return len((await answer.json())["data"])

    async def export(self, name, **fields):
        answer = await self.done("doc/export", format=name, **{"as": "file", **fields})
        return answer, await self.download(answer["fileId"])

    async def paper_as(self, name):
        """Return the paper in a format, which is exported once."""
        if name not in self.exported:
            self.exported[name] = await self.export(name)
        return self.exported[name]

    async def open_paper(self):
        await self.open_new()
        await self.done("reference/import", format="bibtex", text=BIBLIOGRAPHY)
        await self.insert(*paper(await self.upload(png())))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gateway")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(folder):
    async with running_gateway(folder) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ada(gateway):
    author = Author(gateway, gateway.key)
    await author.open_paper()
    return author


async def another(gateway, folder):
    database = open_engine(parse({"storage": {"data_dir": str(folder)}}, "the test").storage)
    author = Author(gateway, await AccountRepository(database).create_key("eve"))
    await database.dispose()
    await author.open_new()
    return author


def text_of_docx(content):
    document = docx.Document(io.BytesIO(content))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        notes = etree.fromstring(archive.read("word/footnotes.xml"))
    cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    # Links are in no run of python-docx's paragraphs.
    paragraphs = ["".join(one._element.itertext()) for one in document.paragraphs]
    return " ".join([*paragraphs, *cells, *notes.itertext()])


def text_of_pdf(content):
    return " ".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(content)).pages)


def text_of_xml(content, parse=etree.fromstring):
    return " ".join(parse(content).itertext())


def text_of_archive(content, suffix):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if name.endswith(suffix)]
        return " ".join(text_of_xml(archive.read(name)) for name in names)


def text_of_latex(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        source = archive.read("Harbours.tex").decode()
    source = (
        source.replace("\\textless ", "<").replace("\\textless{}", "<").replace("\\textless", "<")
    )
    source = source.replace("\\textgreater{}", ">").replace("\\textgreater ", ">")
    return source.replace("\\textgreater", ">").replace("\\_", "_").replace("~", " ")


ELSEWHERE = "letters that pdfLaTeX does not have"
READERS = {
    "docx": text_of_docx,
    "pdf": text_of_pdf,
    "html": lambda content: text_of_xml(content, html.fromstring),
    "jats": text_of_xml,
    "epub": lambda content: text_of_archive(content, ".xhtml"),
    "odt": lambda content: text_of_archive(content, "content.xml"),
    "latex": text_of_latex,
}


def squeezed(text):
    return re.sub(r"\s", "", text)


@each_row("name", READERS)
async def test_every_word_is_in_a_file(ada, name):
    answer, content = await ada.paper_as(name)
    assert answer["bytes"] == len(content) and answer["filename"].startswith("Harbours.")
    check_words(name, content, answer["lost"])


def check_words(name, content, lost):
    """Check that a file has all words, but those without a font, which are said to be lost."""
    shown = squeezed(READERS[name](content))
    missing = [word for word in WORDS if squeezed(word) not in shown]
    reasons = [one["reason"] for one in lost if one["place"] != "formulas"]
    if name == "pdf" and reasons:
        assert (missing, reasons) == (["汉字"], ["no font here has the characters 字汉"])
    elif name == "latex":
        # They are there, for another program.
        assert (missing, [reason.partition(":")[0] for reason in reasons]) == ([], [ELSEWHERE])
    else:
        assert (missing, reasons) == ([], [])


async def test_pictures_are_in_files(ada):
    _, content = await ada.paper_as("docx")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        pictures = [one for one in archive.namelist() if one.startswith("word/media/")]
        assert [archive.read(one) for one in pictures] == [png()]
    _, content = await ada.paper_as("latex")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.read("figures/figure-1.png") == png()
        assert b"{figures/figure-1.png}" in archive.read("Harbours.tex")
    _, content = await ada.paper_as("pdf")
    (image,) = pypdf.PdfReader(io.BytesIO(content)).pages[0].images
    assert image.image.convert("RGB").getpixel((5, 5)) == (255, 0, 0)


async def test_a_paper_comes_back(ada, gateway):
    back = Author(gateway, gateway.key)
    for name, file_name in (
        ("docx", None),
        ("latex", "Harbours.tex"),
        ("html", None),
        ("jats", None),
    ):
        exported, content = await ada.paper_as(name)
        await back.open_new()
        if name == "docx":
            source = {"fileId": exported["fileId"]}
        elif file_name:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                source = {"text": archive.read(file_name).decode()}
        else:
            source = {"text": content.decode()}
        before = await back.file_count()
        answer = await back.done("doc/import", format=name, requestId="once", **source)
        read = await back.read()
        for word in (
            "# Harbours",
            "**boldly**",
            "H<sub>2</sub>O",
            "> Quoted",
            "Brest",
            "^[Footed]",
        ):
            assert word in read["text"], (name, word, read["text"])
        assert r"\alpha" in read["text"] and "E = mc^" in read["text"].replace("{", "")
        kinds = [block["type"] for block in read["blocks"]]
        assert {"title", "h1", "equation", "code", "list", "table"} <= set(kinds), name
        if name in ("docx", "html"):
            (image,) = [block["id"] for block in read["blocks"] if block["type"] == "image"]
            url = f"{gateway.url}/article/v1/doc/image"
            body = {"sessionId": back.session, "blockId": image}
            headers = {"x-api-key": back.key}
            async with gateway.http.post(url, json=body, headers=headers) as shown:
                assert await shown.read() == png()
        # Sent again, it is answered as before, and stores no picture again.
        assert await back.done("doc/import", format=name, requestId="once", **source) == answer
        assert await back.file_count() == before + (name == "docx")
        await back.done("history/undo")
        assert (await back.read())["blocks"] == []


async def test_latex_cites_and_lists_the_references(ada, gateway):
    source = (await ada.done("doc/export", format="latex"))["text"]
    cited = r"\citetext{\citealp[see][p. 3]{newton.1687}; \citealp{muller:2010+a}}"
    assert cited in " ".join(source.split())
    for key, names in (("newton.1687", "Newton}(1687)"), ("muller:2010+a", "Müller and")):
        assert f"\\bibitem[{{{names}" in source and f"]{{{key}}}" in source
    bibtex = (await ada.done("doc/export", format="bibtex"))["text"]
    assert "{newton.1687," in bibtex and "{muller:2010+a," in bibtex
    back = Author(gateway, gateway.key)
    await back.open_new()
    answer = await back.done("doc/import", format="latex", text=source)
    assert answer["referenceIds"] == ["newton.1687", "muller:2010+a"]
    assert not any("bibitem" in one["reason"] + one["place"] for one in answer["lost"])
    read = await back.done("doc/read", citations="key")
    assert "[see @newton.1687, p. 3; @muller:2010+a]" in read["text"]
    titles = {one["id"]: one["title"] for one in read["reference"]}
    assert titles["newton.1687"].startswith("Isaac Newton. Principia. Streater, 1687.")
    assert "On $x^2$ and tides" in titles["muller:2010+a"]
    styled = (await ada.done("doc/export", format="latex", style="apa"))["text"]
    assert r"\usepackage[round]{natbib}" in styled and "References}" not in styled
    assert "Newton, I. (1687).\n\\emph{Principia}. Streater." in styled
    numbered = (await ada.done("doc/export", format="latex", style="ieee"))["text"]
    assert r"\usepackage[numbers,square]{natbib}" in numbered
    assert "I. Newton, \\emph{Principia}. Streater, 1687." in numbered.replace("\n", " ")


async def test_an_import_is_suggested(ada, gateway):
    author = Author(gateway, gateway.key)
    await author.open_new()
    before = await author.read()
    source = {"format": "markdown", "text": "Tides rise.", "requestId": "once", "suggest": True}
    answer = await author.done("doc/import", **source)
    assert await author.done("doc/import", **source) == answer and await author.read() == before
    (one,) = (await author.done("suggestion/list"))["suggestions"]
    assert (one["id"], one["endpoint"]) == (answer["suggestionId"], "doc/import")
    await author.done("suggestion/accept", suggestionId=one["id"])
    blocks = (await author.read())["blocks"]
    assert [(block["id"], block["text"]) for block in blocks] == [(answer["ids"][0], "Tides rise.")]


async def test_markdown_and_references_leave_as_text(ada):
    markdown = (await ada.done("doc/export", format="markdown"))["text"]
    read = (await ada.read())["text"]
    assert markdown.startswith(read + "\n\n# References\n\n\\[1\\] Isaac Newton. *Principia*.")
    assert (await ada.done("doc/export", format="markdown", style="apa"))["text"].count(
        "(see Newton, 1687, p. 3; Müller & Tide Office, 2010)"
    ) == 1
    items = json.loads((await ada.done("doc/export", format="csl-json"))["text"])
    assert items[0]["author"][0] == {"family": "Müller", "given": "Jürgen"}
    bibtex = (await ada.done("doc/export", format="bibtex"))["text"]
    assert "@book{newton.1687," in bibtex


STYLES = {
    "apa": (
        "(see Newton, 1687, p. 3; Müller & Tide Office, 2010)",
        "Newton, I. (1687). *Principia*",
    ),
    "chicago-author-date": ("(see Newton 1687, 3; Müller and Tide Office 2010)", "Newton, Isaac."),
    "ieee": (r"see \[1, p. 3\], \[2\]", r"\[1\] I. Newton, *Principia*. Streater, 1687."),
    "vancouver": ("(see 1,2)", "1. Newton I."),
    "nature": ("<sup>see 1,2</sup>", "1. Newton, I. *Principia*. (Streater, 1687)."),
}


@pytest.mark.thorough
@each_row("style", sampled(STYLES, 2))
async def test_references_are_formatted_in_a_style(ada, style):
    answer = await ada.done("reference/format", style=style)
    citation, entry = STYLES[style]
    ((cited),) = answer["citations"]
    assert cited["referenceIds"] == ["newton.1687", "muller:2010+a"]
    texts = {one["referenceId"]: one["text"] for one in answer["bibliography"]}
    assert (cited["text"], texts["newton.1687"].startswith(entry)) == (citation, True), answer
    assert set(texts) == {"newton.1687", "muller:2010+a"} and "$x^2$" in texts["muller:2010+a"]


async def test_exports_follow_the_style_of_the_article(ada):
    await ada.done("style/article", style={"global": {"citationStyle": "apa"}})
    _, content = await ada.export("docx")
    assert "(see Newton, 1687, p. 3; Müller & Tide Office, 2010)" in text_of_docx(content)
    assert "[see 1, p. 3; 2]" in (await ada.read())["text"]
    await ada.done("style/article", style={"global": {"citationStyle": None}})


REFUSED = {
    "no such style": ("doc/export", {"format": "html", "style": "../apa"}, 40003, "/style"),
    "a style is missing": ("reference/format", {}, 40004, "/style"),
    "a bad locale": ("reference/format", {"style": "apa", "locale": "a b"}, 40003, "/locale"),
    "pdf is no text": ("doc/export", {"format": "pdf"}, 40003, "/as"),
    "docx is no text": ("doc/import", {"format": "docx", "text": "x"}, 40004, "/fileId"),
    "no document": ("doc/import", {"format": "html"}, 40004, "text"),
    "two documents": ("doc/import", {"format": "html", "text": "x", "fileId": "y"}, 40004, "text"),
    "nothing in it": ("doc/import", {"format": "html", "text": "<p></p>"}, 40003, "/text"),
    "a far position": (
        *("doc/import", {"format": "html", "text": "<p>x</p>", "position": 99}),
        *(40002, "/position"),
    ),
    "a macro loop": (
        *("doc/import", {"format": "latex", "text": r"\newcommand{\a}{\a\a}\a"}),
        *(40003, "/text"),
    ),
    "deep nesting": (
        *("doc/import", {"format": "html", "text": "<blockquote>" * 500 + "x"}),
        *(40003, "/text"),
    ),
    "a stale revision": (
        *("doc/import", {"format": "html", "text": "<p>x</p>", "ifRevision": 0}),
        *(40901, "/ifRevision"),
    ),
}


@each_row("case", REFUSED)
async def test_what_cannot_be_done_is_refused(ada, case):
    path, body, code, pointer = REFUSED[case]
    refusal = await ada.refused(path, **body)
    assert refusal[0] == code and pointer in refusal[1], refusal


def docx_bomb():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", b" " * (300 << 20))
    return packed.getvalue()


async def test_files_that_cannot_be_read_are_refused(ada, gateway, folder):
    for content in (docx_bomb(), b"no DOCX", png()):
        code, message = await ada.refused(
            "doc/import", format="docx", fileId=await ada.upload(content, "a.docx")
        )
        assert code == 40003 and message.startswith("/fileId"), message
    file_id = await ada.upload(png())
    eve = await another(gateway, folder)
    refusal = await eve.refused("doc/import", format="docx", fileId=file_id)
    assert refusal == await eve.refused("doc/import", format="docx", fileId="file-none")
    assert refusal[0] == 40409


HOSTILE = '</title><script>alert(4)</script>"), panic("x") #panic("run") }\\write18{id}'


async def test_hostile_texts_are_inert(gateway):
    author = Author(gateway, gateway.key)
    await author.open_new()
    await author.done(
        "doc/import",
        format="html",
        text="<p>a</p><script>alert(1)</script><iframe src='http://x.y/'></iframe>"
        "<img src='file:///etc/passwd'><p><a href='javascript:alert(2)'>b</a></p>",
    )
    answer = await author.done(
        "doc/import",
        format="latex",
        text=r"c \input{/etc/passwd} \includegraphics{/etc/passwd} \write18{id}",
    )
    assert any("/etc/passwd" in one["reason"] + one["place"] for one in answer["lost"])
    formula = {"type": "equation", "equation": r"\input{/etc/passwd}"}
    await author.insert({"type": "title", "children": [{"text": HOSTILE}]}, formula)
    await author.done("doc/properties", properties={"keywords": [HOSTILE], "date": HOSTILE})
    await author.done("doc/write", markdown="<script>alert(3)</script>\n\n$\\write18{id}$")
    assert "root:" not in (await author.read())["text"]
    page = (await author.done("doc/export", format="html"))["text"]
    links = html.fromstring(page)
    assert links.xpath("//script | //iframe | //img") == []
    assert not any("javascript:" in href for href in links.xpath("//@href"))
    latex = (await author.done("doc/export", format="latex"))["text"]
    body = latex[latex.index(r"\begin{document}") :]
    assert r"\input" not in body and r"\write" not in body
    typst = (await author.done("doc/export", format="typst"))["text"]
    shown = typst[typst.index("#show: doc => conf(") :]
    assert "#panic" not in shown.replace("\\#panic", "") and "keywords: (" not in shown
    await author.export("pdf")


async def test_without_pandoc_some_formats_remain(ada):
    with patch.object(pandoc, "_file_of", lambda *names: None):
        pandoc.pandoc_path.cache_clear()
        try:
            refusals = [
                await ada.refused("doc/export", format="docx", **{"as": "file"}),
                await ada.refused("doc/export", format="html", style="apa"),
                await ada.refused("doc/import", format="latex", text="x"),
                await ada.refused("reference/format", style="apa"),
            ]
            for code, message in refusals:
                assert code == 50101 and "pandoc" in message.rpartition("install")[2], message
            for name in ("html", "pdf"):
                answer, content = await ada.export(name)
                check_words(name, content, answer["lost"])
                assert answer["lost"][0]["place"] == "formulas"
            _, page = await ada.export("html")
            assert rb"\(E = mc^2\)" in page and b"&lt;b&gt;inert" in page
        finally:
            pandoc.pandoc_path.cache_clear()


async def test_exports_of_one_user_run_together(ada):
    answers = await asyncio.gather(*(ada.done("doc/export", format="latex") for _ in range(2)))
    assert len({answer["text"] for answer in answers}) == 1
