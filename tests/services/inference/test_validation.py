import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.inference.v1.inference_pb2 import (
    GenerateRequest,
    ThinkingConfig,
    Tool,
    ToolChoice,
)
from services.common.errors import GatewayError
from services.inference import validation

HELLO = Message(role=conversation.ROLE_USER, blocks=[Block(text="Hi")])


def request(**fields: object) -> GenerateRequest:
    return GenerateRequest(**{"model": "m", "messages": [HELLO], **fields})


@pytest.mark.parametrize(
    "good",
    [
        request(),
        request(messages=[HELLO] * validation.MAX_MESSAGES),
        request(temperature=0, top_p=1, top_k=1, n=128, max_tokens=1, top_logprobs=20),
        request(temperature=2, presence_penalty=-2, frequency_penalty=2),
        request(tools=[Tool(name="a")], tool_choice=ToolChoice(mode="MODE_TOOL", name="a")),
        request(thinking=ThinkingConfig(mode="MODE_ENABLED", budget_tokens=1024)),
        request(tools=[Tool(opaque=True), Tool(opaque=True)]),
    ],
    ids=lambda good: str(good)[:40],
)
def test_what_keeps_to_the_proto_passes(good):
    validation.check(good)


@pytest.mark.parametrize(
    ("bad", "param"),
    [
        (request(model=""), "model"),
        (request(model="x" * 257), "model"),
        (request(messages=[]), "messages"),
        (request(messages=[HELLO] * (validation.MAX_MESSAGES + 1)), "messages"),
        (request(messages=[HELLO, Message(blocks=[Block(text="x")])]), "messages[1].role"),
        (request(messages=[Message(role=1)]), "messages[0].blocks"),
        (request(messages=[Message(role=1, blocks=[Block()])]), "messages[0].blocks[0]"),
        (request(temperature=2.1), "temperature"),
        (request(temperature=-0.1), "temperature"),
        (request(temperature=float("nan")), "temperature"),
        (request(top_p=1.1), "top_p"),
        (request(top_k=0), "top_k"),
        (request(max_tokens=0), "max_tokens"),
        (request(n=0), "n"),
        (request(n=129), "n"),
        (request(top_logprobs=21), "top_logprobs"),
        (request(presence_penalty=2.5), "presence_penalty"),
        (request(stop_sequences=["a", ""]), "stop_sequences"),
        (
            request(thinking=ThinkingConfig(mode="MODE_ENABLED", budget_tokens=1023)),
            "thinking.budget_tokens",
        ),
        (
            request(
                max_tokens=1024, thinking=ThinkingConfig(mode="MODE_ENABLED", budget_tokens=1024)
            ),
            "thinking.budget_tokens",
        ),
        (request(tools=[Tool()]), "tools[0].name"),
        (request(tools=[Tool(name="a"), Tool(name="a")]), "tools[1].name"),
        (request(tool_choice=ToolChoice(mode="MODE_ANY")), "tool_choice"),
        (
            request(tools=[Tool(name="a")], tool_choice=ToolChoice(mode="MODE_TOOL", name="b")),
            "tool_choice.name",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_does_not_is_refused_by_its_field(bad, param):
    with pytest.raises(GatewayError) as refused:
        validation.check(bad)
    assert refused.value.param == param
    assert refused.value.message.startswith(param)
    assert refused.value.http_status == 400
