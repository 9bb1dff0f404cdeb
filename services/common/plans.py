"""Limits that depend on a caller's plan."""

from gateway.accounts.v1 import accounts_pb2
from gateway.accounts.v1.accounts_pb2 import Plan
from services.common.settings import PlanLimits

_PREFIX = "PLAN_"


def plan_name(plan: Plan.ValueType) -> str:
    """Return the plan's name in settings and tables, such as `personal_free`.

    Work without a plan has the limits of the smallest plan.
    """
    if plan == accounts_pb2.PLAN_UNSPECIFIED:
        plan = accounts_pb2.PLAN_PERSONAL_FREE
    return Plan.Name(plan).removeprefix(_PREFIX).lower()


def limit_of(limits: PlanLimits, plan: str) -> int:
    """Return the limit of the plan with that name."""
    limit: int = getattr(limits, plan)
    return limit
