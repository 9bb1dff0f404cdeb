"""Valid requests with a body, one or more for each endpoint; what the fuzzers start from."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

ErrorFormat = Literal["A", "B", "envelope"]

_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Request(NamedTuple):
    """A valid request.

    Attributes:
        path: of the endpoint.
        api_format: format of its errors.
        body: JSON.
    """

    path: str
    api_format: ErrorFormat
    body: Mapping[str, Any]


class Names(NamedTuple):
    """The ids that requests name: a memory with a turn, a document, its session and a block."""

    memory_id: str
    document_id: str
    session_id: str
    block_id: str


def requests(names: Names) -> Iterator[Request]:
    """Return them all."""
    yield from conversations("sandbox/echo", names.memory_id)
    search = {"query": "where do the tides come from?", "limit": 3}
    yield Request(f"/beta/v1/memories/{names.memory_id}/search", "B", search)
    for path, body in _articles(names):
        yield Request(f"/article/v1/{path}", "envelope", body)


def conversations(model: str, memory_id: str) -> Iterator[Request]:
    """Return those that a model answers."""
    named = {"model": model}
    chat = "/beta/v1/chat/completions"
    yield Request(chat, "A", {**named, "messages": _HELLO})
    yield Request(chat, "A", _CHAT | named | {"memory_id": memory_id})
    yield Request(chat, "A", _CHAT_CONVERSATION | named)
    yield Request(chat, "A", _CHAT_AGENT | named)
    yield Request("/beta/v1/messages", "B", _MESSAGES_AGENT | named)
    responses = "/beta/v1/responses"
    yield Request(responses, "A", {**named, "input": "Hello"})
    yield Request(responses, "A", _RESPONSE | _EXTENSIONS | named)
    yield Request(responses, "A", _RESPONSE_AGENT | named)
    yield Request("/beta/v1/conversations", "A", _CONVERSATION)
    for prefix in ("/beta/v1", "/coding/v1"):
        extensions = _EXTENSIONS if prefix == "/beta/v1" else {}
        yield Request(f"{prefix}/messages", "B", _MESSAGES | extensions | named)
        yield Request(f"{prefix}/messages", "B", _MESSAGES_CONVERSATION | named)
        yield Request(f"{prefix}/messages/count_tokens", "B", _MESSAGES_CONVERSATION | named)


_HELLO = [{"role": "user", "content": "Hello"}]
_STEP = {
    "step_id": "first",
    "model": "sandbox/echo",
    "timeout_ms": 30_000,
    "retry_policy": {"max_retries": 1, "backoff_factor": 1.5, "jitter_ms": 10},
    "fail_on": {"status_code": [500, 429], "error_contains": ["overloaded"]},
    "parameters": {"top_p": 0.5},
}
_EXTENSIONS: Mapping[str, Any] = {
    "multimodal": {
        "enabled": False,
        "image": {"enabled": True, "prompt": "Describe it", "max_images": 3},
        "pdf": {"max_pages": 5, "mode": "text", "ocr": "never"},
        "video": {"frames": 2},
        "audio": {"language": "en"},
    },
    "fallback": "enabled",
    "fallback_config": {
        "strategy": {"mode": "sequential"},
        "global_timeout_ms": 60_000,
        "max_total_retries": 2,
        "steps": [_STEP],
    },
    "memory_config": {
        "memory_mode": "read_only",
        "history_window": 10,
        "summary_window": 5,
        "personal_memory": True,
    },
}
_CHAT: dict[str, Any] = {
    "model": "sandbox/echo",
    "messages": [{"role": "system", "content": "Be brief."}, *_HELLO],
    "stream": False,
    "max_tokens": 100,
    "temperature": 0.7,
    "top_p": 0.9,
    "n": 1,
    "stop": ["END", "STOP"],
    "seed": 7,
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "logit_bias": {"50256": -100, "7": 0.5},
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": _SCHEMA, "strict": True},
    },
    "reasoning_effort": "low",
    "user": "somebody",
    "service_tier": "auto",
    **_EXTENSIONS,
}
_CHAT_CONVERSATION: dict[str, Any] = {
    "model": "sandbox/echo",
    "stream": True,
    "stream_options": {"include_usage": True},
    "messages": [
        {
            "role": "user",
            "name": "ada",
            "content": [
                {"type": "text", "text": "What is this?"},
                {
                    "type": "image_url",
                    "image_url": {"url": f"data:image/png;base64,{_PIXEL}", "detail": "low"},
                },
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"file_data": "JVBERi0=", "filename": "a.pdf"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Hm.",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city":"Rome"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "weather", "description": "Weather", "parameters": _SCHEMA},
        }
    ],
    "tool_choice": {"type": "function", "function": {"name": "weather"}},
    "parallel_tool_calls": False,
}
_MESSAGES: dict[str, Any] = {
    "model": "sandbox/echo",
    "max_tokens": 2000,
    "messages": _HELLO,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "stream": False,
    "temperature": 1,
    "top_k": 5,
    "stop_sequences": ["END"],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "thinking_block_strategy": "flatten",
    "use_built_in_tools": False,
    "output_config": {"effort": "low"},
    "metadata": {"user_id": "somebody"},
    "service_tier": "auto",
}
_MESSAGES_CONVERSATION: dict[str, Any] = {
    "model": "sandbox/echo",
    "max_tokens": 100,
    "stream": True,
    "system": "Be brief.",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": _PIXEL},
                },
                {
                    "type": "document",
                    "title": "Tides",
                    "source": {"type": "text", "media_type": "text/plain", "data": "The sea"},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "sunny"}],
                    "is_error": False,
                }
            ],
        },
    ],
    "tools": [{"name": "weather", "description": "Weather", "input_schema": _SCHEMA}],
    "tool_choice": {"type": "tool", "name": "weather", "disable_parallel_tool_use": True},
}

# Of these a gateway translates the messages only for providers of another dialect.
_CHAT_AGENT: dict[str, Any] = {
    "messages": [
        *_HELLO,
        _CHAT_CONVERSATION["messages"][1],
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    ],
    "tools": _CHAT_CONVERSATION["tools"],
}
_MESSAGES_AGENT: dict[str, Any] = {
    "max_tokens": 100,
    "messages": [
        *_HELLO,
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome"}}
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}],
        },
    ],
    "tools": _MESSAGES_CONVERSATION["tools"],
}
_ITEMS = [
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{_PIXEL}"},
        ],
    },
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
    },
    {
        "type": "function_call",
        "call_id": "call_1",
        "name": "weather",
        "arguments": '{"city":"Rome"}',
    },
    {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [{"type": "input_text", "text": "sunny"}],
    },
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "status": "completed",
        "content": [{"type": "output_text", "text": "A pixel.", "annotations": []}],
    },
    {"role": "user", "content": "And this?"},
]
_TOOLS = [
    {
        "type": "function",
        "name": "weather",
        "description": "Weather",
        "parameters": _SCHEMA,
        "strict": True,
    }
]
_RESPONSE: dict[str, Any] = {
    "input": _ITEMS,
    "instructions": "Be brief.",
    "store": True,
    "stream": False,
    "max_output_tokens": 100,
    "temperature": 0.7,
    "top_p": 0.9,
    "truncation": "disabled",
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {
        "format": {"type": "json_schema", "name": "answer", "schema": _SCHEMA, "strict": True},
        "verbosity": "low",
    },
    "include": ["reasoning.encrypted_content"],
    "metadata": {"topic": "tides"},
    "tools": _TOOLS,
    "tool_choice": {"type": "function", "name": "weather"},
    "parallel_tool_calls": False,
    "max_tool_calls": 5,
    "service_tier": "auto",
    "prompt_cache_key": "tides",
    "safety_identifier": "somebody",
}
_RESPONSE_AGENT: dict[str, Any] = {
    "input": [{"role": "user", "content": "Hello"}, *_ITEMS[2:4]],
    "store": False,
    "stream": True,
    "tools": _TOOLS,
}
_CONVERSATION: dict[str, Any] = {"items": _ITEMS, "metadata": {"topic": "tides"}}


def _articles(names: Names) -> Iterator[tuple[str, Mapping[str, Any]]]:
    session = {"sessionId": names.session_id}
    block = {**session, "blockId": names.block_id}
    yield "doc/create", {"group": 0, "name": "On tides"}
    yield "doc/list", {}
    yield "doc/delete", {"docId": "1"}  # nobody's, so that the one that the others name stays
    yield "session/create", {"docId": names.document_id}
    yield "session/destroy", {"sessionId": "session_none"}
    yield "doc/read", session
    yield "doc/read-block", block
    yield "doc/read-blocks", {**session, "blockIds": [names.block_id]}
    yield "doc/changes", {**session, "since": 0}
    yield "block/insert", {**session, "path": [0], "blocks": _BLOCKS}
    yield "block/delete", {**session, "blockId": "none"}
    yield "block/text/replace", {**block, "children": [_LEAF], "ifRevision": None}
    yield "block/text/append", {**block, "text": [_LEAF]}
    yield "block/cite", {**block, "cite": None}
    yield "reference/add", {**session, "reference": _REFERENCE}
    yield "reference/update", {**session, "reference": {**_REFERENCE, "year": None}}
    yield "reference/delete", {**session, "referenceId": "none"}
    yield "block/style", {**block, "indent": True, "style": {"lineHeight": 1.5, "color": "#c00"}}
    yield "style/leaf", {**block, "bold": True, "color": "tomato"}
    margin = {"top": "2cm", "left": 10}
    style = {"global": {"paperSize": "A4", "margin": margin}, "h1": {"isHideIndex": True}}
    yield "style/article", {**session, "style": style}


_LEAF = {"type": "url", "text": "The sea", "url": "https://a.b/c", "bold": True, "color": "#c00"}
_REFERENCE = {"id": "newton1687", "author": ["Isaac Newton"], "year": "1687", "title": "Principia"}
_CELL = {"type": "table-cell", "colSpan": 1, "rowSpan": 1, "children": [{"text": "a"}]}
_BLOCKS = [
    {"id": "mine", "type": "paragraph", "children": [_LEAF], "style": {"indent": True}},
    {"type": "table", "children": [{"type": "table-row", "children": [_CELL, _CELL]}]},
    {"type": "list", "children": [{"type": "list-item", "children": [{"text": "one"}]}]},
    {"type": "equation", "equation": "E = mc^2"},
    {"type": "code", "code": "print(1)", "language": "python"},
    {"type": "image", "image": [{"url": "https://a.b/c.png", "title": "A", "width": "50%"}]},
    {
        "type": "author",
        "author": [{"id": 1, "name": "Ada", "institutionId": 1, "isStar": True}],
        "institution": [{"id": 1, "name": "Home"}],
    },
]
