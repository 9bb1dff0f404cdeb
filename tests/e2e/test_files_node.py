"""The files calls of the official Node SDKs, with baseURL and apiKey alone."""

import pytest

from tests.e2e.gateway import Gateway
from tests.e2e.node import Results, run_script, value
from tests.grid import each_row


@pytest.fixture(scope="module")
def results(front: Gateway) -> Results:
    return run_script("files.mjs", front, "sandbox/echo")


def test_openais_calls(results: Results) -> None:
    got = value(results, "openai")
    created = got["created"]
    assert (created["filename"], created["bytes"]) == ('grüße "a".txt', 5)
    assert created["purpose"] == "batch"
    assert created["expires_at"] == created["created_at"] + 3600
    assert got["retrieved"] == created
    assert got["content"] == "hello"
    assert got["deleted"] == {"object": "file", "id": created["id"], "deleted": True}


def test_openais_uploads_in_parts(results: Results) -> None:
    got = value(results, "openaiUploads")
    assert (got["begun"]["status"], got["cancelled"]["status"]) == ("pending", "cancelled")
    assert got["completed"] == {
        **got["begun"],
        "status": "completed",
        "file": got["completed"]["file"],
    }
    assert (got["completed"]["file"]["bytes"], got["content"]) == (6, "abcdef")


def test_anthropics_calls(results: Results) -> None:
    got = value(results, "anthropic")
    uploaded = got["uploaded"]
    assert (uploaded["filename"], uploaded["size_bytes"]) == ("a b.txt", 5)
    assert uploaded["mime_type"] == "text/plain"
    assert got["retrieved"] == uploaded
    assert got["content"] == "hello"
    assert got["deleted"] == {"id": uploaded["id"], "type": "file_deleted"}


def test_lists_go_on_over_pages(results: Results) -> None:
    pages = value(results, "openaiPages")
    assert (pages["first"], pages["listed"]) == (2, pages["made"])
    pages = value(results, "anthropicPages")
    assert (pages["first"], pages["listed"]) == (2, pages["made"][::-1])


@each_row(
    ("step", "error", "status"),
    [
        ("unknownFile", "NotFoundError", 404),
        ("wrongPurpose", "BadRequestError", 400),
        ("tooLarge", "APIError", 413),
        ("tooLargeForAnthropic", "ContentTooLargeError", 413),
        ("unknownKey", "AuthenticationError", 401),
    ],
)
def test_an_error_has_its_class(results: Results, step: str, error: str, status: int) -> None:
    assert results[step].get("status") == status, results[step]
    assert results[step]["error"] == error
