"""`/docs` in a browser, under its policy: what it shows, and the requests that it sends."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.console.accessibility import serious_violations
from tests.console.conftest import opened
from tests.gateway_in_process import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def docs(browser: Browser, gateway: Gateway) -> AsyncIterator[Page]:
    async with opened(browser, gateway, "/docs", signed_in=False) as page:
        yield page


async def opened_form(page: Page, operation: str) -> Locator:
    """Open the description of an endpoint; return its form."""
    await page.locator(f"#{operation} summary").click()
    return page.locator(f"#{operation} form")


async def send(form: Locator) -> tuple[str, str]:
    """Send the request of a form; return the status and what is shown below it."""
    await form.get_by_role("button", name="Send").click()
    await expect(form.get_by_role("status")).to_have_text(re.compile("HTTP|failed"))
    await expect(form.get_by_role("button", name="Send")).to_be_visible()
    status = await form.get_by_role("status").inner_text()
    return status, await form.locator("pre").inner_text()


async def test_a_section_is_found_by_its_address(browser: Browser, gateway: Gateway) -> None:
    async with opened(browser, gateway, "/docs#files", signed_in=False) as page:
        await expect(page.locator("#files")).to_be_in_viewport()
        upload = page.locator("#files details").first
        await upload.locator("summary").click()
        await expect(upload.locator("pre").first).to_be_visible()
        assert await upload.evaluate("element => getComputedStyle(element).borderTopWidth") == "1px"


async def test_a_request_shows_status_headers_and_answer(docs: Page, gateway: Gateway) -> None:
    form = await opened_form(docs, "createChatCompletion")
    status, shown = await send(form)
    assert status.startswith("HTTP 401 after ")
    assert "invalid_api_key" in shown
    await docs.get_by_label("API key").fill(f" {gateway.key} ")
    status, shown = await send(form)
    assert status.startswith("HTTP 200 after ")
    headers, _, answer = shown.partition("\n\n")
    assert "content-type: application/json" in headers and "x-request-id: " in headers
    assert json.loads(answer)["choices"][0]["message"]["role"] == "assistant"
    # It is indented for people.
    assert '\n  "choices": [\n' in answer


async def test_a_body_is_sent_as_it_is_written(docs: Page, gateway: Gateway) -> None:
    await docs.get_by_label("API key").fill(gateway.key)
    form = await opened_form(docs, "createMessage")
    body = {"model": "sandbox/echo", "max_tokens": 99}
    body["messages"] = [{"role": "user", "content": "<b>Ahoy</b>"}]
    await form.get_by_label("Body").fill(json.dumps(body))
    status, shown = await send(form)
    assert status.startswith("HTTP 200") and "<b>Ahoy</b>" in shown
    await form.get_by_label("Body").fill("{")
    status, shown = await send(form)
    assert status.startswith("HTTP 400") and "invalid_request_error" in shown


async def test_a_streamed_answer_is_shown_as_it_comes(docs: Page, gateway: Gateway) -> None:
    await docs.get_by_label("API key").fill(gateway.key)
    form = await opened_form(docs, "createChatCompletion")
    # Half an hour of pieces: it has not ended before it is stopped.
    question = "Hello " * 36_000
    body = {"model": "sandbox/slow", "messages": [{"role": "user", "content": question}]}
    await form.get_by_label("Body").fill(json.dumps(body))
    await form.get_by_label("Streamed").check()
    await form.get_by_role("button", name="Send").click()
    await expect(form.locator("pre")).to_contain_text('data: {"')
    await form.get_by_role("button", name="Stop").click()
    await expect(form.get_by_role("status")).to_have_text(re.compile(r"HTTP 200 .*\. Stopped"))
    assert "[DONE]" not in await form.locator("pre").inner_text()


async def test_a_file_is_uploaded_found_and_read(
    docs: Page, gateway: Gateway, tmp_path: Path
) -> None:
    await docs.get_by_label("API key").fill(gateway.key)
    (tmp_path / "notes.txt").write_text("High tide is at noon.")
    form = await opened_form(docs, "createFile")
    await form.get_by_label("file").set_input_files(tmp_path / "notes.txt")
    status, shown = await send(form)
    assert status.startswith("HTTP 200")
    file = json.loads(shown.partition("\n\n")[2])
    form = await opened_form(docs, "getFileContent")
    await form.get_by_label("file_id").fill(file["id"])
    status, shown = await send(form)
    assert status.startswith("HTTP 200") and "High tide is at noon." in shown
    form = await opened_form(docs, "listFiles")
    await form.get_by_label("purpose").fill("vision")
    _, shown = await send(form)
    assert json.loads(shown.partition("\n\n")[2])["data"] == []


async def test_a_request_that_fails_says_so(docs: Page) -> None:
    async def refuse(route: Route) -> None:
        await route.abort()

    await docs.route("**/v1/models", refuse)
    status, _ = await send(await opened_form(docs, "listModels"))
    assert status.startswith("The request failed: ")


async def test_the_sign_in_of_the_console_holds(browser: Browser, gateway: Gateway) -> None:
    async with opened(browser, gateway, "/docs") as page:
        status, shown = await send(await opened_form(page, "listModels"))
        assert status.startswith("HTTP 200") and "sandbox/echo" in shown


async def test_everybody_can_use_the_page(docs: Page) -> None:
    await opened_form(docs, "createChatCompletion")
    assert await serious_violations(docs) == []
