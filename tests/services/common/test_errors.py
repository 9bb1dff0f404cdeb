import grpc
import pytest

from gateway.accounts.v1.limits_pb2 import LimitState
from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Attempt, Reason
from services.common import errors
from services.common.errors import GatewayError
from tests.grid import each_row

REASONS = [value for value in Reason.values() if value != errors_pb2.REASON_UNSPECIFIED]


def rpc_error(error: GatewayError) -> grpc.aio.AioRpcError:
    code, message, details = errors.to_status(error)
    trailers = grpc.aio.Metadata((errors.STATUS_METADATA_KEY, details))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailers, message)


def test_the_code_of_a_provider_stays_a_number():
    sent = GatewayError(errors_pb2.REASON_UPSTREAM_REJECTED, "why")
    sent.upstream_code = 400
    assert errors.from_rpc_error(rpc_error(sent)).upstream_code == 400


@each_row("reason", REASONS)
def test_every_reason_survives_the_way_through_a_status(reason):
    attempt = Attempt(step="a", model="p/m", status=500, reason=reason, duration_ms=7)
    sent = GatewayError(
        reason, "why", param="a[0].b", retry_after_s=3, attempts=[attempt], article_code=7
    )
    sent.upstream_code, sent.upstream_param = "too_hot", "temperature"
    sent.caller_limits = [LimitState(limit=3, remaining=0, reset_ms=7)]
    got = errors.from_rpc_error(rpc_error(sent))
    for name in (
        "reason",
        "message",
        "param",
        "retry_after_s",
        "attempts",
        "article_code",
        "upstream_code",
        "upstream_param",
        "caller_limits",
        "http_status",
        "code",
    ):
        assert getattr(got, name) == getattr(sent, name)


@each_row("reason", REASONS)
def test_a_retryable_refusal_has_a_retry_after(reason):
    error = GatewayError(reason, "why")
    if error.http_status in (429, 503):
        assert error.retry_after_s >= 1


@pytest.mark.parametrize(
    ("code", "reason", "status"),
    [
        (grpc.StatusCode.UNAVAILABLE, errors_pb2.REASON_UNAVAILABLE, 503),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors_pb2.REASON_TIMEOUT, 504),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors_pb2.REASON_TOO_LARGE, 413),
        (grpc.StatusCode.UNKNOWN, errors_pb2.REASON_INTERNAL, 500),
    ],
)
def test_a_status_of_grpc_itself_keeps_its_text_to_itself(code, reason, status):
    bare = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), "secret text")
    error = errors.from_rpc_error(bare)
    assert (error.reason, error.http_status) == (reason, status)
    assert "secret" not in error.message


@pytest.mark.parametrize("text", ["x" * (1 << 20), "\u4e2d" * (1 << 20), "\ud800", "a\0b"])
def test_what_an_error_repeats_is_short_and_can_be_written(text):
    error = GatewayError(errors_pb2.REASON_INVALID_REQUEST, text, param=text)
    assert len(error.message.encode()) <= errors.MAX_MESSAGE
    assert len(error.param.encode()) <= 512
    # What a link carries of one status, see services/common/link/frames.py.
    assert len(errors.to_status(error)[2]) < 16 << 10


def test_the_last_attempts_stay_where_a_status_cannot_hold_all():
    attempts = [Attempt(step="s" * 256, model=f"p/{n}", status=500) for n in range(100)]
    sent = GatewayError(errors_pb2.REASON_UPSTREAM_ERROR, "m" * 5000, attempts=attempts)
    got = errors.from_rpc_error(rpc_error(sent))
    assert len(errors.to_status(sent)[2]) < 16 << 10
    assert got.http_status == 502
    assert 10 < len(got.attempts) < 100
    assert got.attempts == attempts[-len(got.attempts) :]


def test_a_providers_headers_go_before_attempts():
    attempts = [Attempt(step="s" * 256, model=f"p/{n}", status=500) for n in range(100)]
    sent = GatewayError(errors_pb2.REASON_UPSTREAM_ERROR, "m" * 5000, attempts=attempts)
    without = len(errors.to_status(sent)[2])
    sent.headers = {f"openai-{n}": "x" * 900 for n in range(4)}
    sent.upstream_request_id = "r" * 128
    got = errors.from_rpc_error(rpc_error(sent))
    assert (got.headers, got.upstream_request_id) == (sent.headers, sent.upstream_request_id)
    assert len(errors.to_status(sent)[2]) < without + 500
    assert got.attempts == attempts[-len(got.attempts) :]


def test_an_unknown_model_is_named_briefly():
    assert len(errors.model_not_found("x" * (1 << 20)).message) < 300
