"""Chats, which are conversations of the API: list, search, changes, export."""

import json
import re
from typing import Any

import pytest
from playwright.async_api import expect

from tests.console.accessibility import serious_violations
from tests.console.conftest import opened
from tests.console.test_chat import PNG, TOOL, answers, choose, parameters, say
from tests.gateway_in_process import Gateway
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def api(gateway: Gateway, path: str = "") -> Any:
    url = f"{gateway.url}/v1/conversations{path}"
    async with gateway.http.get(url, headers=gateway.bearer()) as answer:
        return (await answer.json())["data"]


async def stored(gateway: Gateway, count: int) -> list[Any]:
    """Wait until the only chat has so many items; return them, the oldest first."""
    items: list[Any] = []

    async def are_stored() -> bool:
        for chat in await api(gateway):
            items[:] = await api(gateway, f"/{chat['id']}/items?order=asc")
        return len(items) == count

    await until(are_stored, within_s=60, every_s=0.05)
    return items


def texts(items: list[Any]) -> list[str]:
    return [part["text"] for item in items for part in item["content"] if "text" in part]


async def test_a_chat_is_stored_continued_and_edited(browser, newcomer):
    async with opened(browser, newcomer) as page:
        await choose(page, "sandbox/echo")
        image = {"name": "dot.png", "mimeType": "image/png", "buffer": PNG}
        await page.locator("input[type=file]").set_input_files([image])
        await expect(page.get_by_role("list", name="Attachments")).to_contain_text("dot.png")
        await say(page, "The **first** question")
        await expect(answers(page)).to_contain_text("question")
        await say(page, "The second question")
        items = await stored(newcomer, 4)
        assert [item["role"] for item in items] == ["user", "assistant"] * 2
        [chat] = await api(newcomer)
        assert chat["metadata"] == {"title": "The first question", "model": "sandbox/echo"}
    # Another tab, of another day.
    async with opened(browser, newcomer, "/console/files") as page:
        recent = page.get_by_role("region", name="Recent chats")
        await recent.get_by_role("link", name="The first question").click()
        await expect(page.get_by_label("Model", exact=True)).to_have_value("sandbox/echo")
        await expect(page).to_have_title("The first question · Gateway console")
        await expect(answers(page)).to_have_count(2)
        listed = page.get_by_role("list", name="Attachments")
        await expect(listed).to_contain_text("dot.png")
        await page.get_by_role("button", name="Edit").last.click()
        await page.get_by_label("Message, edited").fill("Another second question")
        await page.keyboard.press("Enter")
        await expect(answers(page).last).to_contain_text("Another second")

        async def is_edited() -> bool:
            if len(chats := await api(newcomer)) == 1:
                return False
            newest, first = chats
            linear = await api(newcomer, f"/{newest['id']}/items?order=asc")
            assert await api(newcomer, f"/{first['id']}/items?order=asc") == items
            return texts(linear)[::2] == ["The **first** question", "Another second question"]

        # The branch is a conversation of its own, with a copy of what it shares.
        await until(is_edited, within_s=60, every_s=0.05)
        await recent.get_by_role("link", name="New chat").click()
        await expect(answers(page)).to_have_count(0)


async def test_branches_survive_a_reload_and_go_with_the_chat(browser, newcomer):
    async with opened(browser, newcomer) as page:
        await choose(page, "sandbox/echo")
        await say(page, "One")
        await expect(answers(page)).to_have_count(1)
        await say(page, "Two")
        await expect(answers(page)).to_have_count(2)
        await page.get_by_role("button", name="Edit").first.click()
        await page.get_by_label("Message, edited").fill("Another one")
        await page.keyboard.press("Enter")
        await expect(answers(page)).to_have_text(re.compile("Another one"))
        await page.get_by_role("button", name="Regenerate").click()
        of_answer = page.get_by_role("group", name="Versions of this answer")
        await expect(of_answer).to_contain_text("2 / 2")
        # A third version of the message, of the branch that is the second one's.
        await page.get_by_role("button", name="Edit").first.click()
        await page.get_by_label("Message, edited").fill("A third one")
        await page.keyboard.press("Enter")
        of_message = page.get_by_role("group", name="Versions of this message")
        await expect(of_message).to_contain_text("3 / 3")
        await expect(of_answer).to_have_count(0)
        await expect(page.get_by_role("button", name="Regenerate")).to_be_visible()

        async def are_stored() -> bool:
            chats = await api(newcomer)
            sizes = [len(await api(newcomer, f"/{chat['id']}/items")) for chat in chats]
            return sorted(sizes) == [2, 2, 2, 4]

        await until(are_stored, within_s=60, every_s=0.05)
        await page.reload()
        await expect(of_message).to_contain_text("3 / 3")
    # Another tab knows them from the API alone, as one chat.
    async with opened(browser, newcomer, "/console/chats") as page:
        card = page.get_by_role("list", name="Chats").get_by_role("article")
        await expect(card).to_have_count(1)
        # All branches have the new name, which no reload and no other branch takes back.
        await card.get_by_role("button", name="Rename").click()
        await page.get_by_label("Title").fill("Three ways")
        await page.keyboard.press("Enter")
        await expect(card).to_contain_text("Three ways")
        await page.reload()
        await expect(card).to_have_count(1)
        await card.get_by_role("link", name="Three ways").click()
        of_message = page.get_by_role("group", name="Versions of this message")
        await expect(of_message).to_contain_text("3 / 3")
        await of_message.get_by_role("button", name="Previous version").click()
        await expect(answers(page)).to_have_text(re.compile("Another one"))
        await of_message.get_by_role("button", name="Previous version").press("Enter")
        await expect(answers(page).last).to_contain_text("Two")
        await expect(of_message).to_contain_text("1 / 3")
        assert await page.title() == "Three ways · Gateway console"
        assert await serious_violations(page) == []
        await say(page, "Four")
        await expect(answers(page)).to_have_count(3)
        await page.get_by_role("navigation").get_by_role("link", name="Chats").click()
        await card.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(card).to_have_count(0)
        assert await api(newcomer) == []


async def test_models_answer_beside_one_another(browser, newcomer):
    async with opened(browser, newcomer, viewport={"width": 1440, "height": 900}) as page:
        await choose(page, "sandbox/echo")
        for number, model in ((2, "openai/fail-500"), (3, "openai/echo")):
            await page.get_by_role("button", name="Compare with another model").click()
            await page.get_by_label(f"Model {number}").fill(model)
            await page.get_by_label(f"Model {number}").press("Escape")
        await say(page, "Hello")
        shown = page.get_by_role("region", name="Answers beside one another")
        first, failed, second = (
            shown.get_by_role("article", name=f"Answer of {model}")
            for model in ("sandbox/echo", "openai/fail-500", "openai/echo")
        )
        await expect(failed.get_by_role("alert")).to_contain_text("req_")
        for answer in (first, second):
            await expect(answer).to_contain_text("tokens in")
            await expect(answer).to_contain_text("first token")
        boxes = [await one.bounding_box() for one in (first, failed, second)]
        assert len({box["y"] for box in boxes}) == 1
        await expect(failed.get_by_role("button", name="Continue")).to_have_count(0)
        await page.get_by_label("Message", exact=True).fill("And now?")
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()
        assert await serious_violations(page) == []
        await page.set_viewport_size({"width": 390, "height": 800})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        await page.reload()
        await second.get_by_role("button", name="Continue with this answer").click()
        await expect(page.get_by_label("Model", exact=True)).to_have_value("openai/echo")
        await say(page, "And now?")
        await expect(answers(page)).to_have_count(2)
        of_answer = page.get_by_role("group", name="Versions of this answer")
        await expect(of_answer).to_contain_text("2 / 2")
        await of_answer.get_by_role("button", name="Previous version").click()
        await expect(page.get_by_label("Model", exact=True)).to_have_value("sandbox/echo")
        models = {chat["metadata"]["model"]: chat["id"] for chat in await api(newcomer)}
        assert set(models) == {"sandbox/echo", "openai/echo"}


async def test_a_model_that_was_refused_is_asked_again(browser, newcomer):
    async with opened(browser, newcomer) as page:
        await choose(page, "sandbox/echo")
        await page.get_by_role("button", name="Compare with another model").click()
        await page.get_by_label("Model 2").fill("openai/echo")
        await page.get_by_label("Model 2").press("Escape")

        async def refuse(route):
            if route.request.post_data_json["model"] != "openai/echo":
                return await route.continue_()
            # The budget is reserved for the other answer.
            kind = {"type": "insufficient_quota", "code": "insufficient_quota"}
            error = {"message": "The budget is spent.", "param": None, **kind}
            await route.fulfill(status=429, json={"error": error})
            await page.unroute(address)

        address = re.compile(r"/v1/(responses|chat/completions)$")
        await page.route(address, refuse)
        await say(page, "Hello")
        shown = page.get_by_role("region", name="Answers beside one another")
        refused = shown.get_by_role("article", name="Answer of openai/echo")
        await expect(refused.get_by_role("alert")).to_contain_text("The budget is spent.")
        go_on = shown.get_by_role("button", name="Continue with this answer")
        await expect(go_on).to_have_count(1)
        again = shown.get_by_role("button", name="Try again")
        await expect(again).to_have_count(1)
        await page.reload()
        await again.click()
        await expect(refused).to_contain_text("tokens in")
        await expect(again).to_have_count(0)
        await expect(go_on).to_have_count(2)
        await go_on.nth(1).click()
        await say(page, "And now?")
        await expect(answers(page)).to_have_count(2)
        models = {chat["metadata"]["model"] for chat in await api(newcomer)}
        assert models == {"sandbox/echo", "openai/echo"}


async def test_calls_and_thoughts_are_stored(browser, newcomer):
    async with opened(browser, newcomer) as page:
        await choose(page, "sandbox/echo", "messages")
        await parameters(page)
        await page.get_by_label("Tools, as JSON").fill(json.dumps([TOOL]))
        await page.get_by_label("Tokens to think").fill("1024")
        await say(page, "Use the weather tool")
        await page.get_by_label("Result of weather").fill("It rains.")
        await page.get_by_role("button", name="Return the result").click()
        await expect(answers(page).nth(1)).to_contain_text("It rains.")
        await expect(page.get_by_role("button", name="Regenerate")).to_be_visible()
        before = [await answer.inner_text() for answer in await answers(page).all()]
        [chat] = await api(newcomer)
        kinds = {item["type"] for item in await stored(newcomer, 7)}
        assert kinds == {"message", "reasoning", "function_call", "function_call_output"}
    async with opened(browser, newcomer, f"/console?chat={chat['id']}") as page:
        await expect(answers(page)).to_have_count(2)
        after = [await answer.inner_text() for answer in await answers(page).all()]
        # What is known of how an answer came about is not stored.
        assert [text.split("\n")[:3] for text in after] == [text.split("\n")[:3] for text in before]
        await choose(page, "sandbox/echo", "messages")
        await say(page, "Thank you")
        await expect(answers(page).nth(2)).to_contain_text("Thank you")


async def test_chats_are_searched_renamed_exported_deleted(browser, newcomer):
    async with opened(browser, newcomer, "/console/chats") as page:
        await expect(page.get_by_text("There are no chats yet")).to_be_visible()
        for title in ("Tides of Brest", "Moon"):
            body = {
                "metadata": {"title": title},
                "items": [
                    {"role": "user", "content": f"About {title}"},
                    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c", "output": "a ``` fence"},
                    {"role": "assistant", "content": "High."},
                ],
            }
            url = f"{newcomer.url}/v1/conversations"
            async with newcomer.http.post(url, json=body, headers=newcomer.bearer()) as answer:
                assert answer.status == 200
        await page.reload()
        cards = page.get_by_role("list", name="Chats").get_by_role("article")
        await expect(cards).to_have_count(2)
        await page.get_by_role("searchbox").fill("brest TIDES")
        await expect(cards).to_have_count(1)
        async with page.expect_download() as started:
            await cards.get_by_role("button", name="Export").click()
        download = await started.value
        assert download.suggested_filename == "Tides of Brest.md"
        assert (await download.path()).read_text() == (
            "# Tides of Brest\n\n## You\n\nAbout Tides of Brest\n\nCalls `f`:\n\n```\n{}\n```\n\n"
            "Result:\n\n````\na ``` fence\n````\n\n## Answer\n\nHigh.\n"
        )
        await cards.get_by_role("button", name="Rename").click()
        await page.get_by_label("Title").fill("Tides of St Malo")
        assert await serious_violations(page) == []
        await page.keyboard.press("Enter")
        await expect(cards).to_have_count(0)
        await page.get_by_role("searchbox").fill("")
        await expect(cards.first).to_contain_text("Tides of St Malo")
        await cards.first.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(cards).to_have_count(1)
        [left] = await api(newcomer)
        assert left["metadata"] == {"title": "Moon"}


async def test_a_chat_is_not_stored_where_that_is_off(browser, newcomer):
    async with opened(browser, newcomer) as page:
        await choose(page, "sandbox/echo")
        await parameters(page)
        await page.get_by_label("Keep in the list of chats").uncheck()
        await say(page, "A secret")
        await expect(answers(page)).to_contain_text("A secret")
        await expect(page.get_by_role("button", name="Regenerate")).to_be_visible()
        assert await api(newcomer) == []


async def test_a_chat_deleted_elsewhere_is_stored_anew(browser, newcomer):
    async with opened(browser, newcomer) as page:
        await choose(page, "sandbox/echo")
        await say(page, "One")
        await stored(newcomer, 2)
        [chat] = await api(newcomer)
        url = f"{newcomer.url}/v1/conversations/{chat['id']}"
        async with newcomer.http.delete(url, headers=newcomer.bearer()) as answer:
            assert answer.status == 200
        await say(page, "Two")
        assert texts(await stored(newcomer, 4))[::2] == ["One", "Two"]
