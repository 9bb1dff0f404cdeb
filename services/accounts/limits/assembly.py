"""Builds the notifications about budgets of a process from settings."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.limits.notifications import BudgetNotifier
from services.accounts.limits.soft_limits import SoftLimits
from services.accounts.limits.webhook import Webhook
from services.common.clock import Clock
from services.common.settings import Settings


class BudgetNotifications:
    """Soft limits of budgets in one process, and the webhook that is told about them.

    Args:
        settings: the settings.
        database: the database.
        clock: the clock.
        new_registry: returns a new registry of metrics.

    Attributes:
        soft_limits: records reached soft limits.

    Raises:
        SettingsError: the webhook has no secret, or a malformed one.
    """

    def __init__(
        self,
        settings: Settings,
        database: AsyncEngine,
        clock: Clock,
        new_registry: Callable[[], CollectorRegistry],
    ) -> None:
        self._clock = clock
        self.soft_limits = SoftLimits(clock, new_registry())
        self._notifier = BudgetNotifier(
            database, clock, None, self.soft_limits.has_new, new_registry()
        )
        self.reload(settings)

    def start(self) -> None:
        """Deliver notifications in the background until `stop`."""
        self._notifier.start()

    def reload(self, settings: Settings) -> None:
        """Apply the webhook of reloaded settings.

        Raises:
            SettingsError: the webhook has no secret, or a malformed one; the current one stays.
        """
        webhook = Webhook(settings, self._clock) if settings.budgets.webhook_url else None
        self.soft_limits.notifies = webhook is not None
        self._notifier.use(webhook)

    async def stop(self) -> None:
        """Stop delivering."""
        await self._notifier.stop()
