"""The sweeper that removes invitations some days after their end."""

from services.accounts.invitations.administration import InvitationAdministration
from services.common.storage.leases import Lease
from services.common.storage.sweeping import Renew, Sweeper, remove_in_batches

_AT_ONCE = 500


def invitation_sweeper(
    invitations: InvitationAdministration, lease: Lease, every_s: float
) -> Sweeper:
    """Return the sweeper."""

    async def remove(renew: Renew) -> None:
        await remove_in_batches(invitations.remove_ended, _AT_ONCE, renew)

    return Sweeper(lease, every_s, remove)
