from gateway.conversation.v1.conversation_pb2 import Block
from gateway.inference.v1.inference_pb2 import (
    CACHE_STATUS_HIT,
    Choice,
    Event,
    GenerateResponse,
    RouteInfo,
    Start,
)
from services.inference.limits.usage import AnswerMeter, End, tokens_of
from services.inference.usage.lines import UsedModel
from services.inference.usage.request_usage import RequestUsage

START = Event(start=Start(route=RouteInfo(provider="openai", model="gpt")))
TEXT = Event(text="a" * 100)  # about 36 tokens
HELPER = UsedModel("eyes", "openai", "eyes", 100, 1_000)
ESTIMATED = UsedModel("gpt", "openai", "", 50, 36)


def _meter(*events: Event) -> AnswerMeter:
    meter = AnswerMeter()
    meter.add_events(events)
    return meter


def _usage(*models: UsedModel, parts: tuple[UsedModel, ...] = ()) -> RequestUsage:
    usage = RequestUsage()
    if models:
        usage.add(models, is_helper=False)
    usage.add(parts, is_helper=True)
    return usage


def _model(read: int | None, wrote: int = 0) -> UsedModel:
    return UsedModel("gpt", "openai", "gpt-5", read, wrote)


def test_all_tokens_of_a_model_count() -> None:
    used = UsedModel(
        "gpt",
        "openai",
        "gpt-5",
        1,
        20,
        cache_read_tokens=4_000,
        cache_write_tokens=300,
        reasoning_tokens=9,
    )
    assert tokens_of(used) == 4_321
    assert tokens_of(_model(None)) == 0


def test_what_is_recorded_counts() -> None:
    broken = UsedModel("old", "openai", "old", 9, 2)
    usage = _usage(_model(7, 3), broken, parts=(HELPER,))
    assert _meter(START, TEXT).used(usage, 50, End.COMPLETE) == [_model(7, 3), broken, HELPER]
    whole = AnswerMeter()
    whole.add_answer(GenerateResponse(route=START.start.route))
    assert whole.used(usage, 50, End.COMPLETE) == [_model(7, 3), broken, HELPER]


def test_what_a_caller_that_left_was_sent_counts() -> None:
    for end in (End.LEFT, End.FAILED):
        assert _meter(START, TEXT).used(_usage(_model(7, 1)), 50, end) == [_model(7, 36)]
        assert _meter(START, TEXT).used(_usage(_model(None)), 50, end) == [_model(50, 36)]


def test_an_answer_without_usage_is_estimated() -> None:
    meter = _meter(START, TEXT, Event(thinking="b" * 100), Event(input="c" * 100))
    assert meter.used(_usage(_model(None)), 50, End.COMPLETE) == [_model(50, 108)]
    whole = AnswerMeter()
    choices = [Choice(blocks=[Block(text="a" * 100)]), Choice(blocks=[Block(text="b" * 100)])]
    whole.add_answer(GenerateResponse(route=START.start.route, choices=choices))
    assert whole.used(_usage(_model(None)), 50, End.COMPLETE) == [_model(50, 72)]


def test_an_answer_that_goes_on_without_its_caller_is_estimated() -> None:
    assert _meter(START, TEXT).used(_usage(parts=(HELPER,)), 50, End.LEFT) == [ESTIMATED, HELPER]


def test_a_request_that_nobody_answered_costs_nothing() -> None:
    for usage in (_usage(), _usage(_model(None))):
        assert _meter().used(usage, 50, End.FAILED) == []
    [left] = _meter().used(_usage(), 50, End.LEFT)
    assert tokens_of(left) == 50


def test_an_attempt_that_failed_and_was_billed_counts() -> None:
    assert _meter().used(_usage(_model(9, 2)), 50, End.FAILED) == [_model(9, 2)]
    assert _meter().used(_usage(parts=(HELPER,)), 50, End.FAILED) == [HELPER]


def test_an_answer_from_the_cache_counts_nothing() -> None:
    route = RouteInfo(provider="openai", model="gpt", cache=CACHE_STATUS_HIT)
    meter = _meter(Event(start=Start(route=route)), TEXT)
    for end in End:
        assert meter.used(_usage(), 50, end) == []
