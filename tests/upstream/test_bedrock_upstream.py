"""Bedrock's upstream as AWS's own client sees it."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import boto3
import pytest
import pytest_asyncio
from anthropic import AsyncAnthropicBedrock
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.upstream.app import serving
from tests.upstream.bedrock.signatures import ACCESS_KEY, REGION, SECRET_KEY

pytestmark = pytest.mark.asyncio(loop_scope="module")
HELLO = [{"role": "user", "content": [{"text": "Hello"}]}]
MODEL = "us.anthropic.echo-v1:0"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url() -> AsyncIterator[str]:
    async with serving() as upstream:
        yield upstream.url


def client(url: str, secret: str = SECRET_KEY) -> Any:
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=secret,
        config=Config(retries={"total_max_attempts": 1}),
    )


async def test_answers_whole_and_streamed(url: str):
    bedrock = client(url)
    whole = await asyncio.to_thread(bedrock.converse, modelId=MODEL, messages=HELLO)
    (block,) = whole["output"]["message"]["content"]
    assert whole["stopReason"] == "end_turn"
    assert whole["usage"]["inputTokens"] > 0

    def streamed() -> tuple[str, list[str]]:
        events = list(bedrock.converse_stream(modelId=MODEL, messages=HELLO)["stream"])
        deltas = [one["contentBlockDelta"]["delta"] for one in events if "contentBlockDelta" in one]
        return "".join(one["text"] for one in deltas), [next(iter(one)) for one in events]

    text, names = await asyncio.to_thread(streamed)
    assert text == block["text"] == 'Sandbox echo: you said "Hello".'
    assert names[0] == "messageStart" and names[-2:] == ["messageStop", "metadata"]


async def test_counts_and_refuses_as_the_client_expects(url: str):
    bedrock = client(url)
    counted = await asyncio.to_thread(
        bedrock.count_tokens, modelId=MODEL, input={"converse": {"messages": HELLO}}
    )
    assert counted["inputTokens"] > 0
    for calling, code in (
        (client(url, "wrong"), "InvalidSignatureException"),
        (bedrock, "ValidationException"),
    ):
        messages = HELLO if code == "InvalidSignatureException" else [*HELLO, *HELLO]
        with pytest.raises(ClientError) as raised:
            await asyncio.to_thread(calling.converse, modelId=MODEL, messages=messages)
        assert raised.value.response["Error"]["Code"] == code


async def test_anthropics_own_client(url: str):
    async with AsyncAnthropicBedrock(
        base_url=url, aws_region=REGION, aws_access_key=ACCESS_KEY, aws_secret_key=SECRET_KEY
    ) as claude:
        fields: Any = {
            **{"model": MODEL, "max_tokens": 100},
            "messages": [{"role": "user", "content": "Hello"}],
        }
        whole = await claude.messages.create(**fields)
        assert whole.content[0].to_dict()["text"] == 'Sandbox echo: you said "Hello".'
        texts = [
            event.delta.text
            async for event in await claude.messages.create(stream=True, **fields)
            if event.type == "content_block_delta" and event.delta.type == "text_delta"
        ]
        assert "".join(texts) == 'Sandbox echo: you said "Hello".'


async def test_vectors_as_awss_client_expects(url: str):
    bedrock = client(url)
    body = json.dumps({"inputText": "one two", "dimensions": 8})
    answer = await asyncio.to_thread(
        bedrock.invoke_model, modelId="amazon.titan-embed-text-v2:0", body=body
    )
    read = json.loads(answer["body"].read())
    assert (len(read["embedding"]), read["inputTextTokenCount"]) == (8, 2)
