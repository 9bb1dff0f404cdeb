"""Fields that client libraries add to the messages they send back, which the upstream refuses."""

import openai
import pytest

from tests.e2e.gateway import Gateway


@pytest.mark.parametrize("field", ["provider_specific_fields", "made_up"])
def test_a_chat_continues_without_them(front: Gateway, field: str) -> None:
    asked = {"role": "user", "content": "hello"}
    reply = {"role": "assistant", "content": "hi", field: {"refusal": None}}
    with openai.OpenAI(
        base_url=f"{front.address}/beta/v1", api_key=front.key, max_retries=0
    ) as client:
        answer = client.chat.completions.with_raw_response.create(
            model="openai/echo", messages=[asked, reply, {"role": "user", "content": "go on"}]
        )
    assert "go on" in answer.parse().choices[0].message.content
    assert answer.headers["x-gateway-dropped"] == f"messages[].{field}"
