from types import SimpleNamespace
from typing import Any

from facade.dialects import openai
from facade.dialects.paths import CallerPaths, SourceMap
from facade.route_headers import answer_headers
from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Attempt
from gateway.inference.v1.inference_pb2 import RouteInfo


def headers_of(route: RouteInfo) -> dict[str, str]:
    """Return the headers of an answer to a chat."""
    exchange: Any = SimpleNamespace(caller_paths=CallerPaths(openai.FIELD_NAMES, SourceMap()))
    return answer_headers(exchange, route)


def test_the_serving_model_is_reported():
    route = RouteInfo(model="openai/gpt-4o", provider="openai", step="primary", attempts=2)
    assert headers_of(route) == {
        "x-gateway-model": "openai/gpt-4o",
        "x-gateway-provider": "openai",
        "x-gateway-step": "primary",
        "x-gateway-attempts": "2",
    }


def test_what_was_left_out_is_named_by_its_path():
    route = RouteInfo(dropped=["seed", "messages[3].name"])
    assert headers_of(route)["x-gateway-dropped"] == "seed, messages[3].name"


def test_turns_that_were_left_out_are_counted():
    assert headers_of(RouteInfo(memory_truncated=3))["x-memory-truncated"] == "3"


def test_the_provider_s_headers_and_id_are_returned():
    route = RouteInfo(headers={"openai-version": "1"}, upstream_request_id="req_1")
    told = {"openai-version": "1", "x-upstream-request-id": "req_1"}
    assert headers_of(route).items() >= told.items()


def test_no_name_breaks_a_header():
    route = RouteInfo(model="m\r\nx: y", step="é", dropped=["\x1f", "a, b"])
    headers = headers_of(route)
    assert headers["x-gateway-model"] == "m%0D%0Ax:%20y"
    assert headers["x-gateway-step"] == "%C3%A9"
    assert headers["x-gateway-dropped"] == "%1F, a%2C%20b"


def test_long_names_are_cut_before_they_are_remembered():
    route = RouteInfo(model="m" * 100_000, step="s" * 100_000, dropped=["d" * 100_000])
    headers = headers_of(route)
    assert max(map(len, headers.values())) == 256


def test_many_names_do_not_outgrow_a_header():
    route = RouteInfo(dropped=["é" * 1000] * 1000)
    assert len(headers_of(route)["x-gateway-dropped"]) <= 4_000


def test_attempts_that_failed_are_listed():
    failed = Attempt(
        step="primary",
        model="openai/a;b, c",
        status=500,
        reason=errors_pb2.REASON_UPSTREAM_ERROR,
        duration_ms=18,
    )
    silent = Attempt(step="é", model="x/y", reason=errors_pb2.REASON_UPSTREAM_TIMEOUT)
    listed = headers_of(RouteInfo(failed_attempts=[failed, silent]))["x-gateway-failed-attempts"]
    assert listed == (
        "openai/a%3Bb%2C%20c;step=primary;status=500;reason=upstream_error;ms=18, "
        "x/y;step=%C3%A9;reason=upstream_timeout;ms=0"
    )


def test_many_attempts_do_not_outgrow_a_header():
    failed = Attempt(step="primary", model="m" * 128)
    listed = headers_of(RouteInfo(failed_attempts=[failed] * 100))["x-gateway-failed-attempts"]
    assert 3000 < len(listed) <= 4000
    assert listed.endswith(";ms=0")
