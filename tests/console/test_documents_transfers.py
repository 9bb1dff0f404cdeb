"""Documents are exported from the console, and imported into it."""

import zipfile

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.conftest import opened
from tests.console.documents import Editor, text

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def editor(gateway):
    return await Editor.create(gateway)


async def test_a_document_is_exported_and_imported(browser, gateway, editor, tmp_path):
    await editor.insert(text("title", "On tides"), text("paragraph", "The sea rises."))
    async with opened(browser, gateway, editor.path) as page:
        menu = page.get_by_label("Export…")
        async with page.expect_download() as download:
            await menu.select_option("LaTeX")
        saved = await download.value
        assert saved.suggested_filename == "On-tides.tex"
        await saved.save_as(tmp_path / "saved.tex")
        source = (tmp_path / "saved.tex").read_text()
        assert "\\title{On tides}" in source and "The sea rises." in source

        other = tmp_path / "other.tex"
        other.write_text("\\section{More} It \\emph{falls}. \\unknown{x}")
        await page.get_by_label("Document to import").set_input_files(other)
        await expect(page.get_by_role("heading", name="More")).to_be_visible()
        assert await editor.texts() == ["# On tides", "The sea rises.", "# More", "It *falls*."]
        left_out = page.get_by_role("status", name="What was left out")
        await expect(left_out).to_contain_text("\\unknown{x}")
        await left_out.get_by_role("button", name="Hide").click()
        await expect(left_out).to_have_count(0)

        project = tmp_path / "paper.zip"
        with zipfile.ZipFile(project, "w") as packed:
            packed.writestr("main.tex", "\\input{last}")
            packed.writestr("last.tex", "\\section{Last}")
        await page.get_by_label("Document to import").set_input_files(project)
        await expect(page.get_by_role("heading", name="Last")).to_be_visible()

        wrong = tmp_path / "a.7z"
        wrong.write_bytes(b"7z")
        await page.get_by_label("Document to import").set_input_files(wrong)
        await expect(page.get_by_role("alert")).to_contain_text("Choose a file of Markdown")
