"""Bodies that refer to what a provider stores, and bodies that do not."""

import json
from typing import Any

Json = dict[str, Any]
Case = tuple[Json, str]

CHATS, MESSAGES, RESPONSES = "/beta/v1/chat/completions", "/beta/v1/messages", "/beta/v1/responses"
HELLO = {"role": "user", "content": "Hello"}
GOOGLE_FILE = "https://generativelanguage.googleapis.com/v1beta/files/abc"
SEARCH = {"type": "file_search", "vector_store_ids": ["vs_1"]}
PYTHON = {"type": "code_interpreter", "container": "cntr_1"}
SKILLS = {"skills": [{"type": "custom", "skill_id": "skill_1"}]}


def chat(**fields: Any) -> Json:
    return {"model": "openai/m", "messages": [HELLO], **fields}


def says(*parts: Json) -> Json:
    return chat(messages=[{"role": "user", "content": [{"type": "text", "text": "a"}, *parts]}])


def message(**fields: Any) -> Json:
    return {"model": "anthropic/m", "messages": [HELLO], "max_tokens": 9, **fields}


def holds(*blocks: Json) -> Json:
    return message(messages=[{"role": "user", "content": [*blocks]}])


def response(*items: Json, **fields: Any) -> Json:
    return {"model": "openai/m", "input": [HELLO, *items], "store": False, **fields}


OF_CHATS: list[Case] = [
    (chat(previous_response_id="resp_1"), "previous_response_id"),
    (chat(conversation="conv_1"), "conversation"),
    (chat(prompt={"id": "pmpt_1"}), "prompt"),
    (chat(container="cntr_1"), "container"),
    (chat(file_ids=["file-1"]), "file_ids"),
    (chat(fileIds=["file-1"]), "fileIds"),
    (chat(assistant_id="asst_1"), "assistant_id"),
    (chat(thread_id="thread_1"), "thread_id"),
    (chat(data_sources=[{"type": "azure_search"}]), "data_sources"),
    (
        chat(prompt_cache_options={"mode": "explicit", "comparison_response_id": "resp_1"}),
        "prompt_cache_options.comparison_response_id",
    ),
    (
        chat(extra_body={"google": {"cached_content": "cachedContents/1"}}),
        "extra_body.google.cached_content",
    ),
    (
        chat(extra_body={"google": {"cachedContent": "cachedContents/1"}}),
        "extra_body.google.cachedContent",
    ),
    (chat(never_heard_of={"deep": [{"it": "vs_1a"}]}), "never_heard_of.deep[0].it"),
    (chat(audio={"voice": {"id": "voice_1"}, "format": "wav"}), "audio.voice.id"),
    (says({"type": "input_new", "file_id": "file-1"}), "messages[0].content[1].file_id"),
    (
        says({"type": "image_url", "image_url": {"url": GOOGLE_FILE}}),
        "messages[0].content[1]",
    ),
    (
        says({"type": "video_url", "video_url": {"url": "gs://bucket/film.mp4"}}),
        "messages[0].content[1].video_url.url",
    ),
    (
        {**says({"type": "image_url", "image_url": {"url": GOOGLE_FILE}}), "model": "gemini/m"},
        "messages[0].content[1]",
    ),
    (
        chat(model="gemini/m", extra_body={"google": {"cached_content": "cachedContents/1"}}),
        "extra_body.google.cached_content",
    ),
]
OF_MESSAGES: list[Case] = [
    (message(thread={"type": "create"}), "thread"),
    (message(thread={"type": "continue", "previous_message_id": "msg_1"}), "thread"),
    (message(fallback_credit_token="token"), "fallback_credit_token"),
    (message(billing_policy={"type": "billing_policy"}), "billing_policy"),
    (message(memory_store_id="memstore_1"), "memory_store_id"),
    (message(container="container_1"), "container"),
    (message(container={"id": "container_1"}), "container.id"),
    (message(container={"type": "a", "id": "b", "name": "c"}), "container.id"),
    (message(container=SKILLS), "container.skills[0].skill_id"),
    (message(mcp_servers=[{"type": "url", "url": "https://a.test"}]), "mcp_servers"),
    (message(user_profile_id="uprof_1"), "user_profile_id"),
    (
        message(tools=[{"type": "memory_1", "name": "m", "memory_store_id": "memstore_1"}]),
        "tools[0].memory_store_id",
    ),
    (
        message(tools=[{"name": "f", "input_schema": {}, "vault": {"id": "vlt_1"}}]),
        "tools[0].vault",
    ),
    (
        holds({"type": "container_upload", "file_id": "file_1"}),
        "messages[0].content[0].file_id",
    ),
    (
        holds({"type": "skill_reference", "skill_id": "skill_1"}),
        "messages[0].content[0].skill_id",
    ),
    (
        holds({"type": "text", "text": "a", "cache_control": {"type": "b", "container": "c_1"}}),
        "messages[0].content[0].cache_control.container",
    ),
]
OF_RESPONSES: list[Case] = [
    (response({"type": "additional_tools", "tools": [SEARCH]}), "tools[0].vector_store_ids"),
    (
        response({"type": "tool_search_output", "call_id": "c", "tools": [PYTHON]}),
        "tools[0].container",
    ),
    (
        response(
            {
                "type": "computer_call_output",
                "call_id": "c",
                "output": {"type": "computer_screenshot", "file_id": "file-1"},
            }
        ),
        "output.file_id",
    ),
    (
        response(
            {
                "type": "shell_call",
                "call_id": "c",
                "action": {"commands": ["ls"]},
                "environment": {"type": "container_reference", "container_id": "cntr_1"},
            }
        ),
        "environment.container_id",
    ),
    (
        response(
            {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "container_id": "cntr_1"}
        ),
        "container_id",
    ),
    (response({"type": "image_generation_call", "id": "ig_1", "status": "completed"}), "id"),
    (response({"type": "image_generation_call", "id": "ig_1", "result": None}), "id"),
    (
        response(
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
        ),
        "approval_request_id",
    ),
    (response({"type": "web_search_call", "id": "ws_1", "status": "completed"}), "id"),
    (response({"type": "file_search_call", "id": "fs_1", "queries": ["a"]}), "id"),
    (response({"type": "never_heard_of", "id": "nho_1"}), "id"),
]
OF_RESPONSE_FIELDS: list[Case] = [
    (response(prompt={"id": "pmpt_1"}), "prompt"),
    (
        response(prompt_cache_options={"comparison_response_id": "resp_1"}),
        "prompt_cache_options.comparison_response_id",
    ),
    (response(container="cntr_1"), "container"),
    (response(tools=[SEARCH]), "tools[0].vector_store_ids"),
    (response(tools=[PYTHON]), "tools[0].container"),
    (
        response(tools=[{"type": "mcp", "server_label": "a", "tunnel_id": "tunnel_1"}]),
        "tools[0].tunnel_id",
    ),
    (
        response(tools=[{"type": "image_generation", "input_image_mask": {"file_id": "file-1"}}]),
        "tools[0].input_image_mask.file_id",
    ),
    (
        response(tools=[{"type": "namespace", "name": "n", "tools": [SEARCH]}]),
        "tools[0].tools[0].vector_store_ids",
    ),
]
CASES: list[tuple[str, Json, str]] = [
    *[(CHATS, *case) for case in OF_CHATS],
    *[(MESSAGES, *case) for case in OF_MESSAGES],
    *[(RESPONSES, body, f"input[1].{path}") for body, path in OF_RESPONSES],
    *[(RESPONSES, *case) for case in OF_RESPONSE_FIELDS],
    (f"{MESSAGES}/count_tokens", message(thread={"type": "create"}), "thread"),
    ("/beta/v1/embeddings", {"model": "openai/m", "input": "a", "file_id": "file-1"}, "file_id"),
]
# What agents and SDKs send, and what is the caller's own content.
HARMLESS: list[tuple[str, Json]] = [
    (CHATS, chat(user="user_1", prompt_cache_key="conv_1", metadata={"file_id": "file-1"})),
    (CHATS, chat(prediction={"type": "content", "content": "file-1"}, stop_token_ids=[1])),
    (MESSAGES, message(metadata={"user_id": "user_1_session_2"})),
    (MESSAGES, message(context_management={"edits": [{"type": "clear_tool_uses_20250919"}]})),
    (MESSAGES, message(container={"skills": []})),
    (
        RESPONSES,
        response(prompt_cache_key="conv_1", client_metadata={"x-codex-installation-id": "1"}),
    ),
    (RESPONSES, response({"type": "web_search_call", "id": "ws_1", "action": {"query": "q"}})),
    (RESPONSES, response({"type": "image_generation_call", "id": "ig_1", "result": "AAAA"})),
    (RESPONSES, response({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"})),
    (
        RESPONSES,
        response(
            {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}"},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        ),
    ),
    (RESPONSES, response(tools=[{"type": "code_interpreter", "container": {"type": "auto"}}])),
    (
        RESPONSES,
        response(
            {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "file-1"},
        ),
    ),
]


def escaped(value: Any) -> str:
    """Return JSON in which every character of every name is an escape."""
    if isinstance(value, dict):
        members = [f"{escaped_name(name)}:{escaped(inner)}" for name, inner in value.items()]
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(escaped, value)) + "]"
    return json.dumps(value)


def escaped_name(name: str) -> str:
    return '"' + "".join(f"\\u{ord(one):04x}" for one in name) + '"'
