"""References to objects stored at a provider, and the caller's own objects."""

from typing import Any

import pytest

from services.inference.request.stored_references import find_reference, is_stored_address
from tests.grid import each_row

ID = "file-abc123"


@each_row(
    ("value", "path"),
    [
        ({"a": [{"b": {"file_id": ID}}]}, "a[0].b.file_id"),
        ({"a": [["x", ID]]}, "a[0][1]"),
        ([{"file_ids": [ID]}], "[0].file_ids"),
        ({"id": "x"}, "id"),
        ({"type": "memory", "id": "x"}, "id"),
        ({"type": "memory", "id": "x", "status": "completed", "result": None}, "id"),
        ({"type": "memory", "id": "vs_1", "text": "a"}, "id"),
        ({"type": "web_search_call", "id": "ws_1", "action": {}}, "id"),
        ({"type": "image_generation_call", "id": "ig_1", "revised_prompt": "a"}, "id"),
        ({"type": "item_reference", "id": "x", "text": "a"}, "id"),
        ({"slot_id": 0}, "slot_id"),
        ({"session": {"keep": True}}, "session"),
        ({"source": {"a": "gs://b/c"}}, "source.a"),
        ({"url": "https://api.anthropic.com/v1/files/f/content"}, "url"),
        ({"type": "container_auto", "container": {"id": "x", "text": "a"}}, "container.id"),
        ({"type": "search_result", "content": [{"file_id": ID}]}, "content[0].file_id"),
        ({"type": "tool_use", "id": "x", "name": "f", "input": {}, "file_id": ID}, "file_id"),
        ({"type": "new_tool_use", "id": "x", "input": {"file_id": ID}}, "input.file_id"),
    ],
)
def test_references_are_found_with_their_path(value: Any, path: str) -> None:
    assert find_reference(value) == path


@each_row(
    "value",
    [
        {"text": ID, "content": ID, "user": ID},
        {"file_id": None, "container": "", "thread": {}, "file_ids": [], "store": False},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"file_id": ID}},
        {"type": "function", "function": {"name": "f", "parameters": {"file_id": ID}}},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "input": ID},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": []},
        {"type": "output_text", "text": "a", "annotations": [{"file_id": ID}]},
        {"type": "search_result", "source": "kb:doc-1", "title": "a"},
        {"type": "bash_code_execution_output", "file_id": ID},
        {"pending_safety_checks": [{"id": "cu_sc_1"}], "plugins": [{"id": "web"}]},
        {"audio": {"id": "audio_1"}, "safe_prompt": True, "prompt_logprobs": 1},
        {"stop_token_ids": [1, 2], "guided_json": {"properties": {"session_id": {}}}},
        {"url": "https://storage.googleapis.com/bucket/photo.png", "voice": "alloy"},
        {"image_url": "data:image/png;base64,aGk="},
        {"format": "file-uploads", "route": "thread_safe"},
    ],
)
def test_the_callers_own_content_is_not_refused(value: Any) -> None:
    assert find_reference(value) is None


def test_the_rest_of_an_item_may_have_its_id() -> None:
    fields = {"id": "msg_1", "status": "completed"}
    assert find_reference(fields, is_part=True) is None
    assert find_reference(fields) == "id"
    assert find_reference({"id": "cntr_1"}, is_part=True) == "id"
    assert find_reference({"x": {"id": "a"}}, is_part=True) == "x.id"
    assert find_reference({"id": {"file_id": "a"}}, is_part=True) == "id.file_id"
    assert find_reference({"id": "a", "status": {"file_id": "a"}}, is_part=True)


@pytest.mark.parametrize("asked", ["mcpr_2", "", None, [], {"a": 1}])
def test_only_approvals_of_the_conversation_are_answered(asked: Any) -> None:
    answer = {"type": "mcp_approval_response", "approval_request_id": asked, "approve": True}
    assert find_reference(answer, approvals={"mcpr_1"}) == "approval_request_id"
    assert find_reference(answer | {"approval_request_id": "mcpr_1"}, approvals={"mcpr_1"}) is None


def test_json_of_any_depth_and_width_is_searched() -> None:
    deep: Any = {"file_id": ID}
    for _ in range(5_000):
        deep = {"a": [deep]}
    assert find_reference(deep) == "a[0]." * 5_000 + "file_id"
    # The text of such a path for each element would take 100 GB.
    wide = {"x" * 1_000_000: [*({"a": {}} for _ in range(100_000)), {"file_id": ID}]}
    assert find_reference(wide) == "x" * 64 + "[100000].file_id"


@each_row(
    "address",
    [
        "https://generativelanguage.googleapis.com/v1beta/files/abc",
        "HTTPS://GenerativeLanguage.GoogleAPIs.com./v1beta/files/abc",
        "https://generativelanguage%2Egoogleapis.com/v1beta/files/abc",
        "https://\uff47enerativelanguage.googleapis.com/files/abc",
        "https://user@generativelanguage.googleapis.com:443/files/abc",
        "https:\\\\generativelanguage.googleapis.com/files/abc",
        "https://generativelanguage.googleapis.com\\@example.com/files/abc",
        "https:/generativelanguage.googleapis.com/files/abc",
        "https://us-central1-aiplatform.googleapis.com/v1/files/abc",
        "https://mine.openai.azure.com/openai/files/file-1/content",
        " gs://bucket/film.mp4",
        "s3://bucket/film.mp4",
        "files/abc",
        "file-abc123",
        "https://[broken",
    ],
)
def test_addresses_of_stored_media_are_refused(address: str) -> None:
    assert is_stored_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "https://example.com/files/abc",
        "http://example.com/a?b=https://api.openai.com",
        "https://www.youtube.com/watch?v=abc",
        "https://notapi.openai.com.example.org/",
        "DATA:image/png;base64,aGk=",
    ],
)
def test_other_addresses_are_not(address: str) -> None:
    assert not is_stored_address(address)
