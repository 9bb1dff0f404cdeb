"""Images for models that read none: described by another model, in their places."""

import asyncio

import pytest
import pytest_asyncio

from tests.facade.conversations import png
from tests.facade.media import (
    CHAT,
    MESSAGES,
    PICTURE,
    by_address,
    by_id,
    by_value,
    gateway_with_media,
    media_of,
    texts_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENDPOINTS = pytest.mark.parametrize("path", [CHAT, MESSAGES])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def media(tmp_path_factory):
    async with gateway_with_media(tmp_path_factory.mktemp("gateway")) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def forgotten(media):
    await media.sent()
    media.converting.asked.clear()
    media.fetching.asked.clear()


def image(width: int) -> bytes:
    """Return an image that no other test sends, so that nothing is known of it."""
    return png(width, 1000 + next(_number))


_number = iter(range(10_000))


@ENDPOINTS
@pytest.mark.parametrize("stream", [False, True])
async def test_an_image_is_described_for_a_model_without_images(media, path, stream):
    picture = image(7)
    part = by_value(path, picture, "image/png")
    answer = await media.ask(path, "blind-openai", [part], stream=stream)
    assert answer.status == 200, answer.text
    asked, answered = await media.sent()
    assert (asked["body"]["model"], media_of(asked)) == ("vision", ["image_url"])
    assert "Describe this image" in texts_of(asked)
    assert (answered["body"]["model"], media_of(answered)) == ("text", [])
    texts = texts_of(answered)
    assert texts.startswith("See\n[Image 1: described by the model sees-openai.")
    assert "> Sandbox vision: " in texts
    assert texts.endswith("[End of image 1]")
    assert answer.adapted == ["messages[0].content[1]:image-described"]
    assert [(one["task"], one["model"]) for one in answer.helpers] == [
        ("describe_image", "sees-openai")
    ]
    assert answer.helpers[0]["input_tokens"] > 0
    assert answer.helpers[0]["output_tokens"] > 0


@ENDPOINTS
@pytest.mark.parametrize("model", ["sees-openai", "sees-anthropic", "reads-gemini"])
@pytest.mark.parametrize(
    "multimodal", [None, {"enabled": True, "image": {"model": "sees-openai"}}, {"enabled": False}]
)
async def test_what_the_model_reads_goes_untouched(media, path, model, multimodal):
    part = by_value(path, PICTURE, "image/png")
    answer = await media.ask(path, model, [part], multimodal=multimodal)
    assert answer.status == 200, answer.text
    assert "PNG of 7x5 pixels" in answer.text
    assert len(await media.sent()) == 1
    assert (answer.adapted, answer.helpers) == ([], [])


@ENDPOINTS
@pytest.mark.parametrize("multimodal", [{"enabled": False}, {"image": {"enabled": False}}])
async def test_without_conversion_it_is_passed_on_as_it_is(media, path, multimodal):
    part = by_value(path, PICTURE, "image/png")
    answer = await media.ask(path, "blind-openai", [part], multimodal=multimodal)
    assert (answer.status, "does not read images" in answer.text) == (400, True)
    (sent,) = await media.sent()
    assert media_of(sent) == ["image_url"]


@ENDPOINTS
async def test_the_caller_names_the_model_and_what_it_is_asked(media, path):
    part = by_value(path, image(7), "image/png")
    chosen = {"image": {"model": "sees-anthropic", "prompt": "Count the cats"}}
    answer = await media.ask(path, "blind-openai", [part], multimodal=chosen)
    assert answer.status == 200, answer.text
    asked, _ = await media.sent()
    assert (asked["dialect"], texts_of(asked)) == ("anthropic", "Count the cats")
    assert answer.helpers[0]["provider"] == "anthropic"


@ENDPOINTS
async def test_the_embedded_way_needs_no_model_and_says_so(media, path):
    part = by_value(path, image(7), "image/png")
    chosen = {"image": {"model": "embedded"}}
    answer = await media.ask(path, "blind-anthropic", [part], multimodal=chosen)
    assert answer.status == 200, answer.text
    (sent,) = await media.sent()
    texts = texts_of(sent)
    assert (
        "[Image 1: seen by no model; its size, colours and the text that OCR reads in it." in texts
    )
    assert "PNG, 7 x 5 pixels" in texts
    assert "> EXIT\n> this way" in texts
    assert answer.helpers == []


@ENDPOINTS
@pytest.mark.parametrize("name", ["blind-openai", "nothing"])
async def test_a_describer_that_cannot_is_named_by_its_field(media, path, name):
    part = by_value(path, PICTURE, "image/png")
    answer = await media.ask(path, "blind-openai", [part], multimodal={"image": {"model": name}})
    assert answer.status == 400
    assert answer.text.startswith("multimodal.image.model: ")


@ENDPOINTS
async def test_images_of_addresses_and_of_the_store_are_described(media, path):
    url, other = "https://pictures.example/cat.png", image(9)
    media.fetching.held[url] = ("image/png", image(8))
    file_id = await media.keep("dog.png", other)
    parts = [by_address(path, url), by_address(path, url), by_id(path, file_id)]
    answer = await media.ask(path, "blind-openai", parts)
    assert answer.status == 200, answer.text
    assert media.fetching.asked == [url]
    *_, answered = await media.sent()
    texts = texts_of(answered)
    assert "[Image 1 (cat.png): " in texts
    assert "[Image 2 (cat.png): " in texts
    assert "[Image 3 (dog.png): " in texts
    assert len(answer.adapted) == 3
    # Two of the three are one image.
    assert len(answer.helpers) == 2


async def test_an_address_that_cannot_be_had_is_named(media):
    answer = await media.ask(
        MESSAGES, "blind-openai", [by_address(MESSAGES, "https://inside.example/x.png")]
    )
    assert answer.status == 400
    assert answer.text == "messages[0].content[1]: the address is not public"
    assert await media.sent() == []


async def test_image_urls_are_fetched_for_providers_that_do_not(media):
    url = "https://pictures.example/own.png"
    media.fetching.held[url] = ("image/png", PICTURE)
    # The upstream of tests is on this machine, so that it is not taken to fetch.
    answer = await media.ask(MESSAGES, "sees-anthropic", [by_address(MESSAGES, url)])
    assert answer.status == 200, answer.text
    assert "PNG of 7x5 pixels" in answer.text
    assert media.fetching.asked == [url]
    assert answer.adapted == []
    answer = await media.ask(MESSAGES, "sandbox/vision", [by_address(MESSAGES, url)])
    assert f'at "{url}"' in answer.text
    assert media.fetching.asked == [url]


async def test_images_in_results_of_tools_are_described(media):
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    result = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": [{"type": "text", "text": "here"}, by_value(MESSAGES, image(7), "image/png")],
    }
    tools = [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]
    messages = [
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    answer = await media.ask(MESSAGES, "blind-openai", [], messages=messages, tools=tools)
    assert answer.status == 200, answer.text
    assert answer.adapted == ["messages[2].content[0].content[1]:image-described"]
    _, answered = await media.sent()
    assert media_of(answered) == []
    assert "[Image 1: described by" in texts_of(answered)


@ENDPOINTS
async def test_too_many_images_are_refused_at_the_first_excess(media, path):
    parts = [by_value(path, PICTURE, "image/png")] * 3
    limited = {"image": {"max_images": 2}}
    answer = await media.ask(path, "blind-openai", parts, multimodal=limited)
    assert answer.status == 400
    assert answer.text.startswith("messages[0].content[3]: ")
    assert await media.sent() == []


@ENDPOINTS
async def test_a_helper_that_fails_is_502_and_one_that_refuses_400(media, path):
    part = by_value(path, image(7), "image/png")
    failing = {"image": {"model": "sandbox/fail-500"}}
    answer = await media.ask(path, "blind-openai", [part], multimodal=failing)
    assert answer.status == 502
    assert answer.text.startswith("messages[0].content[1]: the model sandbox/fail-500")
    refusing = {"image": {"model": "sandbox/fail-context"}}
    answer = await media.ask(path, "blind-openai", [part], multimodal=refusing)
    assert answer.status == 400
    assert await media.sent() == []


@ENDPOINTS
@pytest.mark.parametrize("stream", [False, True])
async def test_each_step_of_a_chain_gets_what_it_reads(media, path, stream):
    part = by_value(path, image(7), "image/png")
    steps = [
        {"step_id": "b", "model": "blind-openai", "parameters": {"max_tokens": 99_999}},
        {"step_id": "c", "model": "sees-anthropic"},
    ]
    config = {"strategy": {"mode": "sequential"}, "steps": steps}
    answer = await media.ask(
        path, "sandbox/fail-500", [part], stream=stream, fallback="enabled", fallback_config=config
    )
    assert answer.status == 200, answer.text
    assert answer.headers["x-gateway-step"] == "b"
    assert answer.adapted == ["messages[0].content[1]:image-described"]
    # A step that cannot be sent the image is followed by one that reads it as it is.
    config["steps"] = [
        {"step_id": "b", "model": "blind-openai"},
        {"step_id": "c", "model": "sees-anthropic"},
    ]
    answer = await media.ask(
        path,
        "sandbox/fail-500",
        [by_value(path, image(7), "image/png")],
        stream=stream,
        fallback="strict",
        fallback_config=config,
        multimodal={"image": {"model": "sandbox/fail-500"}},
    )
    assert answer.status == 200, answer.text
    assert (answer.headers["x-gateway-step"], answer.adapted) == ("c", [])


async def test_steps_share_what_was_described(media):
    part = by_value(CHAT, image(7), "image/png")
    steps = [
        {"step_id": "a", "model": "blind-failing"},
        {"step_id": "b", "model": "blind-openai"},
    ]
    config = {"strategy": {"mode": "sequential"}, "steps": steps}
    answer = await media.ask(CHAT, "x", [part], fallback="strict", fallback_config=config)
    assert answer.status == 200, answer.text
    models = [entry["body"]["model"] for entry in await media.sent()]
    assert models == ["vision", "fail-500", "text"]
    assert len(answer.helpers) == 1


async def test_the_second_turn_costs_no_model(media):
    part = by_value(CHAT, image(7), "image/png")
    first = await media.ask(CHAT, "blind-openai", [part])
    again = await media.ask(CHAT, "blind-openai", [part])
    assert again.text == first.text
    assert again.adapted == first.adapted
    assert (len(first.helpers), again.helpers) == (1, [])
    assert len(await media.sent()) == 3


async def test_four_images_at_once_at_most(media):
    parts = [by_value(CHAT, image(width), "image/png") for width in range(1, 7)]
    slow = {"image": {"model": "sandbox/slow"}}
    answer = await asyncio.wait_for(
        media.ask(CHAT, "blind-openai", parts, multimodal=slow), timeout=30
    )
    assert answer.status == 200
    assert len(answer.helpers) == 6


async def test_a_model_that_refused_an_image_is_sent_no_other(media):
    """Nothing is known of `openai/text` until its provider says no."""
    for expected in (["text", "vision", "text"], ["vision", "text"]):
        answer = await media.ask(CHAT, "openai/text", [by_value(CHAT, image(7), "image/png")])
        assert answer.status == 200, answer.text
        assert [one["body"]["model"] for one in await media.sent()] == expected
        assert answer.adapted == ["messages[0].content[1]:image-described"]


async def test_image_refusals_are_reported_if_conversion_is_off(media):
    part = by_value(MESSAGES, PICTURE, "image/png")
    answer = await media.ask(MESSAGES, "anthropic/text", [part], multimodal={"enabled": False})
    assert answer.status == 400
    assert "does not read images" in answer.text
    assert len(await media.sent()) == 1


async def test_tokens_are_counted_of_what_the_model_will_read(media):
    part = by_value(MESSAGES, image(7), "image/png")
    body = {
        "model": "blind-anthropic",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "See"}, part]}],
    }
    url = f"{media.gateway.url}{MESSAGES}/count_tokens"
    headers = media.gateway.api_key()
    counts = []
    for _ in range(2):
        async with media.gateway.http.post(url, headers=headers, json=body) as answer:
            assert answer.status == 200
            counts.append((answer.headers.get("x-gateway-estimate"), await answer.json()))
        # No model was asked to describe it.
        assert "vision" not in [one["body"]["model"] for one in await media.sent()]
        if len(counts) == 1:
            answer_body = await media.ask(MESSAGES, "blind-anthropic", [part])
            assert answer_body.status == 200
            await media.sent()
    assert counts[0][0] == "true"
    # It has been described since.
    assert counts[1][0] is None
    assert counts[1][1]["input_tokens"] > 20


async def test_a_description_timeout_moves_to_the_next_step(media):
    steps = [
        {"step_id": "a", "model": "blind-openai", "timeout_ms": 200},
        {"step_id": "b", "model": "sees-anthropic"},
    ]
    answer = await media.ask(
        CHAT,
        "x",
        [by_value(CHAT, image(7), "image/png")],
        fallback="strict",
        fallback_config={"strategy": {"mode": "sequential"}, "steps": steps},
        multimodal={"image": {"model": "sandbox/stall"}},
    )
    assert (answer.status, answer.headers["x-gateway-step"]) == (200, "b"), answer.text
    steps[1:] = []
    answer = await media.ask(
        CHAT,
        "x",
        [by_value(CHAT, image(7), "image/png")],
        fallback="strict",
        fallback_config={"strategy": {"mode": "sequential"}, "steps": steps},
        multimodal={"image": {"model": "sandbox/stall"}},
    )
    assert answer.status == 504
    assert "not converted within the time limit" in answer.text
