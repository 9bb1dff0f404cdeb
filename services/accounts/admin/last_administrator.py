"""The last administrator: a user who must not lock everybody, and so oneself, out."""

from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.accounts.admin.audit import Actor
from services.accounts.tables import SIGN_IN_PREFIX, api_keys, users
from services.common.errors import conflict
from services.common.grpc.roles import ADMIN


async def check_another_administrator(
    connection: AsyncConnection,
    actor: Actor,
    now_ms: int,
    field: str,
    *,
    without_user: str = "",
    without_key: str = "",
) -> None:
    """Raise an error if nobody could sign in as an administrator without a user or a key.

    Only authors who administer as users with the role are checked: an admin key, the command line
    and administrators by an issuer's claims stay able to correct it.

    Args:
        connection: a connection of `writing_alone`.
        actor: author of the change.
        now_ms: the time in Unix milliseconds.
        field: the field that the error names.
        without_user: id of a user who loses the role, or "".
        without_key: id of a key that becomes invalid, or "".

    Raises:
        GatewayError: conflict.
    """
    if not actor.is_admin_user:
        return
    others = (
        select(api_keys.c.id)
        .select_from(api_keys.join(users))
        .where(
            users.c.role == ADMIN,
            users.c.id != without_user,
            api_keys.c.id != without_key,
            or_(api_keys.c.for_sign_in, api_keys.c.prefix == SIGN_IN_PREFIX),
            api_keys.c.revoked_at_ms.is_(None),
            api_keys.c.disabled.is_(False),
            or_(api_keys.c.expires_at_ms.is_(None), api_keys.c.expires_at_ms > now_ms),
        )
        .limit(1)
    )
    if await connection.scalar(others) is None:
        raise conflict(
            field,
            f"{field}: nobody could sign in as an administrator afterwards; give another user the "
            "role admin first, or use an admin key",
        )
