"""The official clients with media that the model does not read."""

import base64

import anthropic
import openai
import pytest
import pytest_asyncio

from tests.facade.media import PICTURE, gateway_with_media

pytestmark = pytest.mark.asyncio(loop_scope="module")

DATA = base64.b64encode(PICTURE).decode()
MODEL = "blind-openai"
# Beside the embedded way nothing is kept of an earlier call, so that each has a helper.
PROMPTS = iter(f"Number {number}" for number in range(100))
CHAT_MESSAGES = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "See"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
        ],
    }
]
SOURCE = {"type": "base64", "media_type": "image/png", "data": DATA}
MESSAGES = [{"role": "user", "content": [{"type": "image", "source": SOURCE}]}]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def media(tmp_path_factory):
    async with gateway_with_media(tmp_path_factory.mktemp("gateway")) as one:
        yield one


def multimodal() -> dict:
    return {"multimodal": {"image": {"prompt": next(PROMPTS)}}}


def check(usage) -> None:
    (helper,) = usage.model_extra["gateway"]["helpers"]
    assert (helper["task"], helper["model"]) == ("describe_image", "sees-openai")


async def test_openai(media):
    async with openai.AsyncOpenAI(
        base_url=f"{media.gateway.url}/beta/v1", api_key=media.gateway.key, max_retries=0
    ) as client:
        raw = await client.chat.completions.with_raw_response.create(
            model=MODEL, messages=CHAT_MESSAGES, extra_body=multimodal()
        )
        assert raw.headers["x-gateway-adapted"] == "messages[0].content[1]:image-described"
        check(raw.parse().usage)
        async with client.chat.completions.stream(
            model=MODEL,
            messages=CHAT_MESSAGES,
            extra_body=multimodal(),
            stream_options={"include_usage": True},
        ) as stream:
            final = await stream.get_final_completion()
        assert "described by the model" in final.choices[0].message.content
        check(final.usage)
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(
                model=MODEL,
                messages=CHAT_MESSAGES,
                extra_body={"multimodal": {"image": {"model": "nobody"}}},
            )
        assert refused.value.param == "multimodal.image.model"


async def test_anthropic(media):
    async with anthropic.AsyncAnthropic(
        base_url=f"{media.gateway.url}/beta", api_key=media.gateway.key, max_retries=0
    ) as client:
        whole = await client.messages.create(
            model=MODEL, max_tokens=1000, messages=MESSAGES, extra_body=multimodal()
        )
        check(whole.usage)
        async with client.messages.stream(
            model=MODEL, max_tokens=1000, messages=MESSAGES, extra_body=multimodal()
        ) as stream:
            final = await stream.get_final_message()
            head = stream.response.headers
        assert head["x-gateway-adapted"] == "messages[0].content[0]:image-described"
        assert "described by the model" in final.content[0].text
        check(final.usage)
