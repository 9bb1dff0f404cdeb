"""Orders the deployments of each step of a plan."""

from collections.abc import Sequence

from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.grpc.authentication import caller
from services.common.messages.lazy_request import LazyRequest
from services.inference.balancing.affinity import affinity_of
from services.inference.balancing.choice import STICKY_SLACK, draw, ordered
from services.inference.balancing.deployment_limits import DeploymentLimits
from services.inference.balancing.loads import Loads, load_class
from services.inference.circuit_breaker import CircuitBreakers, Uniform
from services.inference.plans.plan import Plan, Step
from services.inference.plans.policy import Retries
from services.inference.providers.base import Deployments, Target

# The wait for a deployment whose breaker is open: longer than any cooldown.
_OPEN_S = 1e9


class Balancer:
    """Chooses deployments in one process.

    Args:
        loads: loads and cooldowns of deployments.
        limits: the operator's limits on deployments.
        breakers: the circuit breakers of deployments.
        uniform: random source for choices.

    Attributes:
        loads, limits: as the arguments.
    """

    def __init__(
        self,
        loads: Loads,
        limits: DeploymentLimits,
        breakers: CircuitBreakers,
        uniform: Uniform,
    ) -> None:
        self.loads = loads
        self.limits = limits
        self._breakers = breakers
        self._uniform = uniform

    def expand_deployments(
        self,
        plan: Plan,
        request: GenerateRequest,
        *,
        whole: bool,
        lazy: LazyRequest | None = None,
    ) -> Plan:
        """Return a plan with a step for each deployment of its models, in the order to call them.

        With fallback mode `disabled` only the first deployment is kept.

        Args:
            plan: a plan that is balanced: a model has several deployments.
            request: the request of the current task's caller.
            whole: whether the answer is whole or a stream.
            lazy: the lazy request; None if the request is complete.
        """
        size = request.ByteSize() if lazy is None else lazy.ByteSize()
        kind = load_class(size, whole=whole)
        affinity = b""
        steps: list[Step] = []
        for step in plan.steps:
            deployments = step.target.deployments
            if not step.deployments or deployments is None:
                steps.append(step)
                continue
            if deployments.is_sticky and not affinity and (lazy is not None or request.messages):
                affinity = affinity_of(_user_id(), request, lazy)
            order = self._order(step.deployments, deployments, affinity, kind)
            if request.fallback == inference_pb2.FALLBACK_MODE_DISABLED:
                del order[1:]
            steps += [step.deployments[index] for index in order]
        return plan._replace(steps=tuple(steps), load_class=kind)

    def choose(self, target: Target) -> Target:
        """Return a deployment of a model, for a call without a plan."""
        if target.deployments is None:
            return target
        steps = [Step("", deployment, 0.0, Retries()) for deployment in target.deployments.targets]
        order = self._order(steps, target.deployments, b"", 0)
        return target.deployments.targets[order[0]]

    def is_free(self, step: Step) -> bool:
        """Return whether a deployment may be called now."""
        return self._wait_s(step) == 0

    def first_free(self, steps: Sequence[Step]) -> tuple[int, float]:
        """Return the index of the deployment that is free first, and the seconds until then.

        An open circuit breaker does not count.
        """
        waits = [self._wait_s(step) for step in steps]
        best = min(range(len(steps)), key=waits.__getitem__)
        return best, self._cooldown_s(steps[best])

    def _order(
        self,
        steps: Sequence[Step],
        deployments: Deployments,
        affinity: bytes,
        kind: int,
    ) -> list[int]:
        keys = [step.key for step in steps]
        weights = deployments.weights
        is_sticky = bool(affinity) and deployments.is_sticky
        if is_sticky:
            draws = [draw(affinity, str(key)) for key in keys]
        else:
            draws = [self._uniform(0.0, 1.0) for _ in keys]
        loads: list[float] | None = None
        if deployments.balance == "least_busy":
            loads = [
                self.loads.load_by_calls(key, weight)
                for key, weight in zip(keys, weights, strict=True)
            ]
        elif deployments.balance == "fastest":
            loads = self.loads.estimated_latencies(keys, kind)
        waits = [self._wait_s(step) for step in steps]
        for step in steps:
            self.limits.count_reached(step.target)
        return ordered(draws, weights, waits, loads, STICKY_SLACK if is_sticky else 1.0)

    def _wait_s(self, step: Step) -> float:
        if not self._breakers.admits(step.key):
            return _OPEN_S
        return self._cooldown_s(step)

    def _cooldown_s(self, step: Step) -> float:
        return max(self.loads.wait_s(step.key), self.limits.wait_s(step.target))


def _user_id() -> str:
    """Return the id of the current task's user, or ""."""
    identity = caller.get(None)
    return "" if identity is None else identity.user_id
