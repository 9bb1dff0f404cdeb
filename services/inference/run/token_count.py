"""Count the input tokens of a request for the first model of its plan."""

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import CountTokensResponse, RouteInfo
from services.common.errors import UpstreamError
from services.common.grpc.dialect_headers import of_answer
from services.inference.fallback.attempt_reports import FailureLog
from services.inference.offload import offload
from services.inference.providers.base import Call
from services.inference.request import estimate
from services.inference.run.prepared_request import PreparedRequest


async def count_tokens(prepared: PreparedRequest, failure_log: FailureLog) -> CountTokensResponse:
    """Return the input tokens of a request, estimated if its provider cannot count them.

    Raises:
        UpstreamError: the provider rejects the request.
    """
    step = prepared.plan.steps[0]
    provider = prepared.providers[step.target.adapter]
    if prepared.attempts.may_convert(step):
        await prepared.attempts.adapt(step)
    seen = await offload(prepared.attempts.complete, step)
    request = (await offload(prepared.attempts.translated, provider, seen.request)).request
    call = Call(request, step.target, stream=False, refused_fields=prepared.attempts.refused(step))
    try:
        counted = await provider.count_tokens(call)
    except UpstreamError as error:
        if error.reason == errors_pb2.REASON_UPSTREAM_REJECTED:
            call.add_head(error, provider.dialect)
            raise
        name = f"{step.target.provider}/{step.target.upstream}"
        failure_log.write(step.target.provider, error, {"model": name, "call": "count"})
        counted = None
    input_tokens = counted
    if input_tokens is None:
        input_tokens = await offload(estimate.estimate_input_tokens, request)
    headers, upstream_request_id = of_answer(
        provider.dialect, call.answer_headers, call.request.dialect
    )
    route = RouteInfo(
        model=step.target.name,
        provider=step.target.provider,
        step=step.step_id,
        attempts=1,
        dropped=call.dropped,
        memory_truncated=seen.left_out,
        adapted=[*seen.adapted, *call.adapted],
        upstream_request_id=upstream_request_id,
        headers=headers,
    )
    return CountTokensResponse(
        input_tokens=input_tokens,
        estimated=counted is None or prepared.attempts.guesses,
        route=route,
    )
