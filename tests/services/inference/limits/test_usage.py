from gateway.conversation.v1.conversation_pb2 import HelperUsage, Usage
from gateway.inference.v1.inference_pb2 import Event, GenerateResponse, RouteInfo, Start
from services.inference.limits.usage import End, UsageMeter, tokens_of

START = Event(start=Start(route=RouteInfo(provider="openai", model="gpt")))
TEXT = Event(text="a" * 100)  # about 36 tokens


def _meter(*events: Event) -> UsageMeter:
    meter = UsageMeter()
    meter.add_events(events)
    return meter


def test_all_tokens_of_an_answer_count() -> None:
    helper = HelperUsage(input_tokens=100, output_tokens=1_000)
    usage = Usage(
        input_tokens=1,
        output_tokens=20,
        cache_creation_input_tokens=300,
        cache_read_input_tokens=4_000,
        helpers=[helper],
    )
    assert tokens_of(usage) == 5_421


def test_the_usage_of_a_complete_answer_is_its_providers() -> None:
    usage = Usage(input_tokens=7, output_tokens=3)
    early = Event(usage=Usage(input_tokens=7, output_tokens=1))
    meter = _meter(START, early, TEXT, Event(usage=usage))
    assert (meter.provider, meter.model) == ("openai", "gpt")
    assert meter.usage(50, End.COMPLETE) == usage
    whole = UsageMeter()
    whole.add_answer(GenerateResponse(route=START.start.route, usage=usage))
    assert whole.usage(50, End.COMPLETE) == usage


def test_what_a_caller_that_left_was_sent_counts() -> None:
    early = Event(usage=Usage(input_tokens=7, output_tokens=1))
    for end in (End.LEFT, End.FAILED):
        assert _meter(START, early, TEXT).usage(50, end) == Usage(input_tokens=7, output_tokens=36)
        assert _meter(START, TEXT).usage(50, end) == Usage(input_tokens=50, output_tokens=36)


def test_an_answer_without_usage_is_estimated() -> None:
    meter = _meter(START, TEXT, Event(thinking="b" * 100), Event(input="c" * 100))
    assert meter.usage(50, End.COMPLETE) == Usage(input_tokens=50, output_tokens=108)


def test_a_request_that_nobody_answered_costs_nothing() -> None:
    assert _meter().usage(50, End.FAILED) == Usage()
    assert _meter().usage(50, End.LEFT) == Usage(input_tokens=50)
