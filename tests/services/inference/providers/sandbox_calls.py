"""Calls of the sandbox in this process, and its answers."""

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Message,
)
from gateway.inference.v1.inference_pb2 import (
    GenerateRequest,
    Tool,
)
from services.inference.providers.base import Call, Target
from services.inference.providers.sandbox import SandboxProvider
from services.inference.stream.accumulator import Accumulator

USER = conversation_pb2.ROLE_USER
ASSISTANT = conversation_pb2.ROLE_ASSISTANT
SYSTEM = conversation_pb2.ROLE_SYSTEM
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = Tool(name="get_weather", description="tells", input_schema=orjson.dumps(SCHEMA))
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02"


def message(role, *blocks):
    return Message(role=role, blocks=[Block(text=b) if isinstance(b, str) else b for b in blocks])


def call(*messages, model="echo", stream=False, **fields):
    spoken = [message(USER, one) if isinstance(one, str) else one for one in messages]
    request = GenerateRequest(model=f"sandbox/{model}", messages=spoken, **fields)
    return Call(request, Target(f"sandbox/{model}", "sandbox", model), stream)


def provider(**fields):
    return SandboxProvider("sandbox", new_id=lambda prefix: f"{prefix}1", **fields)


async def batches(asked, **fields):
    if not asked.stream:
        return [list(await provider(**fields).whole(asked))]
    return [list(batch) async for batch in provider(**fields).stream(asked)]


async def answered(asked):
    accumulator = Accumulator()
    for batch in await batches(asked):
        accumulator.add(batch)
    return accumulator.response()


def texts(response):
    return "".join(block.text for block in response.choices[0].blocks)
