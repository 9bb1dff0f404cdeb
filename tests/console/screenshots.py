"""Takes the pictures of the console for the README and `docs/`: `make screenshots`.

Its gateway and its browser begin at the same time of the same day, so that two runs differ little:
`make soak` compares new pictures with those that are committed.
"""

import asyncio
import re
import time
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
from PIL import Image, ImageDraw
from playwright.async_api import Page, async_playwright, expect

from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.common.clock import Clock
from tests.console.conftest import ARGUMENTS, executable, session_cookie
from tests.console.documents import Editor
from tests.gateway_in_process import Gateway, running_gateway
from tests.services.media.conversion.papers import two_columns
from tests.waiting import until

TARGET = Path("docs/images")
START = datetime(2026, 11, 17, 10, 30, tzinfo=UTC)
WIDTH, HEIGHT = 1280, 760
# So that the picture has the page from its top to its end.
NAMES = {"conversation": "chat"}
HEIGHTS = {"chat": 900, "comparison": 760, "overview": 1000}
ADMIN_KEY = make_admin_key(bytes(32))
SECTIONS = {
    "admin": {"key_sha256": hash_admin_key(ADMIN_KEY).hex()},
    "usage": {"write_every_s": 0.05},
    "request_log": {"enabled": True, "bodies": True, "write_every_s": 0.05},
    "models": [
        {
            "name": name,
            "provider": provider,
            "upstream": "echo",
            "price": {"input": price, "output": 4 * price},
        }
        for name, provider, price in (("fast", "openai", 10), ("careful", "anthropic", 25))
    ],
}
REPORT = rb"""# Harvest

| field | tons |
|---|---:|
| north | 14 |
| south | 9 |

$$\bar x = 11.5$$
"""


def picture() -> bytes:
    """Return a small picture, as a PNG."""
    image = Image.new("RGB", (320, 200), "#8fb3d9")
    ImageDraw.Draw(image).ellipse((90, 30, 230, 170), fill="#ffd166")
    stored = BytesIO()
    image.save(stored, "PNG")
    return stored.getvalue()


FILES = (
    ("harvest.md", "text/markdown", REPORT),
    ("sunset.png", "image/png", picture()),
    ("paper.pdf", "application/pdf", two_columns()),
)


async def take_all(target: Path) -> None:
    """Take a picture of each page of a gateway that has been used, into a folder."""
    ahead_s = START.timestamp() - time.time()
    clock = Clock(now=lambda: time.time() + ahead_s)
    # A machine that does other work, too, takes longer than Playwright waits by default.
    expect.set_options(timeout=30_000)
    with TemporaryDirectory() as folder:
        async with (
            running_gateway(Path(folder), clock=clock, **SECTIONS) as gateway,
            async_playwright() as p,
        ):
            await use(gateway)
            browser = await p.chromium.launch(executable_path=executable(), args=ARGUMENTS)
            context = await browser.new_context(
                base_url=gateway.url,
                viewport={"width": WIDTH, "height": HEIGHT},
                locale="en-US",
                timezone_id="UTC",
                reduced_motion="reduce",
            )
            await context.clock.install(time=clock.now())
            await context.add_cookies([await session_cookie(gateway, ADMIN_KEY)])
            page = await context.new_page()
            for take in (
                *(conversation, comparison, chats, files, memory, documents),
                *(overview, requests, people, invitations, providers),
            ):
                name = NAMES.get(take.__name__, take.__name__)
                height = HEIGHTS.get(name, HEIGHT)
                await page.set_viewport_size({"width": WIDTH, "height": height})
                await take(page)
                await page.screenshot(path=target / f"console-{name}.png")
            await browser.close()


async def use(gateway: Gateway) -> None:
    """Send what the pages show: chats, remembered ones, a file, a document."""
    for number, model in enumerate(["fast", "fast", "careful", "fast", "careful"]):
        await post(gateway, "/beta/v1/chat/completions", chat(model, f"Question {number}"))
    for text in ("My name is Ada and I live in Turin.", "I like fennel.", "What can I cook?"):
        memory_fields = {"memory_id": "kitchen", "memory_config": {"personal_memory": True}}
        body = {**chat("sandbox/echo", text), **memory_fields}
        await post(gateway, "/beta/v1/chat/completions", body)
    for name, content_type, content in FILES:
        form = aiohttp.FormData()
        form.add_field("purpose", "user_data")
        form.add_field("file", content, filename=name, content_type=content_type)
        address = f"{gateway.url}/beta/v1/files"
        async with gateway.http.post(address, data=form, headers=gateway.bearer()) as answer:
            assert answer.status == 200, await answer.text()

    for title in ("A week of sailing", "Which glue holds oak?", "Names for a grey cat"):
        body = {"metadata": {"title": title, "model": "fast"}, "items": []}
        await post(gateway, "/beta/v1/conversations", body)

    # Enough for what two requests at once may cost at most, which a budget reserves.
    await limit(gateway, "tester", {"spend_per_month": "20.00", "requests_per_minute": 60})
    editor = await Editor.create(gateway, "On tides")
    await editor.insert_everything()

    async def is_recorded() -> bool:
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
        address = f"{gateway.url}/admin/v1/activity"
        async with gateway.http.get(address, headers=headers) as answer:
            return sum(row["requests"] for row in (await answer.json())["data"]) >= 8

    await until(is_recorded, every_s=0.05)


async def limit(gateway: Gateway, name: str, limits: dict[str, object]) -> None:
    """Limit a user."""
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    users = f"{gateway.url}/admin/v1/users"
    async with gateway.http.get(users, params={"name": name}, headers=headers) as answer:
        [user] = (await answer.json())["data"]
    address = f"{users}/{user['id']}/limits"
    async with gateway.http.put(address, json=limits, headers=headers) as answer:
        assert answer.status == 200, await answer.text()


def chat(model: str, text: str) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": text}]}


async def post(gateway: Gateway, path: str, body: object) -> None:
    async with gateway.http.post(gateway.url + path, json=body, headers=gateway.bearer()) as answer:
        assert answer.status == 200, await answer.text()


async def conversation(page: Page) -> None:
    """Ask two models, and the second one anew."""
    await page.goto("/console")
    for model, text in (
        ("fast", "Name the **tides** of a day: high, low, high, low."),
        ("careful", "How long is a tide? I measured $T = 12.4\\,\\mathrm{h}$ in Brest, for $5."),
    ):
        await page.get_by_label("Model", exact=True).fill(model)
        await send(page, text)
    await page.get_by_role("button", name="Regenerate").click()
    await expect(page.get_by_role("group", name="Versions of this answer")).to_be_visible()
    await expect(page.get_by_role("button", name="Regenerate")).to_be_visible()
    await expect(page.locator(".katex").last).to_be_visible()
    await page.evaluate("document.fonts.ready")
    await page.mouse.move(0, 0)
    await page.evaluate("scrollTo(0, 0)")


async def comparison(page: Page) -> None:
    """Ask two models at the same time."""
    await page.goto("/console?chat=new")
    # Once the earlier chat has been put away.
    await expect(page).to_have_url(re.compile("/console$"))
    await expect(page.get_by_role("article", name="Answer")).to_have_count(0)
    await page.get_by_label("Model", exact=True).fill("fast")
    # The list of models would cover what is below.
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Compare with another model").click()
    await page.get_by_label("Model 2").fill("careful")
    await page.keyboard.press("Escape")
    await send(page, "Which harbour of **Brittany** has the highest tides?")
    await expect(page.get_by_role("button", name="Continue with this answer")).to_have_count(2)
    await page.mouse.move(0, 0)
    await page.evaluate("scrollTo(0, 0)")


async def send(page: Page, text: str) -> None:
    """Send a message, and wait until the answers are complete."""
    await page.get_by_label("Message", exact=True).fill(text)
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await expect(page.get_by_role("article", name="Answer").last).to_contain_text("tokens")


async def chats(page: Page) -> None:
    """List chats of some days."""
    await page.goto("/console/chats")
    await expect(page.get_by_role("article", name="Name the tides")).to_be_visible()


async def files(page: Page) -> None:
    """List files, and choose one of them."""
    await page.goto("/console/files")
    await expect(page.locator(".thumbnail img")).to_have_count(2)
    await expect(page.locator(".thumbnail pre")).to_have_count(1)
    await page.get_by_label("Choose harvest.md").check()
    await page.mouse.move(0, 0)


async def memory(page: Page) -> None:
    """Show conversations, and what is known of the user."""
    await page.goto("/console/memory")
    await expect(page.get_by_role("list", name="Facts")).to_be_visible()


async def documents(page: Page) -> None:
    """Open a document."""
    await page.goto("/console/documents")
    await page.get_by_role("main").get_by_role("link", name="On tides").click()
    await expect(page.locator(".katex").first).to_be_visible()


async def overview(page: Page) -> None:
    """Show spending, limits and activity of all users."""
    await page.goto("/console/overview?scope=everyone")
    await expect(page.locator("canvas").first).to_be_visible()
    await expect(page.get_by_role("list", name="Limits and budgets")).to_be_visible()


async def requests(page: Page) -> None:
    """Show one request."""
    await page.goto("/console/requests?scope=everyone")
    await page.locator("tbody tr").first.get_by_role("link").click()
    await expect(page.get_by_role("list", name="What happened")).to_be_visible()


async def people(page: Page) -> None:
    """Show keys and the limits of one."""
    await page.goto("/console/people")
    await page.get_by_role("button", name="Limits").nth(1).click()
    await expect(page.get_by_role("form", name="Limits", exact=True)).to_be_visible()


async def invitations(page: Page) -> None:
    """Invite somebody."""
    await page.goto("/console/people?tab=invitations")
    form = page.get_by_role("form", name="Invite")
    for user, role in (("grace@example.com", "admin"), ("ada@example.com", "user")):
        await form.get_by_label("Name or email").fill(user)
        await form.get_by_label("Role").select_option(role)
        await form.get_by_role("button", name="Invite").click()
        await expect(page.get_by_role("article", name=user)).to_be_visible()
    # A link of the picture must open nothing.
    code = page.locator(".secret code")
    await code.evaluate(
        "one => { one.textContent = one.textContent.replace(/gwinvite-.*/, 'gwinvite-…') }"
    )
    await page.mouse.move(0, 0)


async def providers(page: Page) -> None:
    """Show the providers and their health."""
    await page.goto("/console/providers")
    await expect(page.get_by_role("heading", name="openai").first).to_be_visible()
    await expect(page.get_by_role("form").get_by_label("Provider")).to_have_value("cerebras")


if __name__ == "__main__":
    asyncio.run(take_all(TARGET))
