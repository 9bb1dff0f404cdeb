"""Requests of the sandbox's server that have every field that its models read."""

from typing import Any, NamedTuple

from services.sandbox.model.signatures import encrypt

IMAGE = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


class Example(NamedTuple):
    """A path, and a body that is valid there."""

    path: str
    body: dict[str, Any]


CHAT = Example(
    "/v1/chat/completions",
    {
        "model": "echo",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look"},
                    {"type": "image_url", "image_url": {"url": IMAGE}},
                    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                    {"type": "file", "file": {"file_data": IMAGE, "filename": "a.png"}},
                    {"type": "file", "file": {"file_id": "file-1"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": "{}"},
                    },
                    {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "1"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "1"}]},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "get_weather",
                    "description": "The weather",
                    "parameters": SCHEMA,
                },
            },
            {"type": "custom", "custom": {"name": "run", "description": "Run code"}},
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "stop": ["zz"],
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
        "max_completion_tokens": 99,
        "max_tokens": 99,
        "reasoning_effort": "low",
        "logprobs": True,
        "top_logprobs": 1,
        "n": 2,
        "stream": False,
        "stream_options": {"include_usage": True},
    },
)
RESPONSES = Example(
    "/v1/responses",
    {
        "model": "echo",
        "instructions": "Be brief.",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look"},
                    {"type": "input_image", "image_url": IMAGE},
                    {"type": "input_file", "file_data": IMAGE, "filename": "a.png"},
                    {"type": "input_file", "file_url": "https://example.com/a.pdf"},
                ],
            },
            {"type": "reasoning", "summary": [], "encrypted_content": encrypt("so")},
            {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "run", "input": "1"},
            {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
            {
                "type": "custom_tool_call_output",
                "call_id": "c2",
                "output": [{"type": "input_text", "text": "1"}],
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "1", "annotations": []}],
            },
            {"role": "user", "content": "And?"},
        ],
        "tools": [
            {"type": "function", "name": "get_weather", "parameters": SCHEMA},
            {"type": "custom", "name": "run", "description": "Run code"},
            {"type": "web_search"},
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
        "max_output_tokens": 99,
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        "top_logprobs": 1,
        "stream": False,
        "stream_options": {"include_obfuscation": False},
    },
)
EMBEDDINGS = Example(
    "/v1/embeddings",
    {
        "model": "embed",
        "input": ["a dog", "a cat"],
        "encoding_format": "float",
        "dimensions": 8,
    },
)
MESSAGES = Example(
    "/v1/messages",
    {
        "model": "echo",
        "max_tokens": 2000,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
                    },
                    {
                        "type": "document",
                        "title": "A",
                        "source": {"type": "text", "media_type": "text/plain", "data": "a"},
                    },
                    {
                        "type": "document",
                        "source": {"type": "content", "content": [{"type": "text", "text": "b"}]},
                    },
                    {"type": "image", "source": {"type": "url", "url": "https://example.com/a"}},
                    {"type": "search_result", "source": "a", "title": "A", "content": []},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "so", "signature": "AAAA"},
                    {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "is_error": False,
                        "content": [{"type": "text", "text": "sunny"}],
                    }
                ],
            },
        ],
        "tools": [
            {
                "name": "get_weather",
                "description": "The weather",
                "input_schema": SCHEMA,
            }
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "stop_sequences": ["zz"],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "stream": False,
    },
)
GEMINI = Example(
    "/v1beta/models/echo:generateContent",
    {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "Look"},
                    {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                    {"fileData": {"mimeType": "image/png", "fileUri": "https://example.com/a"}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "so", "thought": True},
                    {"functionCall": {"id": "c1", "name": "get_weather", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "c1",
                            "name": "get_weather",
                            "response": {"output": "sunny"},
                        }
                    }
                ],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "get_weather",
                        "description": "The weather",
                        "parametersJsonSchema": SCHEMA,
                    }
                ]
            }
        ],
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_weather"]}
        },
        "generationConfig": {
            "stopSequences": ["zz"],
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 9},
            "candidateCount": 2,
            "maxOutputTokens": 99,
            "responseLogprobs": True,
            "logprobs": 1,
        },
    },
)
GEMINI_EMBEDDINGS = Example(
    "/v1beta/models/embed:batchEmbedContents",
    {"requests": [{"content": {"parts": [{"text": "a dog"}]}, "outputDimensionality": 8}]},
)
EXAMPLES = (
    CHAT,
    RESPONSES,
    EMBEDDINGS,
    MESSAGES,
    GEMINI,
    Example(
        "/v1beta/models/echo:countTokens",
        {"generateContentRequest": {"model": "models/echo", **GEMINI.body}},
    ),
    GEMINI_EMBEDDINGS,
)
