"""Papers as journals have them: figures in files beside the text, formulas and labels of LaTeX."""

import io
import re
import zipfile

import aiohttp
import pytest
import pytest_asyncio

from tests.facade.article_editor import Editor
from tests.facade.article_papers import png
from tests.gateway_in_process import running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

# In the form of the Journal of Open Source Software.
PAPER = r"""
As \autoref{eq:pull} and \autoref{fig:tide} show,
\begin{equation}\label{eq:pull}
F = ma
\end{equation}
where $m$ is a mass.

- Several lines:
  \begin{align*}
  a &= b \\
  c &= d
  \end{align*}

![A *tide*.\label{fig:tide}](./figures/a%20tide.png){width="360pt"}

![Waves](figures/waves.png)

Call [`pull`](https://tides.example/pull), not \begin{equation}.
"""
PAPER_READ = r"""As [Eq. (1)](#eq:pull) and [Figure 1](#fig:tide) show,

$$
F = ma
$$ {#eq:pull}

where $m$ is a mass.

- Several lines: $$\begin{aligned}a &= b \\ c &= d\end{aligned}$$

![A *tide*.](/beta/v1/files/TIDE/content){#fig:tide alt=""}

Waves

Call [`pull`](https://tides.example/pull), not \\begin{equation}."""


class Author(Editor):
    """A user with files."""

    async def upload(self, name, content=None):
        form = aiohttp.FormData()
        form.add_field("purpose", "user_data")
        kind = "image/png" if name.endswith(".png") else "application/zip"
        form.add_field("file", content or png(), filename=name, content_type=kind)
        bearer = {"Authorization": f"Bearer {self.key}"}
        async with self.gateway.http.post(
            f"{self.gateway.url}/v1/files", data=form, headers=bearer
        ) as answer:
            return (await answer.json())["id"]

    async def content(self, file_id):
        address = f"{self.gateway.url}/v1/files/{file_id}/content"
        bearer = {"Authorization": f"Bearer {self.key}"}
        async with self.gateway.http.get(address, headers=bearer) as answer:
            return await answer.read()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def author(tmp_path_factory):
    async with running_gateway(tmp_path_factory.mktemp("gateway")) as gateway:
        yield Author(gateway, gateway.key)


@pytest.mark.parametrize("endpoint", ["doc/write", "doc/import"])
async def test_a_paper_is_written_with_its_figures(author, endpoint):
    await author.open_new()
    tide = await author.upload("tide.png")
    files = {"figures/a tide.png": tide, "figures/none.png": tide}
    text = {"markdown": PAPER} if endpoint == "doc/write" else {"format": "markdown", "text": PAPER}
    written = await author.done(endpoint, **text, files=files)
    assert (await author.read())["text"] == PAPER_READ.replace("TIDE", tide)
    reasons = {one["place"]: one["reason"] for one in written["lost"]}
    assert set(reasons) == {"line 16", "figures/none.png"}, reasons
    assert reasons["line 16"].startswith("the picture figures/waves.png: must be an http")
    assert reasons["line 16"].endswith(", or an address in /files")
    # As a suggestion, it has its figures once it is accepted.
    await author.open_new()
    suggested = await author.done(endpoint, **text, files=files, suggest=True)
    await author.done("suggestion/accept", suggestionId=suggested["suggestionId"])
    assert f"/files/{tide}/content" in (await author.read())["text"]


async def test_a_paper_in_latex_has_its_figures(author):
    await author.open_new()
    tide = await author.upload("tide.png")
    latex = (
        "\\begin{document}\n\\begin{figure}\\includegraphics[width=\\linewidth]{figures/tide}"
        "\\caption{A tide}\\label{fig:tide}\\end{figure}\nIn \\ref{fig:tide}.\n"
        "\\begin{itemize}\\setlength{\\itemsep}{0pt}\n\\item \\small one\\end{itemize}\n"
        "\\unknown{x}\n\\end{document}"
    )
    written = await author.done(
        "doc/import", format="latex", text=latex, files={"./figures/tide": tide}
    )
    figure = f'![A tide](/beta/v1/files/{tide}/content){{#fig:tide alt=""}}'
    assert (await author.read())["text"] == f"{figure}\n\nIn [1](#fig:tide).\n\n- one"
    (lost,) = written["lost"]
    assert lost["reason"].startswith("Skipped '\\unknown{x}'"), lost


TIDES = """
---
title: Tides
authors:
- name: Ada Quay
  affiliation: 1
  orcid: 0000-0002-1825-0097
affiliations:
- name: Oxbow
---
![A tide](a.png){#fig:tide}

In @fig:tide.
""".lstrip()


async def test_a_paper_comes_back_from_latex(author):
    await author.open_new()
    tide = await author.upload("tide.png")
    await author.done("doc/write", markdown=TIDES, files={"a.png": tide})
    latex = (await author.done("doc/export", format="latex"))["text"]
    await author.open_new()
    files = {"figures/figure-1.png": tide}
    imported = await author.done("doc/import", format="latex", text=latex, files=files)
    assert imported["lost"] == []
    # Institutions have no place in LaTeX's own metadata, and come back as text.
    assert (await author.read())["text"] == (
        "# Tides\n\n[Ada Quay](https://orcid.org/0000-0002-1825-0097)\n\n<sup>1</sup>Oxbow\n\n"
        f'![A tide](/beta/v1/files/{tide}/content){{#fig:tide alt=""}}\n\nIn [Figure 1](#fig:tide).'
    )


async def test_files_of_a_text_are_those_of_its_author(author):
    await author.open_new()
    tide = await author.upload("tide.png")
    many = {f"{number}.png": tide for number in range(201)}
    for files, pointer in (
        ({"a/b.png": "file-nobodys"}, "/files/a~1b.png"),
        ({"a/b.png": "f" * 201}, "/files/a~1b.png"),
        ({"": tide}, "/files"),
        (many, "/files"),
    ):
        refused = await author.refused("doc/write", markdown="![A](a/b.png)", files=files)
        assert (refused[0], refused[1].partition(":")[0]) == (40003, pointer), refused
        refused = await author.refused(
            "doc/import", format="markdown", text="![A](a/b.png)", files=files
        )
        assert (refused[0], refused[1].partition(":")[0]) == (40003, pointer), refused


async def test_authors_come_back_from_jats(author):
    await author.open_new()
    await author.insert(
        {
            "type": "author",
            "author": [
                {"name": "Ada van Quay", "institutionIds": [1, 2], "orcid": "0000-0002-1825-0097"},
                {"name": "Shore", "institutionIds": [2], "email": "shore@tides.example"},
            ],
            "institution": [{"id": 1, "name": "Harbour College"}, {"id": 2, "name": "Tide & Co"}],
        }
    )
    before = (await author.read())["text"]
    exported = await author.done("doc/export", format="jats")
    assert "<surname>van Quay</surname>" in exported["text"], exported["text"]
    await author.open_new()
    imported = await author.done("doc/import", format="jats", text=exported["text"])
    assert imported["lost"] == []
    assert (await author.read())["text"] == before
    # A group of authors has no parts, and institutions have labels and may stand with an author.
    await author.open_new()
    article = exported["text"].replace("<surname>Shore</surname>", "<surname>Ebb</surname>")
    article = article.replace(
        "</contrib-group>",
        (
            '<contrib contrib-type="author"><collab>Tide Group</collab>'
            "<aff><label>a</label>Fen</aff></contrib>"
            '<contrib contrib-type="editor"><collab>Editors</collab></contrib></contrib-group>'
        ),
    )
    await author.done("doc/import", format="jats", text=article)
    shown = (await author.read())["text"]
    assert "Ebb" in shown and "Tide Group" in shown and "Fen" in shown and "Editors" not in shown


LATEX = r"""\documentclass{article}
\graphicspath{{plots/}}
\begin{document}
% \input{nowhere}
\input sections/empty.tex
\input{sections/methods}
\include{missing}
\bibliography{library}
\end{document}
"""
METHODS = r"""\section{Methods}
As \citet{newton} says; see \ref{fig:tide}.
\begin{figure}\includegraphics{tide.pdf}\caption{A tide}\label{fig:tide}\end{figure}
"""
LIBRARY = "@book{newton, author = {Newton, Isaac}, title = {Principia}, year = 1687}"


def archive(**files):
    """Return a ZIP archive of files, whose names have `/` and `.` for `__` and `_`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in files.items():
            written.writestr(name.replace("__", "/").replace("_", "."), content)
    return packed.getvalue()


async def test_an_archive_of_a_paper_is_read_whole(author):
    await author.open_new()
    paper = archive(
        project__main_tex=LATEX,
        project__sections__methods_tex=METHODS,
        project__sections__empty_tex="",
        project__library_bib=LIBRARY,
        project__plots__tide_png=png(),
        __MACOSX__main_tex="\\documentclass",
    )
    file_id = await author.upload("paper.zip", paper)
    imported = await author.done("doc/import", format="latex", fileId=file_id)
    assert imported["referenceIds"] == ["newton"]
    heading, words, figure = [block["text"] for block in (await author.read())["blocks"]]
    assert (heading, words) == ("# Methods", "As Newton [1] says; see [1](#fig:tide).")
    (picture,) = re.findall(r"!\[A tide\]\(/beta/v1/files/(.+)/content\)", figure)
    assert await author.content(picture) == png()
    lost = imported["lost"]
    assert lost == [{"place": "missing", "reason": "a file that the archive does not have"}]
    # Another picture that the caller names comes first; Markdown is read the same way.
    await author.open_new()
    other = await author.upload("other.png", png("blue"))
    paper = archive(
        paper_md=(
            "---\nbibliography: library.bib\n---\n\n# Tides\n\n[@newton]\n\n"
            "![A](plots/a.png)\n\n![B](plots/b.png)"
        ),
        library_bib=LIBRARY,
        plots__a_png=png(),
        plots__b_png=png(),
    )
    file_id = await author.upload("paper.zip", paper)
    files = {"plots/a.png": other}
    imported = await author.done("doc/import", format="markdown", fileId=file_id, files=files)
    assert imported["lost"] == []
    text = (await author.read())["text"]
    assert f"![A](/beta/v1/files/{other}/content)" in text and "![B](/beta/v1/files/" in text


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"notes_txt": "a"}, "the archive has no file .tex"),
        ({"main_tex": "\\input{main}"}, "the text includes too many files, or itself"),
        ({"main_tex": "a", "huge_png": bytes(65 << 20)}, "the archive must have at most 64 MiB"),
        ({f"a{number}_png": b"" for number in range(2_001)}, "the archive must have at most 2,000"),
        ({"main_tex": b"\xff"}, "main.tex must be text in UTF-8"),
        ({"main_tex": "a", "library_bib": "@a{" * 200}, "too many errors"),
    ],
)
async def test_an_archive_that_is_no_paper_is_refused(author, files, reason):
    await author.open_new()
    file_id = await author.upload("paper.zip", archive(**files))
    code, message = await author.refused("doc/import", format="latex", fileId=file_id)
    assert code == 40003 and message.startswith(f"/fileId: {reason}"), message


async def test_an_archive_of_another_kind_is_refused(author):
    await author.open_new()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_BZIP2) as written:
        written.writestr("main.tex", "a")
    encrypted = archive(main_tex="a")
    # The flags of the file in the list of all files.
    flags = encrypted.index(b"PK\x01\x02") + 8
    encrypted = encrypted[:flags] + b"\x01" + encrypted[flags + 1 :]
    for content in (packed.getvalue(), encrypted):
        file_id = await author.upload("paper.zip", content)
        code, message = await author.refused("doc/import", format="latex", fileId=file_id)
        assert code == 40003 and message.endswith("must be deflated, and not encrypted"), message


async def test_a_damaged_archive_is_refused(author):
    await author.open_new()
    whole = archive(main_tex="\\documentclass{article}\\begin{document}a\\end{document}")
    for damaged in (whole[:40], whole.replace(b"main.tex", b"nain.tex", 1)):
        file_id = await author.upload("paper.zip", damaged)
        code, message = await author.refused("doc/import", format="latex", fileId=file_id)
        assert (code, "the archive cannot be read" in message) == (40003, True), message
