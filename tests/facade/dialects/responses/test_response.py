"""Whole responses."""

import json

import pytest

from facade.dialects.responses import failed_response, passthrough_response
from gateway.conversation.v1.conversation_pb2 import Block, Media, Usage
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from tests.facade.dialects.openai.answers import FOREIGN
from tests.facade.dialects.responses.answers import (
    APPROVAL,
    CREATED,
    RESPONSE_ID,
    answer,
    call,
    checked,
    choice,
    echo,
    found,
    own,
    rendered,
    search,
    text,
    thinking,
)

HEX = "ab" * 24
LOGPROBS = {
    "content": [
        {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []},
        {"token": "b", "logprob": -1, "bytes": None, "top_logprobs": [{"token": "c"}]},
    ]
}


def test_a_plain_answer_has_what_openai_fills_in() -> None:
    usage = Usage(
        input_tokens=1,
        cache_read_input_tokens=2,
        cache_creation_input_tokens=4,
        output_tokens=5,
        reasoning_tokens=3,
    )
    assert rendered(answer(choice(text("hi")), usage=usage)) == {
        "id": RESPONSE_ID,
        "object": "response",
        "created_at": CREATED,
        "status": "completed",
        "completed_at": CREATED,
        "error": None,
        "incomplete_details": None,
        "model": "model-1",
        "output": [
            {
                "id": f"msg_{HEX}0000",
                "type": "message",
                "status": "completed",
                "content": [
                    {"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}
                ],
                "role": "assistant",
            }
        ],
        "usage": {
            "input_tokens": 7,
            "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 4},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 12,
        },
        "background": False,
        "conversation": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "user": None,
    }


def test_fields_of_the_request_are_repeated() -> None:
    fields = {
        "instructions": "be kind",
        "metadata": {"k": "v"},
        "temperature": 0.5,
        "store": False,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}, "verbosity": "low"},
        "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
        "tool_choice": {"type": "function", "name": "f"},
        "conversation": "c",
        "service_tier": "auto",
    }
    response = rendered(answer(choice(text("x"))), echo(**fields))
    same = ("instructions", "metadata", "temperature", "store", "tool_choice")
    assert {name: response[name] for name in same} == {name: fields[name] for name in same}
    assert response["reasoning"] == {"effort": "low", "summary": None}
    assert response["text"]["format"]["strict"] is False
    function, web = response["tools"]
    assert function == {
        "type": "function",
        "name": "f",
        "description": None,
        "parameters": None,
        "strict": True,
    }
    assert web == {"type": "web_search"}
    assert response["conversation"] == {"id": "c"}
    assert response["service_tier"] == "default"


def test_blocks_become_items_in_order() -> None:
    blocks = [
        thinking("hm"),
        Block(redacted_thinking="xyz"),
        text("a"),
        Block(opaque=FOREIGN),
        Block(refusal="no"),
        call("c1", "f", ""),
        call("c2", "g", "raw", freeform=True),
        Block(opaque=own(**APPROVAL)),
        Block(opaque=FOREIGN),
    ]
    response = rendered(answer(choice(*blocks, reason="TOOL_USE")))
    thought, redacted, message, function, custom, approval = response["output"]
    assert thought["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert (thought["id"], thought["encrypted_content"]) == (f"rs_{HEX}0000", "c2ln")
    assert (redacted["summary"], redacted["encrypted_content"]) == ([], "redacted.xyz")
    assert [part["type"] for part in message["content"]] == ["output_text", "refusal"]
    assert (function["id"], function["call_id"], function["arguments"]) == (
        *(f"fc_{HEX}0003", "c1"),
        "{}",
    )
    assert (custom["type"], custom["input"]) == ("custom_tool_call", "raw")
    assert approval == APPROVAL


def test_pictures_are_items() -> None:
    picture = Block(media=Media(kind="MEDIA_KIND_IMAGE", data=b"abc", mime_type="image/png"))
    (item,) = rendered(answer(choice(picture)))["output"]
    assert (item["type"], item["result"]) == ("image_generation_call", "YWJj")


def test_searches_are_items_with_their_sources() -> None:
    blocks = [search(1, "q"), found(1, "http://a"), search(2, "r"), text("x")]
    given = echo(include=["web_search_call.action.sources"])
    first, second, _ = rendered(answer(choice(*blocks)), given)["output"]
    assert first["id"].startswith("ws_gw")
    assert first["status"] == "completed"
    assert first["action"]["query"] == "q"
    assert first["action"]["sources"] == [{"type": "url", "url": "http://a"}]
    assert second["status"] == "failed"
    first, *_ = rendered(answer(choice(*blocks)))["output"]
    assert "sources" not in first["action"]


@pytest.mark.parametrize(
    ("reason", "blocks", "status", "details"),
    [
        ("STOP_SEQUENCE", [text("a")], "completed", None),
        ("PAUSE_TURN", [text("a")], "completed", None),
        ("MAX_TOKENS", [text("a")], "incomplete", {"reason": "max_output_tokens"}),
        ("CONTEXT_WINDOW", [text("a")], "incomplete", {"reason": "max_output_tokens"}),
        ("REFUSAL", [text("a")], "incomplete", {"reason": "content_filter"}),
        ("REFUSAL", [Block(refusal="a")], "completed", None),
    ],
)
def test_why_an_answer_ended(reason: str, blocks: list, status: str, details: object) -> None:
    response = rendered(answer(choice(*blocks, reason=reason)))
    assert (response["status"], response["incomplete_details"]) == (status, details)
    assert response["output"][-1]["status"] == status
    assert (response["completed_at"] is None) == (status == "incomplete")


def test_log_probabilities_are_those_that_were_asked_for() -> None:
    given = answer(choice(text("a"), text("b"), logprobs=json.dumps(LOGPROBS).encode()))
    (message,) = rendered(given)["output"]
    assert [part["logprobs"] for part in message["content"]] == [[], []]
    (message,) = rendered(given, echo(include=["message.output_text.logprobs"]))["output"]
    first, second = (part["logprobs"] for part in message["content"])
    assert first == LOGPROBS["content"][:1]
    assert second == [
        {
            "token": "b",
            "logprob": -1,
            "bytes": [],
            "top_logprobs": [{"token": "c", "logprob": 0.0, "bytes": []}],
        }
    ]


def test_fields_without_a_name_are_kept() -> None:
    cited = {"type": "url_citation", "start_index": 0, "end_index": 1, "url": "u", "title": "t"}
    given = answer(
        choice(text("a", own(annotations=[cited])), extra=own(phase="final_answer")),
        extra=own(service_tier="flex", newest=1),
    )
    response = rendered(given)
    assert (response["service_tier"], response["newest"]) == ("flex", 1)
    assert response["output"][0]["phase"] == "final_answer"
    assert response["output"][0]["content"][0]["annotations"] == [cited]


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (errors_pb2.REASON_UPSTREAM_RATE_LIMITED, "rate_limit_exceeded"),
        (errors_pb2.REASON_UPSTREAM_REJECTED, "invalid_prompt"),
        (errors_pb2.REASON_UPSTREAM_OVERLOADED, "server_error"),
    ],
)
def test_a_failed_response_tells_why(reason: errors_pb2.Reason.ValueType, code: str) -> None:
    raw = failed_response(GatewayError(reason, "why"), RESPONSE_ID, CREATED, echo(), "m")
    response = checked(json.loads(raw))
    assert response["status"] == "failed"
    assert response["error"] == {"code": code, "message": "why"}
    assert response["completed_at"] is None


NATIVE = {
    "id": "resp_of_provider",
    "background": False,
    "output": [{"id": "msg_1"}],
    "previous_response_id": None,
    "store": False,
    "newest": 2,
}


@pytest.mark.parametrize("space", [None, 2])
@pytest.mark.parametrize("given_id", ["resp_of_provider", ""])
def test_a_native_response_gets_the_gateways_id(given_id: str, space: int | None) -> None:
    body = json.dumps({**NATIVE, "id": given_id}, indent=space).encode()
    passed = passthrough_response(body, RESPONSE_ID, echo(store=False))
    assert json.loads(passed) == {**NATIVE, "id": RESPONSE_ID}


def test_a_native_response_says_what_the_gateway_keeps() -> None:
    state = echo(previous_response_id="resp_0")
    assert json.loads(passthrough_response(json.dumps(NATIVE).encode(), RESPONSE_ID, state)) == {
        **NATIVE,
        "id": RESPONSE_ID,
        "conversation": None,
        "previous_response_id": "resp_0",
        "store": True,
    }
