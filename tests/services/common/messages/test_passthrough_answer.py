from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.errors.v1.errors_pb2 import Attempt
from gateway.inference.v1.inference_pb2 import CACHE_STATUS_MISS, GenerateResponse, RouteInfo
from services.common.messages.passthrough_answer import AnswerRoute, PassthroughAnswer, TokenCounts


def test_another_process_gets_all_that_is_known_of_an_answer() -> None:
    answer = PassthroughAnswer(b'{"id":"a"}', TokenCounts(1, 2, 3))
    route = answer.route = AnswerRoute("m", "p", "primary", 2, {}, "req_1")
    # As those do who come after the engine: the cache, and the limits of the caller.
    route.headers["x-ratelimit-limit-requests"] = "9"
    route.cache = CACHE_STATUS_MISS
    route.deployment = "p/m-1"
    route.dropped, route.adapted, route.memory_truncated = ["seed"], ["a:text"], 4
    route.failed_attempts = [Attempt(step="primary", model="p/m-2")]
    assert GenerateResponse.FromString(answer.SerializeToString()) == GenerateResponse(
        passthrough=b'{"id":"a"}',
        usage=Usage(input_tokens=1, output_tokens=2, cache_read_input_tokens=3),
        route=RouteInfo(
            model="m",
            provider="p",
            step="primary",
            attempts=2,
            upstream_request_id="req_1",
            headers={"x-ratelimit-limit-requests": "9"},
            cache=CACHE_STATUS_MISS,
            deployment="p/m-1",
            dropped=["seed"],
            adapted=["a:text"],
            memory_truncated=4,
            failed_attempts=[Attempt(step="primary", model="p/m-2")],
        ),
    )
