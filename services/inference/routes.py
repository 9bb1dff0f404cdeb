"""What can be reached: models, the providers behind them, and who does side jobs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.common.settings import Roles
from services.inference.providers.base import Provider
from services.inference.routing import Models
from services.inference.tools.running import WebTools


@dataclass(frozen=True, slots=True)
class Routes:
    """What can be reached: replaced as a whole when the settings are read again.

    Attributes:
        models: those that callers can name.
        providers: who has them, by name.
        roles: which of the models do the gateway's side jobs.
        web: what the gateway can do with the web; None for nothing.
    """

    models: Models
    providers: Mapping[str, Provider]
    roles: Roles = field(default_factory=Roles)
    web: WebTools | None = None
