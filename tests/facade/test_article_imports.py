"""Documents with labels, long tables and links, written in other formats and read back."""

import re

import pytest
import pytest_asyncio

from tests.facade.article_editor import Editor
from tests.gateway_in_process import running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def author(tmp_path_factory):
    async with running_gateway(tmp_path_factory.mktemp("gateway")) as gateway:
        yield Editor(gateway, gateway.key)


async def test_figures_without_pictures_are_referred_to(author):
    await author.open_new()
    markdown = (
        "---\ntitle: Tides\n---\n\n# Results {#sec-r}\n\nIn @sec-r, @fig-x.\n\n"
        "![Far](https://far.example/a.png){#fig-x}"
    )
    await author.done("doc/write", markdown=markdown)
    for name in ("pdf", "docx", "latex"):
        kept = "text" if name == "latex" else "file"
        answer = await author.done("doc/export", **{"format": name, "as": kept})
        assert [one["place"] for one in answer["lost"]] == ["https://far.example/a.png"], name
        if name == "docx":
            await author.open_new()
            await author.done("doc/import", format="docx", fileId=answer["fileId"])
            kinds = [block["type"] for block in (await author.read())["blocks"]]
            assert "table" not in kinds
            await author.done("history/undo")
            await author.done("doc/write", markdown=markdown)
    page = (await author.done("doc/export", format="html"))["text"]
    assert '<span class="header-section-number">1</span> Results' in " ".join(page.split())
    await author.done("history/undo")
    await author.done("doc/import", format="html", text=page)
    assert "\n# Results {#sec-r}\n" in (await author.read())["text"]
    # What is the title, or empty, has no place of its own.
    await author.open_new()
    await author.done("doc/write", markdown="# Results {#sec-r}\n\nIn @sec-r. [Up](#up)")
    await author.done("doc/export", **{"format": "pdf", "as": "file"})


async def test_long_tables_of_latex_have_each_row_once(author):
    await author.open_new()
    listing = "\\begin{longtable}{l}\n\\endhead\n\\end{longtable}"
    long_table = r"""
    \begin{longtable}[c]{l@{}r}
    \caption{Tides}\\ \toprule\noalign{}
    Place & Height \\ \midrule\noalign{}
    \endfirsthead
    \multicolumn{2}{c}{continued} \\
    Place & Height \\
    \endhead
    \multicolumn{2}{r}{on the next page} \\
    \endfoot
    \hline \multicolumn{2}{l}{in metres} \\
    \endlastfoot
    Brest & 7 \\
    Dover & 6 \\
    \end{longtable}
    """
    numbered = (
        "\\begin{enumerate}\n\\def\\labelenumi{\\arabic{enumi}.}\n\\setcounter{enumi}{2}\n"
        "\\item third\n\\end{enumerate}"
    )
    text = f"\\begin{{verbatim}}\n{listing}\n\\end{{verbatim}}\n{long_table}\n{numbered}"
    answer = await author.done("doc/import", format="latex", text=text)
    assert answer["lost"] == []
    code, table, items = [block["text"] for block in (await author.read())["blocks"]]
    assert code == f"```\n{listing}\n```" and items == "3. third"
    cells = ["Place", "Height", "Brest", "7", "Dover", "6", "in metres"]
    assert re.findall(r">([^<\n]+)</t[hd]>", table) == cells
