"""Batches for Langfuse's ingestion API, against what its reference names."""

import json
from datetime import datetime
from typing import Any

from services.request_log.exporters.langfuse import langfuse_requests, rejected_entries
from tests.services.request_log.exporters.exported_requests import exported

# Fields of the reference (https://api.reference.langfuse.com/), of those of a request that ended.
EVENT = {"id", "timestamp", "type", "body"}
TRACE = {"id", "timestamp", "name", "userId", "release", "metadata", "input", "output", "tags"}
SPAN = {
    *("id", "traceId", "name", "startTime", "endTime", "metadata", "input", "output", "level"),
    *("statusMessage", "parentObservationId", "version", "environment"),
}
GENERATION = SPAN | {
    *("completionStartTime", "model", "modelParameters", "usageDetails", "costDetails"),
}
FIELDS = {"trace-create": TRACE, "span-create": SPAN, "generation-create": GENERATION}


def events(*entries: Any) -> list[Any]:
    [body] = langfuse_requests(entries)
    batch = json.loads(body)["batch"]
    for event in batch:
        assert set(event) == EVENT
        assert set(event["body"]) <= FIELDS[event["type"]]
        datetime.fromisoformat(event["timestamp"])
    return batch


def test_a_model_call_is_a_trace_with_a_generation() -> None:
    entry = exported(
        1,
        '{"a": [1]}',
        requested_model="fast",
        model="gpt",
        input_tokens=3,
        output_tokens=4,
        first_content_ms=100,
        cost_pusd=25 * 10**8,
    )
    trace, generation = events(entry)
    assert (trace["type"], generation["type"]) == ("trace-create", "generation-create")
    assert trace["body"]["userId"] == "user_a"
    body = generation["body"]
    assert body["traceId"] == trace["body"]["id"]
    assert body["startTime"] == "2023-11-14T22:13:20.000+00:00"
    assert body["completionStartTime"] == "2023-11-14T22:13:20.100+00:00"
    assert body["endTime"] == "2023-11-14T22:13:20.500+00:00"
    assert (body["model"], body["input"], body["output"]) == ("gpt", {"a": [1]}, {"a": [1]})
    assert body["usageDetails"] == {"input": 3, "output": 4}
    assert body["costDetails"] == {"total": 0.0025}
    assert body["level"] == "DEFAULT"


def test_other_requests_and_failures_are_told_apart() -> None:
    _, files, _, failed = events(
        exported(1), exported(2, requested_model="m", status=502, error_code="upstream_error")
    )
    assert (files["type"], failed["type"]) == ("span-create", "generation-create")
    assert (failed["body"]["level"], failed["body"]["statusMessage"]) == ("ERROR", "upstream_error")
    assert len({files["id"], failed["id"]}) == 2


def test_a_stream_is_sent_as_text() -> None:
    _, generation = events(exported(1, 'data: {"a": 1}\n\n', requested_model="m"))
    assert generation["body"]["output"] == 'data: {"a": 1}\n\n'


def test_requests_are_smaller_than_the_api_accepts() -> None:
    # Quotes take two bytes each in JSON.
    entries = [exported(number, '"' * 500_000, requested_model="m") for number in range(4)]
    bodies = list(langfuse_requests(entries))
    assert all(len(body) < 3_500_000 for body in bodies)
    sent = [event for body in bodies for event in json.loads(body)["batch"]]
    assert [event["body"]["id"] for event in sent if event["type"] == "trace-create"] == [
        f"log_{number}" for number in range(4)
    ]


def test_rejections_name_their_entries() -> None:
    answer = {
        "successes": [{"id": "log_1-trace", "status": 201}],
        "errors": [
            {"id": "log_2-trace", "status": 400, "message": "bad"},
            {"id": "log_2-observation", "status": 400, "message": "bad"},
        ],
    }
    assert rejected_entries(json.dumps(answer).encode()) == {"log_2": "bad"}
    for other in (b"", b"ok", b"[]", b'{"errors": 1}', b'{"errors": [1]}'):
        assert rejected_entries(other) == {}
