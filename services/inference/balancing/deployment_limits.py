"""The operator's limits on calls of providers and of deployments, counted for all workers."""

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError, UpstreamError
from services.inference.allowances.admission import Admission, Permit
from services.inference.allowances.needs import Reservation
from services.inference.circuit_breaker import ModelKey
from services.inference.metrics import InferenceMetrics
from services.inference.providers.base import Target


class DeploymentLimitError(UpstreamError):
    """Error raised when the operator's limits leave no call of a deployment; none was sent.

    Another deployment or model is called instead; the call is not retried.
    """

    def __init__(self, error: GatewayError) -> None:
        super().__init__(
            errors_pb2.REASON_UPSTREAM_RATE_LIMITED,
            error.message,
            retry_after_s=error.retry_after_s,
        )


class DeploymentLimits:
    """Admits calls of deployments with limits.

    Args:
        admission: takes from the allowances of this worker; None admits all.
        metrics: counts the calls that were not sent.
    """

    def __init__(self, admission: Admission | None, metrics: InferenceMetrics) -> None:
        self._admission = admission
        self._metrics = metrics

    def wait_s(self, target: Target) -> int:
        """Return the seconds for which a limit is known to be reached; 0 if none is."""
        if target.limits is None or self._admission is None:
            return 0
        return self._admission.wait_s(target.limits)

    def count_reached(self, target: Target) -> None:
        """Count a call that goes to another deployment, if this one is known to be at a limit."""
        if self.wait_s(target):
            self._count(target)

    def _count(self, target: Target) -> None:
        self._metrics.deployment_limited(ModelKey(target.provider, target.upstream))

    async def admit(self, target: Target, tokens: int) -> Permit | None:
        """Take a call from the limits of a deployment; None if it has none.

        Args:
            target: the deployment.
            tokens: the tokens to reserve, if its limits count them.

        Returns:
            The permit, which the caller must `end`.

        Raises:
            DeploymentLimitError: a limit is reached.
            GatewayError: unavailable, the counts cannot be read.
        """
        if target.limits is None or self._admission is None:
            return None
        try:
            return await self._admission.admit(target.limits, Reservation(tokens=tokens))
        except GatewayError as error:
            if error.reason != errors_pb2.REASON_RATE_LIMITED:
                raise
            self._count(target)
            raise DeploymentLimitError(error) from None
