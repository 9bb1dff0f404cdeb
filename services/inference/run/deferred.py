"""Requests of batches whose providers are called by their own batch services.

Such a request is rendered first, and its answer is read later, when the batch service has it. It
needs nothing of the gateway but translation: a request that uses memory, the gateway's own tools,
converted media or files that are read while they are sent is run by the gateway's own workers.
"""

from dataclasses import replace
from functools import partial

from gateway.inference.v1.inference_pb2 import GenerateRequest, GenerateResponse
from services.common.errors import GatewayError, unsupported
from services.common.messages.deferred_call import CallRenderedError, DeferredCall, RenderedCall
from services.common.messages.lazy_request import LazyRequest
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.inference.attempt import Attempt
from services.inference.fallback.attempts import AttemptOptions
from services.inference.offload import offload
from services.inference.plans.plan import Plan, Step
from services.inference.run.attempt_factory import RequestAttempts
from services.inference.run.engine import Engine


async def render(engine: Engine, sent: GenerateRequest | LazyRequest) -> RenderedCall:
    """Return what the first model of a request's plan is to be sent.

    Raises:
        GatewayError: unsupported, the gateway has to run the request; else as `Engine.answer`.
    """
    with engine.charge() as charge:
        _, prepared = await engine.prepare_deferred(sent, charge, _first)
        [step] = prepared.plan.steps
        attempts, provider = prepared.attempts, step.target.provider
        if provider not in engine.routes.batches or attempts.may_convert(step):
            raise not_deferred()
        attempt = await offload(_attempt, attempts, step)
        attempt.defer(DeferredCall())
        try:
            await attempt.provider.whole(attempt.call)
        except CallRenderedError as call:
            if not engine.routes.batches[provider].takes(call.path, call.headers):
                raise not_deferred() from None
            return RenderedCall(provider, step.target.upstream, call.path, call.headers, call.body)
        raise not_deferred()


async def read_answer(
    engine: Engine, sent: GenerateRequest | LazyRequest, deferred: DeferredCall
) -> GenerateResponse | PassthroughAnswer:
    """Return the answer to a rendered request.

    Raises:
        GatewayError: unsupported, the settings do not have the model any more; else as
            `Engine.answer`.
    """
    with engine.charge() as charge:
        choose = partial(_step_of, deferred)
        request, prepared = await engine.prepare_deferred(sent, charge, choose)
        attempts = prepared.attempts
        meter = engine.metering.begin(request, attempts.input_tokens, is_batch=True)
        runner = engine.runner(prepared.plan, attempts, whole=True, on_end=meter.end)
        runner.deferred = deferred
        return await runner.answer()


def not_deferred() -> GatewayError:
    """Return the error for a request that the gateway has to run by itself."""
    return unsupported("", "no batch service runs this request")


def _attempt(attempts: RequestAttempts, step: Step) -> Attempt:
    options = AttemptOptions(stream=False, refused_fields=attempts.refused(step))
    return attempts.attempt(step, options)[0]


def _first(plan: Plan) -> Plan:
    return _alone(plan, plan.steps[0])


def _step_of(deferred: DeferredCall, plan: Plan) -> Plan:
    """Return a plan with the model alone that has answered."""
    for step in plan.places():
        if (step.key.provider, step.key.model) == (deferred.provider, deferred.model):
            return _alone(plan, step)
    raise not_deferred()


def _alone(plan: Plan, step: Step) -> Plan:
    """Return a plan with a single step, which counts for no limit of its deployment."""
    step = replace(step, target=replace(step.target, limits=None), deployments=())
    return plan._replace(steps=(step,), hedge_after_s=0.0, is_balanced=False)
