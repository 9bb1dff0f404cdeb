import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Message,
    Opaque,
    ToolResult,
    ToolUse,
)
from gateway.inference.v1.inference_pb2 import (
    GenerateRequest,
    ThinkingConfig,
    Tool,
    ToolChoice,
)
from services.common.errors import GatewayError
from services.inference.request import validation
from tests.grid import each_row

HELLO = Message(role=conversation.ROLE_USER, blocks=[Block(text="Hi")])
# More values than a provider's adapter parses in one go.
MANY = b"[" + b"1," * 200_000 + b"1]"


def spoken(block: Block, times: int = 1) -> Message:
    return Message(role=conversation.ROLE_USER, blocks=[block] * times)


def request(**fields: object) -> GenerateRequest:
    return GenerateRequest(**{"model": "m", "messages": [HELLO], **fields})


@pytest.mark.parametrize(
    "good",
    [
        request(),
        request(
            temperature=0, top_p=1, top_k=1, n=128, max_tokens=1, logprobs=True, top_logprobs=20
        ),
        request(temperature=2, presence_penalty=-2, frequency_penalty=2),
        request(tools=[Tool(name="a")], tool_choice=ToolChoice(mode="MODE_TOOL", name="a")),
        request(thinking=ThinkingConfig(mode="MODE_ENABLED", budget_tokens=1024)),
        request(
            max_tokens=1024,
            betas=["interleaved-thinking-2025-05-14"],
            thinking=ThinkingConfig(mode="MODE_ENABLED", budget_tokens=4096),
        ),
        request(tools=[Tool(opaque=True), Tool(opaque=True)]),
    ],
    ids=lambda good: str(good)[:40],
)
def test_what_keeps_to_the_proto_passes(good):
    validation.check(good)


@each_row(
    ("bad", "param"),
    [
        (request(model=""), "model"),
        (request(model="x" * 257), "model"),
        (request(messages=[]), "messages"),
        (request(messages=[HELLO, Message(blocks=[Block(text="x")])]), "messages[1].role"),
        (request(messages=[Message(role=1)]), "messages[0].blocks"),
        (request(messages=[Message(role=1, blocks=[Block()])]), "messages[0].blocks[0]"),
        (request(temperature=2.1), "temperature"),
        (request(temperature=-0.1), "temperature"),
        (request(temperature=float("nan")), "temperature"),
        (request(top_p=1.1), "top_p"),
        (request(top_k=0), "top_k"),
        (request(n=0), "n"),
        (request(n=129), "n"),
        (request(logprobs=True, top_logprobs=21), "top_logprobs"),
        (request(top_logprobs=1), "top_logprobs"),
        (request(logprobs=False, top_logprobs=0), "top_logprobs"),
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
        (request(tools=[Tool(opaque=True)] * (validation.MAX_TOOLS + 1)), "tools"),
        (request(stop_sequences=["a"] * (validation.MAX_STOP_SEQUENCES + 1)), "stop_sequences"),
        (request(betas=["a"] * (validation.MAX_BETAS + 1)), "betas"),
        (
            request(headers={f"openai-{n}": "" for n in range(validation.MAX_HEADERS + 1)}),
            "headers",
        ),
        (request(extra=Opaque(json=MANY)), "extra"),
        (request(tools=[Tool(name="a", input_schema=MANY)]), "tools[0].input_schema"),
        (request(thinking=ThinkingConfig(extra=Opaque(json=MANY))), "thinking.extra"),
        (
            request(messages=[spoken(Block(tool_use=ToolUse(input=MANY.decode())))]),
            "messages[0].blocks[0].tool_use.input",
        ),
        (
            request(messages=[spoken(Block(opaque=Opaque(json=MANY)))]),
            "messages[0].blocks[0].opaque",
        ),
    ],
)
def test_what_does_not_is_refused_by_its_field(bad, param):
    with pytest.raises(GatewayError) as refused:
        validation.check(bad)
    assert refused.value.param == param
    assert refused.value.message.startswith(param)
    assert refused.value.http_status == 400


def test_as_many_messages_as_there_may_be_pass():
    validation.check(request(messages=[HELLO] * validation.MAX_MESSAGES))


def result_of_many_blocks() -> Block:
    """Return a block of which eleven are too many."""
    return Block(tool_result=ToolResult(blocks=[Block(text="a")] * (validation.MAX_BLOCKS // 11)))


@pytest.mark.parametrize(
    "messages",
    [
        lambda: [HELLO] * (validation.MAX_MESSAGES + 1),
        lambda: [spoken(result_of_many_blocks(), 11)],
        lambda: [spoken(Block(text="a"), validation.MAX_BLOCKS + 1)],
    ],
    ids=["messages", "blocks of results", "blocks"],
)
def test_more_than_there_may_be_is_refused(messages):
    with pytest.raises(GatewayError) as refused:
        validation.check(request(messages=messages()))
    assert refused.value.param == "messages"
    assert refused.value.message.startswith("messages")
    assert refused.value.http_status == 400
