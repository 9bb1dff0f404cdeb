"""Whose answers may be kept."""

from typing import Any

import orjson
import pytest

from facade.dialects.openai.request import parse_chat
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, Message, Opaque, ToolResult
from gateway.inference.v1 import inference_pb2 as pb
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool
from services.common.messages.lazy_request import LazyRequest
from services.inference.response_cache.rules import MAX_REQUEST, is_cacheable
from tests.grid import each_row
from tests.lazy_requests import lazy_of

TEXT = Block(text="Hi")
USER = {"role": "user", "content": "Hi"}
INLINE = Block(media=Media(data=b"png", mime_type="image/png"))
ELSEWHERE = Block(media=Media(url="https://a.example/x.png"))


def complete(*blocks: Block, **fields: Any) -> bool:
    message = Message(role=conversation.ROLE_USER, blocks=blocks or [TEXT])
    request = GenerateRequest(**{"model": "m", "messages": [message], **fields})
    return is_cacheable(request, None, has_search=True)


def written(size: int = 9, has_search: bool = True, **fields: Any) -> bool:
    request = GenerateRequest(model="m")
    lazy = LazyRequest(
        request, {"messages": [USER], **fields}, size=size, requires_official_api=False
    )
    return is_cacheable(request, lazy, has_search=has_search)


def extra(json: bytes) -> Opaque:
    return Opaque(dialect=conversation.DIALECT_OPENAI, json=json)


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"temperature": 0.7, "tools": [Tool(name="f")]},
        {"extra": extra(b'{"verbosity":"low","store":false,"container":null}')},
        {"fallback": pb.FALLBACK_MODE_AUTO},
        {"memory": pb.Memory()},
    ],
)
def test_complete_requests_that_say_all_are_cacheable(request_):
    assert complete(**request_)


@each_row(
    "request_",
    [
        {"dialect": conversation.DIALECT_RESPONSES},
        {"use_built_in_tools": True},
        {"built_in_tools_by_default": True},
        {"web_search": pb.WebTool(kind=pb.WebTool.KIND_SEARCH)},
        {"memory": pb.Memory(memory_id="m")},
        {"memory": pb.Memory(personal_memory=True)},
        {"tools": [Tool(name="f"), Tool(opaque=True)]},
        {"extra": extra(b'{"store":true}')},
        {"extra": extra(b'{"container":"c"}')},
        {"extra": extra(b'{"thread":{"type":"create"}}')},
        {"extra": extra(b'{"brand_new_id":"a"}')},
        {"stop_sequences": ["x" * MAX_REQUEST]},
        {
            "fallback": pb.FALLBACK_MODE_STRICT,
            "fallback_config": pb.FallbackConfig(
                steps=[pb.FallbackStep(parameters=GenerateRequest())]
            ),
        },
    ],
)
def test_complete_requests_that_depend_on_more_are_not(request_):
    assert not complete(**request_)


def test_media_are_cacheable_with_their_bytes_alone():
    assert complete(TEXT, INLINE)
    assert complete(Block(tool_result=ToolResult(blocks=[INLINE])))
    for source in (ELSEWHERE, Block(media=Media(file_id="file-1"))):
        assert not complete(TEXT, source)
        assert not complete(Block(tool_result=ToolResult(blocks=[TEXT, source])))
    assert not complete(Block(opaque=extra(b'{"type":"container_upload"}')))


@pytest.mark.parametrize(
    "content",
    [
        "https://a.example is an address in a text",
        [{"type": "text", "text": '{"url": "https://a.example"}'}],
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
        [{"type": "image", "source": {"type": "base64", "data": "AAAA"}}],
        [{"type": "tool_use", "name": "fetch", "input": {"url": "https://a.example"}}],
    ],
)
def test_written_content_that_is_all_there_is_cacheable(content):
    assert written(messages=[{"role": "user", "content": content}])


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}},
        {"type": "input_image", "image_url": "https://a.example/x.png"},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "image", "source": {"type": "url", "url": "http://a.example"}},
        {"type": "document", "source": {"type": "file", "file_id": "file-1"}},
        {
            "type": "tool_result",
            "content": [{"type": "image", "source": {"type": "url", "url": "http://a"}}],
        },
    ],
)
def test_written_content_that_is_elsewhere_is_not(part):
    assert not written(messages=[{"role": "user", "content": [part]}])


def test_written_tools_of_callers_are_cacheable_and_others_not():
    schema = {"type": "object", "properties": {"url": {"type": "string"}}}
    function = {"type": "function", "function": {"name": "f", "parameters": schema}}
    assert written(tools=[function, {"name": "f", "input_schema": schema}])
    assert not written(tools=[function, {"type": "web_search_20250305", "name": "web_search"}])
    assert not written(tools=["web_search"])


def test_written_fields_that_name_state_are_not_cacheable():
    assert written(store=False, temperature=1)
    assert not written(store=True)
    assert not written(web_search_options={})
    assert not written(thread="thread_1")
    assert not written(size=MAX_REQUEST + 1)


def test_expected_tools_count_where_there_is_a_search_engine():
    request = GenerateRequest(model="m", built_in_tools_by_default=True)
    assert is_cacheable(request, None, has_search=False)
    assert not is_cacheable(request, None, has_search=True)


@pytest.mark.parametrize("plugins", [[{"id": "web"}], None])
def test_a_field_beside_a_conversation_that_is_not_read_counts(plugins):
    messages = [{"role": "user", "content": "Hi"}]
    body = {"model": "m", "messages": messages, "plugins": plugins, "verbosity": "low"}
    lazy = lazy_of(parse_chat(orjson.dumps(body), lazily=True))
    assert lazy is not None
    assert is_cacheable(lazy.request, lazy, has_search=False) is (plugins is None)
