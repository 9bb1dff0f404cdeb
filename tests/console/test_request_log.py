"""The request log on the page of operations: search, and an entry with its bodies."""

import pytest
import pytest_asyncio
from playwright.async_api import expect

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from tests.console.accessibility import serious_violations
from tests.console.conftest import opened
from tests.gateway_in_process import Gateway, running_gateway
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

ADMIN_KEY = make_admin_key(bytes(32))
SECTIONS = {
    "admin": {"key_sha256": hash_admin_key(ADMIN_KEY).hex()},
    "usage": {"write_every_s": 0.05, "tags": ["project"], "end_users": True},
    "request_log": {"enabled": True, "bodies": True, "write_every_s": 0.05},
    "models": [{"name": "good", "provider": "openai", "upstream": "echo"}],
}


async def chat(gateway: Gateway, number: int, model: str, content: str) -> None:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": content}],
        "metadata": {"project": f"number-{number}"},
        "user": "ada" if number == 1 else "bob",
    }
    headers = {**gateway.bearer(), "x-request-id": f"request-{number}"}
    address = f"{gateway.url}/v1/chat/completions"
    async with gateway.http.post(address, json=body, headers=headers) as answer:
        await answer.read()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def logging_gateway(tmp_path_factory):
    """A gateway with three logged requests, one of which failed."""
    async with running_gateway(tmp_path_factory.mktemp("log"), **SECTIONS) as running:
        await chat(running, 1, "good", "Where is the lighthouse?")
        await chat(running, 2, "good", "Another question")
        await chat(running, 3, "unknown", "No model has this name")
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}

        async def are_logged() -> bool:
            url = f"{running.url}/admin/v1/requests"
            async with running.http.get(url, headers=headers) as answer:
                return len((await answer.json())["data"]) == 3

        await until(are_logged, within_s=60, every_s=0.05)
        yield running


async def test_requests_are_found_and_shown_with_bodies(browser, logging_gateway):
    async with opened(browser, logging_gateway, "/console/operations") as page:
        await page.get_by_label("Admin key").fill(ADMIN_KEY)
        await page.keyboard.press("Enter")
        listed = page.get_by_role("list", name="Requests").get_by_role("article")
        # The sidebar's own requests are in the log, too.
        chats = listed.filter(has_not_text="/v1/")
        await expect(chats).to_have_count(3)
        await expect(chats.first).to_contain_text("unknown")
        form = page.get_by_role("form", name="Search requests")
        await form.get_by_label("Text").fill("LIGHTHOUSE")
        await form.get_by_role("button", name="Search").click()
        await expect(listed).to_have_count(1)
        await listed.get_by_role("button", name="Details of request-1").click()
        body = page.get_by_role("region", name="Body of the request")
        await expect(body).to_contain_text("Where is the lighthouse?")
        await expect(page.get_by_role("region", name="Body of the response")).to_contain_text(
            "chat.completion"
        )
        await expect(listed).to_contain_text("end user ada · project=number-1")
        assert await serious_violations(page) == []
        await form.get_by_label("Text").fill("")
        await form.get_by_label("Status").fill("4xx")
        await form.get_by_role("button", name="Search").click()
        await expect(listed).to_have_count(1)
        await expect(listed).to_contain_text("unknown")
        await form.get_by_label("Status").fill("")
        await form.get_by_label("End user").fill("bob")
        await form.get_by_role("button", name="Search").click()
        await expect(listed).to_have_count(2)
        await form.get_by_label("Tag").fill("project=number-2")
        await form.get_by_role("button", name="Search").click()
        await expect(listed).to_have_count(1)
        await form.get_by_label("Status").fill("nine")
        await form.get_by_role("button", name="Search").click()
        await expect(page.get_by_role("alert").filter(has_text="status")).to_be_visible()
