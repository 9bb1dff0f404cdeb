"""Conversion of messages to the records of the audit log. Pure."""

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message

from gateway.accounts.v1 import accounts_pb2, sessions_pb2
from gateway.accounts.v1.accounts_pb2 import Plan
from gateway.accounts.v1.sessions_pb2 import Role
from services.accounts.admin.audit import Record
from services.accounts.plans import PLANS
from services.common.errors import invalid
from services.common.grpc.roles import ROLES

_NAMES = {number: name for name, number in PLANS.items()}


def to_record(message: Message) -> Record:
    """Return the set fields of a message, with enum values as names in lower case."""
    return {
        field.name: _enum_name(field.enum_type, value) if field.enum_type else value
        for field, value in message.ListFields()
    }


def plan_name_of(plan: Plan.ValueType) -> str | None:
    """Return the name of a plan, None for PLAN_UNSPECIFIED, or "" for an unknown number."""
    return None if plan == accounts_pb2.PLAN_UNSPECIFIED else _NAMES.get(plan, "")


def role_number(name: str) -> Role.ValueType:
    """Return the value of a role; unspecified for ""."""
    return sessions_pb2.ROLE_UNSPECIFIED if not name else Role.Value(f"ROLE_{name.upper()}")


def role_name(role: Role.ValueType) -> str:
    """Return the name of a role, or "" for ROLE_UNSPECIFIED.

    Raises:
        GatewayError: invalid_request, when there is no such role.
    """
    if role == sessions_pb2.ROLE_UNSPECIFIED:
        return ""
    name = Role.DESCRIPTOR.values_by_number.get(role)
    if name is None:
        raise invalid("role", f"role: must be one of {', '.join(ROLES)}")
    return _enum_name(Role.DESCRIPTOR, role)


def _enum_name(kind: EnumDescriptor, number: int) -> str:
    """Return the name of a value without its enum's prefix: `team_pro` for PLAN_TEAM_PRO."""
    zero = kind.values_by_number[0].name
    prefix = zero.removesuffix("UNSPECIFIED")
    return kind.values_by_number[number].name.removeprefix(prefix).lower()
