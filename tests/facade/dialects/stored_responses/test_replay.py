"""The events of stored responses, and their objects, by the types of the official client."""

import json
import zlib
from typing import Any

import pytest

from facade.dialects.responses import render_response
from facade.dialects.stored_responses import (
    new_response,
    render_stored,
    replay,
    response_content,
)
from facade.dialects.stored_responses.replay import MAX_EVENTS, pack_events
from gateway.inference.v1.inference_pb2 import GenerateResponse
from gateway.memory.v1.responses_pb2 import StoredResponse
from tests.facade.dialects.responses.answers import (
    CREATED,
    RESPONSE_ID,
    answer,
    assembled,
    call,
    checked,
    choice,
    echo,
    events_of,
    found,
    read,
    search,
    stream,
    text,
    thinking,
)

ENDED = StoredResponse.STATE_ENDED
ANSWERS = {
    "text": answer(choice(text("hello"))),
    "cut off": answer(choice(text("hello"), reason="MAX_TOKENS")),
    "calls": answer(
        choice(
            thinking("hm"),
            call("c1", "f", "{}"),
            call("c2", "g", "x", freeform=True),
            reason="TOOL_USE",
        )
    ),
    "search": answer(choice(search(1, "tides"), found(1, "https://a.example"), text("found"))),
}


def stored(response: bytes, **fields: Any) -> StoredResponse:
    """Return a response as it is stored."""
    fields.setdefault("state", ENDED)
    return StoredResponse(id=RESPONSE_ID, content=response_content(response), **fields)


def render(response: GenerateResponse) -> bytes:
    return render_response(response, RESPONSE_ID, CREATED, echo())


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


@pytest.mark.parametrize("name", ANSWERS)
def test_a_response_is_rendered_as_it_was(name: str) -> None:
    response = render(ANSWERS[name])
    assert json.loads(render_stored(stored(response))) == json.loads(response)


@pytest.mark.parametrize("name", ANSWERS)
def test_made_events_tell_all_of_a_response(name: str) -> None:
    response = render(ANSWERS[name])
    whole = json.loads(response)
    events = read(replay(stored(response), response, -1))
    assert assembled(events) == whole["output"]
    assert events[-1]["response"] == whole
    assert kinds(events)[-1] == whole["status"]
    assert checked(events[0]["response"])["output"] == []


@pytest.mark.parametrize("name", ANSWERS)
def test_streamed_events_are_replayed_from_any_place(name: str) -> None:
    encoder = stream()
    raw = encoder.queue("m") + encoder.encode(events_of(ANSWERS[name])) + encoder.finish()
    one = stored(encoder.response, background=True)
    one.content.events = pack_events(raw)
    events = read(raw)
    assert kinds(events)[:3] == ["created", "queued", "in_progress"]
    assert [event["response"]["status"] for event in events[:3]] == kinds(events)[1:2] * 2 + [
        "in_progress"
    ]
    for after in range(-1, len(events) - 1):
        assert _read(replay(one, encoder.response, after)) == events[after + 1 :]


def test_a_stream_ends_with_the_last_event_in_any_case() -> None:
    response = render(ANSWERS["text"])
    one = stored(response)
    count = len(read(replay(one, response, -1)))
    (last,) = _read(replay(one, response, count + 5))
    assert last == {
        "type": "response.completed",
        "response": json.loads(response),
        "sequence_number": count + 6,
    }


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (StoredResponse.STATE_QUEUED, "queued"),
        (StoredResponse.STATE_IN_PROGRESS, "in_progress"),
        (StoredResponse.STATE_CANCELLED, "cancelled"),
        (StoredResponse.STATE_INTERRUPTED, "failed"),
    ],
)
def test_the_state_is_that_of_the_row(state: StoredResponse.State.ValueType, status: str) -> None:
    encoder = stream()
    encoder.queue("m")
    one = stored(encoder.response, state=state, background=True)
    response = checked(json.loads(render_stored(one)))
    assert (response["status"], response["model"]) == (status, "m")
    assert (response["error"] is not None) == (status == "failed")
    events = read(replay(one, render_stored(one), -1))
    assert kinds(events) == ["created", "queued", "in_progress", "failed"]
    assert events[-1]["response"] == response


def test_events_of_an_interrupted_response_are_made() -> None:
    response = render(ANSWERS["text"])
    one = stored(response, state=StoredResponse.STATE_INTERRUPTED)
    one.content.events = pack_events(b"event: x\n\n")
    assert kinds(read(replay(one, render_stored(one), -1)))[-1] == "failed"


def test_too_many_events_are_neither_packed_nor_unpacked() -> None:
    assert pack_events(bytes(MAX_EVENTS + 1)) == b""
    response = render(ANSWERS["text"])
    one = stored(response)
    one.content.events = zlib.compress(bytes(MAX_EVENTS + 1))
    assert kinds(read(replay(one, response, -1)))[-1] == "completed"


def test_items_without_an_id_of_their_own_get_one() -> None:
    sent = [b'{"id": "a"}', b"{}", b'{"id": 5}', json.dumps({"id": "x" * 129}).encode()]
    new = new_response(RESPONSE_ID, None, sent, response_content(render(ANSWERS["text"])), None)
    ids = [item.id for item in new.input]
    assert ids == ["a", *(f"in_{RESPONSE_ID}_{place}" for place in (1, 2, 3))]
    assert [item.json for item in new.input] == sent


def _read(raw: bytes) -> list[dict[str, Any]]:
    """Return events whose numbers need not begin at 0."""
    *parts, remainder = raw.decode().split("\n\n")
    assert remainder == ""
    return [json.loads(part.partition("\ndata: ")[2]) for part in parts]
