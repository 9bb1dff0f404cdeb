"""Conversations with models in the chat."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.console.accessibility import serious_violations, serious_violations_in_the_dark
from tests.console.conftest import opened
from tests.console.scripted_upstream import HOSTILE, ScriptedUpstream
from tests.gateway_in_process import Gateway, running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOOL = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
# The smallest PNG: one pixel.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scripted_upstream() -> ScriptedUpstream:
    return ScriptedUpstream()


@pytest.fixture
def upstream(scripted_upstream: ScriptedUpstream) -> ScriptedUpstream:
    """Return the provider, which holds its answers again."""
    scripted_upstream.reset()
    return scripted_upstream


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("scripted")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scripted(scripted_upstream: ScriptedUpstream, folder) -> AsyncIterator[Gateway]:
    """Run a gateway whose provider is scripted, and whose keys end at once."""
    models = [{"name": HOSTILE, "provider": "openai", "upstream": "hostile"}]
    async with running_gateway(
        folder, scripted_upstream.app, models=models, limits={"identify_cache_s": 0}
    ) as gateway:
        yield gateway


async def choose(page: Page, model: str, api: str = "chat") -> None:
    field = page.get_by_label("Model", exact=True)
    await field.fill(model)
    # The list of models would cover what is below.
    await field.press("Escape")
    await page.get_by_role("combobox", name="API", exact=True).select_option(api)


async def say(page: Page, text: str) -> None:
    await page.get_by_label("Message", exact=True).fill(text)
    # Enter sends nothing while an answer is under way, or a file.
    await expect(page.get_by_role("button", name="Send")).to_be_enabled()
    await page.keyboard.press("Enter")


def answers(page: Page):
    return page.get_by_role("article", name="Answer")


async def parameters(page: Page) -> None:
    await page.get_by_text("Parameters", exact=True).click()


async def test_an_answer_appears_before_it_ends_and_is_stopped(browser, scripted, upstream):
    async with opened(browser, scripted) as page:
        await choose(page, "openai/held")
        await say(page, "Hello")
        await expect(answers(page)).to_contain_text("The first part")
        await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        upstream.may_end.set()
        await expect(answers(page)).to_contain_text("The first part and the rest.")
        await expect(answers(page)).to_contain_text("first token")
        upstream.reset()
        await say(page, "Hello again")
        await expect(answers(page).last).to_contain_text("The first part")
        await page.keyboard.press("Escape")
        await expect(answers(page).last).to_contain_text("You stopped this answer")
        async with asyncio.timeout(60):
            await upstream.has_left.wait()


async def test_parts_of_a_growing_answer_are_drawn_once(browser, scripted, upstream):
    async with opened(browser, scripted) as page:
        await choose(page, "openai/sections")
        await say(page, "Hello")
        await expect(answers(page).locator("pre")).to_have_text("def f():\n")
        paragraph = await answers(page).locator("p").first.element_handle()
        await expect(answers(page).locator(".token-keyword")).to_have_count(0)
        upstream.may_end.set()
        await expect(answers(page)).to_contain_text("The end.")
        await expect(answers(page).locator(".token-keyword").first).to_have_text("def")
        assert await answers(page).locator("pre").text_content() == "def f():\n    return 1"
        assert await paragraph.evaluate("element => element.isConnected")
        await choose(page, "openai/painter")
        await say(page, "Paint a dot")
        image = answers(page).get_by_role("img", name="Image of the model")
        await expect(image).to_have_js_property("naturalWidth", 1)
        await page.reload()
        await expect(answers(page).last).to_contain_text("There was an image")


async def test_the_sandbox_is_chosen_and_costs_are_shown(browser, tmp_path):
    price = {"input": 1_000_000, "output": 0}
    models = [{"name": "dear", "provider": "sandbox", "upstream": "echo", "price": price}]
    async with (
        running_gateway(tmp_path, providers={}, models=models) as gateway,
        opened(browser, gateway) as page,
    ):
        field = page.get_by_label("Model", exact=True)
        await expect(field).to_have_value("sandbox/echo")
        await field.click()
        listed = page.get_by_role("listbox", name="Models").get_by_role("option")
        await page.keyboard.type("dear")
        await expect(listed).to_have_count(1)
        await expect(listed).to_contain_text("$1,000,000.00 in, $0.00 out per million tokens")
        assert await serious_violations(page) == []
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(listed).to_have_count(0)
        await expect(field).to_have_value("dear")
        for api in ("chat", "messages", "responses"):
            await choose(page, "dear", api)
            await say(page, "Hello")
            # A dollar a token.
            of_its_tokens = re.compile(r"([1-9]\d*) tokens in, \d+ out\$\1(?!\d)")
            await expect(answers(page).last).to_contain_text(of_its_tokens)
            await page.get_by_role("button", name="New conversation").click()


async def test_scripts_in_answers_and_names_do_nothing(browser, scripted):
    async with opened(browser, scripted) as page:
        await choose(page, HOSTILE)
        await say(page, HOSTILE)
        await expect(answers(page)).to_contain_text("<script>")
        await expect(answers(page)).to_contain_text("Calls <img")
        await page.get_by_text("Thinking", exact=True).click()
        await expect(page.get_by_role("list", name="How the answer came about")).to_contain_text(
            "<img"
        )
        file = {"name": f"{HOSTILE[:19]}.txt", "mimeType": "text/plain", "buffer": b"x"}
        await page.locator("input[type=file]").set_input_files([file])
        await expect(page.get_by_role("list", name="Attachments")).to_contain_text("<img")
        assert await page.evaluate("document.querySelectorAll('#console img').length") == 0
        assert (
            await page.evaluate("document.querySelectorAll('#console a[href^=java]').length") == 0
        )
        assert await page.evaluate("window.hacked") is None


async def test_what_is_typed_as_the_page_appears_stays(page):
    await page.goto("/console/files")
    # Typed before the page is drawn for the first time.
    await page.evaluate(
        """() => new MutationObserver((_, observer) => {
            const field = document.querySelector("form.composer textarea");
            if (!field) return;
            observer.disconnect();
            field.value = "Early";
            field.dispatchEvent(new InputEvent("input", { bubbles: true }));
        }).observe(document.body, { childList: true, subtree: true })"""
    )
    await page.get_by_role("link", name="Chat", exact=True).click()
    await page.get_by_label("Model", exact=True).focus()
    await expect(page.get_by_label("Message", exact=True)).to_have_value("Early")


async def test_from_the_sign_in_to_an_answer_by_keyboard(browser, gateway):
    async with opened(browser, gateway, signed_in=False) as page:

        async def tab_to(locator) -> None:
            await expect(locator).to_be_visible()
            for _ in range(30):
                if await locator.evaluate("element => element === document.activeElement"):
                    return
                await page.keyboard.press("Tab")
            raise AssertionError("the keyboard does not lead there")

        await tab_to(page.get_by_label("API key"))
        await page.keyboard.type(gateway.key)
        await page.keyboard.press("Enter")
        await tab_to(page.get_by_label("Model", exact=True))
        await page.keyboard.type("sandbox/echo")
        await tab_to(page.get_by_label("Message", exact=True))
        await page.keyboard.type("Hello")
        await page.keyboard.press("Enter")
        await expect(answers(page)).to_contain_text("Hello")


async def test_attempts_are_shown_and_the_model_that_answered(page):
    await choose(page, "openai/fail-500")
    await parameters(page)
    await page.get_by_label("Temperature").fill("warm")
    await say(page, "Hello")
    await expect(page.get_by_role("alert")).to_contain_text("Temperature: takes a number")
    await expect(page.get_by_label("Message", exact=True)).to_have_value("Hello")
    await page.get_by_label("Temperature").fill("")
    await page.get_by_label("Fallback").select_option("enabled")
    await page.get_by_label("Models of the chain").fill("anthropic/fail-529")
    await say(page, "Hello")
    attempts = page.get_by_role("list", name="Failed attempts").get_by_role("listitem")
    await expect(attempts).to_have_count(2)
    await expect(attempts.nth(0)).to_contain_text("fail-500")
    await expect(attempts.nth(0)).to_contain_text("500 upstream_error")
    await expect(attempts.nth(1)).to_contain_text("529 upstream_overloaded")
    await expect(page.get_by_role("alert")).to_contain_text("req_")
    await page.get_by_label("Models of the chain").fill("sandbox/echo")
    await page.get_by_role("button", name="Regenerate").click()
    facts = page.get_by_role("list", name="How the answer came about")
    await expect(facts).to_contain_text("sandbox/echo at sandbox")
    await expect(facts).to_contain_text("2 attempts, step step-1")
    await expect(attempts).to_have_count(1)
    await expect(attempts).to_contain_text("openai/fail-500 primary500 upstream_error")
    await expect(facts).to_contain_text("tokens in")


async def test_tools_are_called_and_results_go_back(page):
    await parameters(page)
    await page.get_by_label("Tools, as JSON").fill(json.dumps([TOOL]))
    for api in ("chat", "messages", "responses"):
        await choose(page, "sandbox/echo", api)
        await say(page, "Use the weather tool")
        await expect(page.get_by_role("region", name="Call of weather")).to_be_visible()
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()
        await page.get_by_label("Result of weather").fill("It rains in Bergen.")
        await page.get_by_role("button", name="Return the result").click()
        await expect(answers(page)).to_have_count(2)
        await expect(answers(page).nth(1)).to_contain_text("It rains in Bergen.")
        await say(page, "Thank you")
        await expect(answers(page).nth(2)).to_contain_text("Thank you")
        await page.get_by_role("button", name="New conversation").click()
    # Of an answer with thoughts, their signature goes back with the next message.
    await page.get_by_label("Tools, as JSON").fill("")
    await choose(page, "sandbox/echo", "messages")
    await page.get_by_label("Tokens to think").fill("1024")
    await say(page, "Hello")
    thoughts = answers(page).get_by_text("The sandbox thinks about")
    await expect(page.get_by_text("Thinking", exact=True)).to_be_visible()
    await expect(thoughts).to_be_hidden()
    await page.get_by_text("Thinking", exact=True).click()
    await expect(thoughts).to_be_visible()
    await say(page, "Once more")
    await expect(answers(page).nth(1)).to_contain_text("Once more")


async def test_files_are_attached_uploaded_and_sent(browser, scripted, upstream):
    async with opened(browser, scripted) as page:
        await choose(page, "openai/some")
        held = asyncio.get_running_loop().create_future()
        await page.route("**/v1/files", lambda route: held.set_result(route), times=1)
        async with page.expect_file_chooser() as chooser:
            await page.get_by_role("button", name="Attach files").click()
        image = {"name": "dot.png", "mimeType": "image/png", "buffer": PNG}
        await (await chooser.value).set_files([image])
        await expect(page.get_by_role("progressbar", name="Upload of dot.png")).to_be_visible()
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()
        await (await held).continue_()
        listed = page.get_by_role("list", name="Attachments")
        await expect(listed.locator("img")).to_have_js_property("naturalWidth", 1)
        dropped = await page.evaluate_handle(
            """() => {
                const data = new DataTransfer();
                const file = new File(["What the note says."], "note.txt", { type: "text/plain" });
                data.items.add(file);
                return data;
            }"""
        )
        area = page.get_by_label("Message", exact=True)
        await area.dispatch_event("drop", {"dataTransfer": dropped})
        await expect(listed).to_contain_text("note.txt")
        await page.get_by_role("button", name="Remove dot.png").click()
        await say(page, "Read this")
        await expect(answers(page)).to_contain_text("Understood.")
        assert "What the note says." in json.dumps(upstream.bodies[-1])


async def test_a_message_is_edited_and_answered_again(page):
    await choose(page, "sandbox/echo")
    await say(page, "The first question")
    await expect(answers(page)).to_contain_text("The first question")
    await say(page, "A further one")
    await expect(answers(page)).to_have_count(2)
    message = page.get_by_label("Message", exact=True)
    field = page.get_by_label("Message, edited")
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await message.press("ArrowUp")
    await expect(field).to_have_value("A further one")
    await page.keyboard.press("Escape")
    # What was being written comes back after an edit.
    await message.fill("Half a thought")
    await page.get_by_role("button", name="Edit").first.click()
    await expect(field).to_have_value("The first question")
    await page.get_by_role("button", name="Cancel the edit").click()
    await expect(message).to_have_value("Half a thought")
    await page.get_by_role("button", name="Edit").first.click()
    await field.fill("Another question")
    await page.keyboard.press("Enter")
    await expect(answers(page)).to_have_count(1)
    await expect(answers(page)).to_contain_text("Another question")
    await page.get_by_role("button", name="Regenerate").click()
    await expect(answers(page)).to_have_count(1)
    await expect(answers(page)).to_contain_text("Another question")


async def test_nothing_typed_is_lost_until_the_sign_out(page):
    await choose(page, "sandbox/echo")
    await say(page, "Hello")
    await expect(answers(page)).to_contain_text("Hello")
    message = page.get_by_label("Message", exact=True)
    await message.fill("Half a thought")
    await page.reload()
    await expect(answers(page)).to_contain_text("Hello")
    await expect(message).to_have_value("Half a thought")
    await page.get_by_role("navigation").get_by_role("link", name="Files").click()
    await page.get_by_role("navigation").get_by_role("link", name="Chat", exact=True).click()
    await expect(message).to_have_value("Half a thought")
    await page.get_by_role("button", name="New conversation").click()
    await expect(answers(page)).to_have_count(0)
    await expect(message).to_have_value("Half a thought")
    await page.get_by_role("button", name="Undo").click()
    await expect(answers(page)).to_contain_text("Hello")
    await page.goto("/console/files")
    assert "Half a thought" in await page.evaluate("JSON.stringify(sessionStorage)")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("API key")).to_be_visible()
    assert await page.evaluate("sessionStorage.length") == 0


async def test_an_answer_survives_a_reload_or_is_marked(browser, scripted, upstream):
    async with opened(browser, scripted) as page:
        await choose(page, "openai/held")
        await say(page, "Hello")
        await expect(answers(page)).to_contain_text("The first part")
        await page.reload()
        await expect(answers(page)).to_contain_text("The first part")
        await expect(answers(page)).to_contain_text("cut off when the page was left")
        # A response in the background goes on, and is read again.
        await choose(page, "openai/held", "responses")
        await page.get_by_role("button", name="Regenerate").click()
        await expect(answers(page)).to_contain_text("The first part")
        await page.reload()
        await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        upstream.may_end.set()
        await expect(answers(page)).to_contain_text("The first part and the rest.")
        await expect(page.get_by_role("button", name="Regenerate")).to_be_visible()


async def test_a_conversation_is_accessible_and_narrow(browser, gateway):
    async with opened(browser, gateway, viewport={"width": 360, "height": 640}) as page:
        await choose(page, "sandbox/echo")
        await parameters(page)
        await page.get_by_label("Reasoning effort").select_option("low")
        await page.get_by_label("Tools, as JSON").fill(json.dumps([TOOL]))
        await say(page, "Use the weather tool " + "x" * 200)
        await expect(page.get_by_role("region", name="Call of weather")).to_be_visible()
        assert await serious_violations(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await page.get_by_role("button", name="Copy as code").click()
        await expect(page.get_by_role("dialog", name="This request")).to_contain_text("curl")
        assert await serious_violations(page) == []
        assert await serious_violations_in_the_dark(page) == []


CODE = "def f(a):  # <b>\n    return 'x' + a\n"
ANSWER = f"""It costs $5 and $6, from $7 to 8$; see $x^2$ and \\(y_1\\).

- [x] done
- [ ] to do

```python
{CODE}```

```mystery
{CODE}```

$$a$$
"""


async def test_answers_are_rendered_and_copied(browser, gateway):
    async with opened(browser, gateway, permissions=["clipboard-read", "clipboard-write"]) as page:
        loaded: list[str] = []
        page.on("request", lambda request: loaded.append(request.url))
        await choose(page, "sandbox/echo")
        await say(page, "Hello")
        await expect(answers(page)).to_contain_text("Hello")
        assert not any("highlighting" in url for url in loaded)
        await say(page, f"sandbox: recite {ANSWER}")
        answer = answers(page).last
        await expect(answer.locator(".katex-mathml").first).to_have_css("position", "absolute")
        await expect(answer.locator(".katex")).to_have_count(3)
        await expect(answer).to_contain_text("It costs $5 and $6, from $7 to 8$; see")
        await expect(answer.get_by_role("img", name="done")).to_be_visible()
        await expect(answer.locator(".code-block .bar span").first).to_have_text("Python")
        await expect(answer.locator(".token-keyword").first).to_have_text("def")
        code = await answer.locator("pre code").all_text_contents()
        assert code == [CODE.rstrip("\n")] * 2
        await expect(answer.locator("pre").last.locator("span")).to_have_count(0)
        await answer.get_by_role("button", name="Copy the code").first.click()
        assert await page.evaluate("navigator.clipboard.readText()") == CODE.rstrip("\n")
        await answer.get_by_role("button", name="Copy the answer").click()
        assert ANSWER in await page.evaluate("navigator.clipboard.readText()")
        assert await serious_violations(page) == []
        assert await serious_violations_in_the_dark(page) == []


async def test_presets_keep_a_prompt_and_parameters(browser, newcomer):
    async with opened(browser, newcomer) as page:
        await parameters(page)
        await page.get_by_label("System prompt").fill("Answer in rhymes.")
        await page.get_by_label("Temperature").fill("0.3")
        await page.get_by_label("Save these parameters as").fill("Poet")
        await page.keyboard.press("Enter")
    async with opened(browser, newcomer) as page:
        await parameters(page)
        await page.get_by_label("Top p").fill("0.5")
        await page.get_by_role("combobox", name="Preset", exact=True).select_option("Poet")
        await expect(page.get_by_label("System prompt")).to_have_value("Answer in rhymes.")
        await expect(page.get_by_label("Temperature")).to_have_value("0.3")
        await expect(page.get_by_label("Top p")).to_have_value("")
        await page.get_by_role("button", name="Delete preset Poet").click()
        await expect(page.get_by_role("option", name="Poet")).to_have_count(0)
