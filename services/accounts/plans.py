"""Plans by the names that the `gateway` command and the tables use."""

from gateway.accounts.v1.accounts_pb2 import Plan

_PREFIX = "PLAN_"

# All plans by name: `personal_free` for PLAN_PERSONAL_FREE, and so on.
PLANS: dict[str, Plan.ValueType] = {
    name.removeprefix(_PREFIX).lower(): number for name, number in Plan.items() if number != 0
}
DEFAULT = "personal_free"
