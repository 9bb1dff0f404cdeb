"""Any JSON value at any place of a response, or of one of its events, is an answer or a failure."""

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.common.errors import UpstreamError
from services.inference.providers.openai_responses.events import events_from_whole
from services.inference.providers.openai_responses.response_objects import passthrough
from tests.services.inference.providers.changes import GONE, changed, spread, values
from tests.services.inference.providers.openai_responses.responses_answers import (
    EVENTS,
    NO_STATE,
    SAMPLE,
    Provider,
    answer,
    data,
    native_reader_of,
    natives,
    reader_of,
)
from tests.services.inference.providers.openai_responses.responses_calls import Json, call_of
from tests.thoroughness import examples, sampled

pytestmark = pytest.mark.thorough

OWN = {"id", "background", "conversation", "previous_response_id", "store"}
DEEP: Any = []
for _ in range(200):
    DEEP = [DEEP]
HOSTILE: dict[str, Any] = {
    "nothing": GONE,
    "null": None,
    "true": True,
    "a negative number": -1,
    "a large number": 2**63,
    "a fraction": 0.5,
    "an empty text": "",
    "a text": "x",
    "a long text": "x" * 1000,
    "a surrogate": "\ud7ff",
    "a list": [1, None],
    "an object": {"type": "message"},
    "deep": DEEP,
}


def read_whole(given: Json) -> None:
    try:
        answer(events_from_whole(given, call_of(), Provider(), str))
    except UpstreamError:
        pass
    passed = passthrough(orjson.dumps(given))
    if passed is not None:
        parsed = orjson.loads(passed.passthrough)
        assert NO_STATE.items() <= parsed.items() and parsed.get("conversation") is None
        assert next(iter(parsed)) == "id"
        assert parsed.keys() - OWN == given.keys() - OWN


def read_stream(events: list[Json], *, native: bool) -> None:
    reader = native_reader_of() if native else reader_of()
    out: list[Any] = []
    try:
        reader.feed(data(*events), out)
        reader.end(out)
        if not native:
            answer(out)
    except UpstreamError:
        pass
    assert not out or out[0].HasField("start")
    if native:
        told = [orjson.loads(event) for event in natives(out)]
        # An event without a type is given its name, which `data` makes.
        expected = [{"type": "x", **event} for event in events[: len(told)]]
        assert [*map(less_own, told)] == [*map(less_own, expected)]


def less_own(event: Json) -> Json:
    """Return an event without its response object, which is handed on in another form."""
    return {name: value for name, value in event.items() if name != "response"}


@pytest.mark.parametrize(("first", "value"), tuple(enumerate(HOSTILE.values())), ids=HOSTILE)
def test_any_value_at_any_place_of_a_whole_answer(first: int, value: Any) -> None:
    for place in sampled(spread(SAMPLE), 3, first):
        read_whole(changed(SAMPLE, {place: value}))


@pytest.mark.parametrize(("first", "value"), tuple(enumerate(HOSTILE.values())), ids=HOSTILE)
def test_any_value_at_any_place_of_an_event(first: int, value: Any) -> None:
    for number, event in enumerate(EVENTS):
        if "response" in event:
            places = [place for place in spread(event) if len(place) < 4]
        else:
            places = spread(event)
        for at, place in sampled(enumerate(places), 3, first + number):
            other = changed(event, {place: value})
            read_stream([*EVENTS[:number], other, *EVENTS[number + 1 :]], native=bool(at % 2))


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_several_values_at_several_places(drawn: st.DataObject) -> None:
    given = {"events": EVENTS, "whole": SAMPLE}
    hostile = st.sampled_from([one for one in HOSTILE.values() if one is not DEEP]) | values
    places = st.dictionaries(st.sampled_from(spread(given)), hostile, max_size=4)
    other = changed(given, drawn.draw(places))
    if isinstance(other.get("whole"), dict):
        read_whole(other["whole"])
    events = other.get("events")
    if isinstance(events, list) and all(isinstance(one, dict) for one in events):
        read_stream(events, native=drawn.draw(st.booleans()))


@settings(max_examples=examples(40), deadline=None)
@given(st.permutations(range(len(EVENTS))))
def test_events_in_any_order(order: list[int]) -> None:
    read_stream([EVENTS[number] for number in order], native=True)
