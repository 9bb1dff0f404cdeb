"""How many memories a user may have (contract, Limits)."""

from gateway.accounts.v1 import accounts_pb2
from gateway.accounts.v1.accounts_pb2 import Plan
from services.common.settings import MemoryQuota


def quota_of(plan: Plan.ValueType, quota: MemoryQuota) -> int:
    """Give the most memories that a plan allows."""
    match plan:
        case accounts_pb2.PLAN_PERSONAL_PRO:
            return quota.personal_pro
        case accounts_pb2.PLAN_TEAM_PRO:
            return quota.team_pro
        case accounts_pb2.PLAN_ENTERPRISE:
            return quota.enterprise
        case _:
            return quota.personal_free
