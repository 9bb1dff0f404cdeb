from gateway.accounts.v1 import limits_pb2
from gateway.accounts.v1.limits_pb2 import ModelPatterns, SubjectLimits
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import (
    EmbedRequest,
    FallbackConfig,
    FallbackStep,
    GenerateRequest,
    Multimodal,
)
from services.inference.allowances.needs import RequestLimits
from services.inference.limits.subjects import may_use, models_of, refused_model

KEY = limits_pb2.SUBJECT_KIND_KEY
CHAIN = FallbackConfig(steps=[FallbackStep(model="a"), FallbackStep(model="b")])


def _models(*patterns: str) -> SubjectLimits:
    return SubjectLimits(kind=KEY, allowed_models=ModelPatterns(patterns=patterns))


def test_what_passes_last_is_asked_for_first() -> None:
    user = SubjectLimits(id="u", requests_per_minute=1, spend_per_day_pusd=2)
    team = SubjectLimits(id="t", tokens_per_minute=3, concurrent_requests=4, spend_per_month_pusd=5)
    assert [
        (need.key.subject_id, need.key.measure, need.limit, need.place)
        for need in RequestLimits([user, team]).needs
    ] == [
        ("t", limits_pb2.MEASURE_SPEND_PER_MONTH, 5, 2),
        ("u", limits_pb2.MEASURE_SPEND_PER_DAY, 2, 2),
        ("t", limits_pb2.MEASURE_TOKENS_PER_MINUTE, 3, 1),
        ("u", limits_pb2.MEASURE_REQUESTS_PER_MINUTE, 1, 0),
        ("t", limits_pb2.MEASURE_CONCURRENT_REQUESTS, 4, 0),
    ]


def test_only_started_requests_are_not_settled() -> None:
    limits = SubjectLimits(
        requests_per_minute=1, tokens_per_minute=1, concurrent_requests=1, spend_per_day_pusd=1
    )
    assert [need.key.measure for need in RequestLimits([limits]).needs if not need.is_settled] == [
        limits_pb2.MEASURE_REQUESTS_PER_MINUTE
    ]


def test_of_which_measures_callers_are_told() -> None:
    one = SubjectLimits(id="a", requests_per_minute=1, spend_per_day_pusd=1)
    other = SubjectLimits(id="b", requests_per_minute=1, concurrent_requests=1)
    limits = RequestLimits([one, other])
    assert [
        [(limits.needs[at].key.subject_id, limits.needs[at].key.measure) for at in indexes]
        for indexes in limits.reported_needs
    ] == [
        [(name, limits_pb2.MEASURE_REQUESTS_PER_MINUTE) for name in ("a", "b")],
        [("a", limits_pb2.MEASURE_SPEND_PER_DAY)],
    ]


def test_tokens_count_for_limits_on_tokens_and_money() -> None:
    assert not RequestLimits(
        [SubjectLimits(requests_per_minute=1, concurrent_requests=1)]
    ).count_tokens
    assert RequestLimits([SubjectLimits(), SubjectLimits(tokens_per_minute=0)]).count_tokens
    assert RequestLimits([SubjectLimits(spend_per_day_pusd=0)]).count_tokens
    assert RequestLimits([SubjectLimits(spend_per_month_pusd=0)]).count_tokens


def test_models_are_looked_at_where_a_subject_restricts_them() -> None:
    assert RequestLimits([SubjectLimits(), _models("a")]).restrict_models
    assert RequestLimits([_models()]).restrict_models
    assert not RequestLimits([SubjectLimits(requests_per_minute=1)]).restrict_models


def test_a_star_stands_for_any_rest() -> None:
    assert may_use([], "gpt-4o")
    assert may_use([SubjectLimits()], "gpt-4o")
    assert may_use([_models("gpt-*", "x")], "gpt-")
    assert may_use([_models("*")], "gpt-4o")
    assert not may_use([_models("gpt-4")], "gpt-4o")
    assert not may_use([_models("gpt-*")], "openai/gpt-4o")
    assert not may_use([_models()], "gpt-4o")
    assert not may_use([_models("*"), _models("x")], "gpt-4o")


def test_the_models_of_a_request_are_those_that_it_names() -> None:
    request = GenerateRequest(model="m", fallback_config=CHAIN)
    assert models_of(request) == [("model", "m")]
    steps = [("fallback_config.steps[0].model", "a"), ("fallback_config.steps[1].model", "b")]
    request.fallback = inference_pb2.FALLBACK_MODE_ENABLED
    assert models_of(request) == [("model", "m"), *steps]
    request.fallback = inference_pb2.FALLBACK_MODE_STRICT
    assert models_of(request) == steps
    assert models_of(EmbedRequest(model="m", fallback=2)) == [("model", "m")]


def test_models_that_convert_media_are_named_too() -> None:
    multimodal = Multimodal()
    multimodal.image.model, multimodal.audio.model = "see", "embedded"
    multimodal.pdf.model, multimodal.video.model = "read", "watch"
    names = models_of(GenerateRequest(model="m", multimodal=multimodal))
    assert names == [
        ("model", "m"),
        ("multimodal.image.model", "see"),
        ("multimodal.pdf.model", "read"),
        ("multimodal.video.model", "watch"),
    ]
    assert refused_model([_models("m", "see")], names) == ("multimodal.pdf.model", "read", KEY)
