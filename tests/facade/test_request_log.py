"""The request log over HTTP: what is found of requests that a gateway served."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.conversation.v1.conversation_pb2 import ROLE_USER, Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest
from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.accounts.admin.admin_keys import hash_admin_key, make_admin_key
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import open_channel
from tests.gateway_in_process import Gateway, running_gateway
from tests.waiting import until

KEY = make_admin_key(bytes(32))
PRICE = {"input": 0, "output": 0, "request": 1}
SECTIONS: dict[str, Any] = {
    "admin": {"key_sha256": hash_admin_key(KEY).hex()},
    "usage": {"write_every_s": 0.05},
    "models": [
        {"name": name, "provider": "openai", "upstream": upstream, "price": PRICE}
        for name, upstream in (("a", "echo"), ("broken", "fail-500"))
    ],
}
LOG = {"enabled": True, "write_every_s": 0.05}
CHAT = "/v1/chat/completions"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path, request_log=LOG, **SECTIONS) as running:
        yield running


async def admin(gateway: Gateway, path: str = "requests", **query: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {KEY}"}
    url = f"{gateway.url}/admin/v1/{path}"
    async with gateway.http.get(url, params=query, headers=headers) as answer:
        return answer.status, await answer.json()


async def ask(gateway: Gateway, request_id: str, path: str = CHAT, **body: Any) -> tuple[int, Any]:
    fields = {"model": "a", **body}
    if "input" not in body:
        fields.setdefault("messages", [{"role": "user", "content": "Hi there"}])
    headers = {**gateway.bearer(), **gateway.api_key(), "x-request-id": request_id}
    if path != "/v1/messages":
        del headers["x-api-key"], headers["compat-version"]
    else:
        del headers["Authorization"]
    async with gateway.http.post(gateway.url + path, json=fields, headers=headers) as answer:
        return answer.status, await answer.read()


async def generate_over_grpc(gateway: Gateway, request_id: str, *labels: tuple[str, str]) -> None:
    """Call the inference service as a program without HTTP does."""
    message = Message(role=ROLE_USER, blocks=[Block(text="Hi")])
    request = GenerateRequest(model="a", messages=[message])
    async with open_channel(gateway.grpc, max_message_bytes=1 << 20) as channel:
        await InferenceServiceStub(channel).Generate(
            request, metadata=(*call_metadata(gateway.key, request_id), *labels)
        )


async def logged(gateway: Gateway, number: int, **query: Any) -> list[Any]:
    """Return the entries that a filter selects, once there are so many."""
    entries: list[Any] = []

    async def are_logged() -> bool:
        status, page = await admin(gateway, **query)
        assert status == 200, page
        entries[:] = page["data"]
        return len(entries) >= number

    await until(are_logged, within_s=20, every_s=0.05)
    return entries


async def test_a_request_is_found_with_its_tokens_and_cost(gateway: Gateway) -> None:
    await ask(gateway, "mine")
    [entry] = await logged(gateway, 1, request_id="mine")
    assert (entry["object"], entry["request_id"]) == ("request", "mine")
    assert (entry["endpoint"], entry["status"]) == ("POST /beta/v1/chat/completions", 200)
    assert (entry["requested_model"], entry["model"], entry["provider"]) == ("a", "a", "openai")
    assert entry["user_id"].startswith("user_") and entry["key_id"].startswith("key_")
    assert (entry["cost"], entry["attempts"], entry["error_code"]) == ("0.001", 1, None)
    assert entry["input_tokens"] > 0 and entry["output_tokens"] > 0
    assert entry["first_content_ms"] is None
    details = {"failed_attempts": [], "request_body": None, "response_body": None}
    status, whole = await admin(gateway, f"requests/{entry['id']}")
    assert whole.pop("headers")["x-gateway-attempts"] == "1"
    assert (status, whole) == (200, entry | details)
    assert "Hi there" not in str(entry)


async def test_a_stream_has_its_first_content(gateway: Gateway) -> None:
    await ask(gateway, "streamed", stream=True)
    [entry] = await logged(gateway, 1, request_id="streamed")
    assert (entry["status"], entry["cost"]) == (200, "0.001")
    assert 0 <= entry["first_content_ms"] <= entry["duration_ms"]


async def test_failures_are_found_by_status_and_text(gateway: Gateway) -> None:
    await ask(gateway, "good")
    await ask(gateway, "refused", messages="none")
    status, _ = await ask(gateway, "failed", model="broken", fallback="disabled")
    await logged(gateway, 3)
    [entry] = await logged(gateway, 1, status="4xx")
    assert (entry["request_id"], entry["status"]) == ("refused", 400)
    assert entry["error_code"] and entry["cost"] is None
    [entry] = await logged(gateway, 1, status=str(status))
    assert (entry["request_id"], entry["model"]) == ("failed", "broken")
    assert [one["request_id"] for one in await logged(gateway, 1, text="BROKEN")] == ["failed"]
    assert [one["request_id"] for one in await logged(gateway, 1, max_cost="0")] == ["failed"]
    assert [one["request_id"] for one in await logged(gateway, 1, min_cost="0.001")] == ["good"]


async def test_pages_and_unknown_entries(gateway: Gateway) -> None:
    for number in range(3):
        await ask(gateway, f"n{number}")
    await logged(gateway, 3)
    seen = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        _, page = await admin(gateway, **query)
        seen += [entry["request_id"] for entry in page["data"]]
        if page["next_page"] is None:
            break
        query["page"] = page["next_page"]
    assert seen == ["n2", "n1", "n0"]
    status, body = await admin(gateway, "requests/log_none")
    assert (status, body["error"]["code"]) == (404, "not_found")


async def test_requests_are_found_by_tags_and_end_users(tmp_path: Path) -> None:
    labels = {**SECTIONS["usage"], "tags": ["project", "team"], "end_users": True}
    sections = {**SECTIONS, "usage": labels}
    async with running_gateway(tmp_path, request_log=LOG, **sections) as gateway:
        await ask(gateway, "none")
        await ask(gateway, "one", metadata={"project": "alpha", "other": "x"}, user="ada")
        await ask(gateway, "two", metadata={"project": "alpha", "team": "r=d"}, user="bob")
        # Refused before it is recorded as usage.
        await ask(gateway, "gone", model="none", metadata={"project": "beta"}, user="a" * 70)
        await generate_over_grpc(gateway, "rpc", ("x-gateway-end-user", "ada"))
        await logged(gateway, 5)
        [entry] = await logged(gateway, 1, tag="team=r=d")
        assert (entry["tags"], entry["end_user"]) == ({"project": "alpha", "team": "r=d"}, "bob")
        [unnamed] = await logged(gateway, 1, request_id="none")
        assert (unnamed["tags"], unnamed["end_user"]) == ({}, None)
        _, whole = await admin(gateway, f"requests/{entry['id']}")
        assert whole["tags"] == entry["tags"]
        rows: list[tuple[dict[str, Any], list[str]]] = [
            ({"tag": "project=alpha"}, ["two", "one"]),
            ({"tag": "project=alpha", "status": "200", "end_user": "ada"}, ["one"]),
            ({"tag": "team=r=d", "end_user": "ada"}, []),
            ({"tag": "project=beta"}, ["gone"]),
            ({"tag": "project=alph"}, []),
            ({"end_user": "ada"}, ["rpc", "one"]),
            ({"end_user": "ada", "user_id": entry["user_id"]}, ["rpc", "one"]),
            ({"end_user": "ada", "user_id": "user_x"}, []),
            ({"end_user": "ada", "until": 1}, []),
            ({"end_user": "ada", "since": 1}, ["rpc", "one"]),
        ]
        for query, request_ids in rows:
            entries = await logged(gateway, 0, **query)
            assert [one["request_id"] for one in entries] == request_ids, query
        _, page = await admin(gateway, tag="project=alpha", limit=1)
        _, rest = await admin(gateway, tag="project=alpha", limit=1, page=page["next_page"])
        assert [one["request_id"] for one in (*page["data"], *rest["data"])] == ["two", "one"]


@pytest.mark.parametrize(
    "query",
    [
        {"status": "6xx"},
        {"tag": "project"},
        {"end_user": "a" * 65},
        {"min_cost": "-1"},
        {"max_cost": "9999999.9"},
        {"since": "yesterday"},
        {"limit": "0"},
        {"page": "not-a-token!"},
        {"unknown": "x"},
    ],
)
async def test_invalid_filters_are_named(gateway: Gateway, query: dict[str, str]) -> None:
    status, body = await admin(gateway, **query)
    assert (status, body["error"]["param"]) == (400, next(iter(query)))


async def test_requests_without_a_key_are_not_logged(gateway: Gateway) -> None:
    async with gateway.http.post(gateway.url + CHAT, json={}) as answer:
        assert answer.status == 401
    await ask(gateway, "with-key")
    [entry] = await logged(gateway, 1)
    # Nor are those of administrators.
    assert entry["request_id"] == "with-key"


async def test_names_that_no_text_can_hold_are_logged(gateway: Gateway) -> None:
    for name in ("odd\0", "\ud800"):
        status, _ = await ask(gateway, "odd", model=name)
        assert status in (400, 404)
    assert len(await logged(gateway, 2, request_id="odd")) == 2


async def test_nothing_is_logged_unless_it_is_enabled(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, **SECTIONS) as gateway:
        await ask(gateway, "one")

        async def is_recorded() -> bool:
            return bool((await admin(gateway, "usage"))[1]["data"])

        await until(is_recorded, within_s=20, every_s=0.05)
        assert (await admin(gateway))[1]["data"] == []


async def test_only_chosen_models_are_logged(tmp_path: Path) -> None:
    settings = {**LOG, "models": ["brok*"]}
    async with running_gateway(tmp_path, request_log=settings, **SECTIONS) as gateway:
        await ask(gateway, "other")
        await ask(gateway, "chosen", model="broken", fallback="disabled")
        assert [one["request_id"] for one in await logged(gateway, 1)] == ["chosen"]


CALLS: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {}),
    (CHAT, {"stream": True}),
    ("/v1/messages", {"max_tokens": 99, "stream": True}),
    ("/v1/responses", {"stream": True}),
]


async def test_bodies_are_logged_redacted_and_found(tmp_path: Path) -> None:
    settings = {**LOG, "bodies": True, "redact": ["blue [a-z]+"]}
    async with running_gateway(tmp_path, request_log=settings, **SECTIONS) as gateway:
        for number, (path, fields) in enumerate(CALLS):
            message = [{"role": "user", "content": f"Tell caf\u00e9 sesame{number} a blue lie"}]
            name = "input" if path == "/v1/responses" else "messages"
            status, _ = await ask(gateway, f"n{number}", path, **{name: message}, **fields)
            assert status == 200
            [entry] = await logged(gateway, 1, text=f"CAF\u00c9 Sesame{number}")
            assert (entry["request_id"], entry["has_bodies"]) == (f"n{number}", True)
            _, whole = await admin(gateway, f"requests/{entry['id']}")
            sent, answered = whole["request_body"], whole["response_body"]
            assert f"sesame{number} a [redacted]" in sent["content"]
            assert not sent["truncated"] and not answered["truncated"]
            is_stream = answered["content"].startswith(("data: ", "event: "))
            assert is_stream == bool(fields), answered
            assert "lie" not in sent["content"] + answered["content"] or is_stream
            assert "HTTP/1.1" not in answered["content"]
        async with gateway.http.get(gateway.url + "/v1/models", headers=gateway.bearer()) as answer:
            assert answer.status == 200
        [entry] = await logged(gateway, 1, text="/models")
        _, whole = await admin(gateway, f"requests/{entry['id']}")
        assert (entry["has_bodies"], whole["request_body"]) == (False, None)
