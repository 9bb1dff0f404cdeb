"""The routing tables: models, providers, roles and web tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.common.settings import Roles
from services.inference.providers.base import Provider
from services.inference.routing import Models
from services.inference.tools.running import WebTools


@dataclass(frozen=True, slots=True)
class Routes:
    """The routing tables, replaced as a whole when settings are reloaded.

    Attributes:
        models: the models that callers can name.
        providers: the providers by name.
        roles: models of internal tasks.
        web: the web tools, or None.
    """

    models: Models
    providers: Mapping[str, Provider]
    roles: Roles = field(default_factory=Roles)
    web: WebTools | None = None
