"""Settings of the gateway: a TOML file, and a few environment variables that override it.

`load` reads both; an unknown key or an invalid value raises `SettingsError`, which names the key.
`services.common.settings_example` documents every key.
"""

from services.common.settings.base import Name, SettingsError
from services.common.settings.effective_providers import (
    SANDBOX,
    effective_providers,
    from_environment,
    sandbox_remedy,
)
from services.common.settings.loading import (
    CONFIG_VARIABLE,
    DEFAULT_FILE,
    ENVIRONMENT,
    Settings,
    load,
    parse,
)
from services.common.settings.providers import (
    WILDCARD,
    Balance,
    Deployment,
    Input,
    Model,
    Price,
    Provider,
)
from services.common.settings.proxy import Envoy
from services.common.settings.sections import (
    MAX_FILE_LIFETIME_S,
    Adaptation,
    Admin,
    ArticleDocuments,
    ArticleQuota,
    Articles,
    Discovery,
    Grpc,
    Limits,
    Memory,
    MemoryQuota,
    MemoryStorage,
    PlanLimits,
    ResponseCache,
    Roles,
    Sandbox,
    Server,
    Storage,
    StorageLimits,
    Telemetry,
    Usage,
)
from services.common.settings.tools import Tools, WebSearch

__all__ = [
    "CONFIG_VARIABLE",
    "DEFAULT_FILE",
    "ENVIRONMENT",
    "MAX_FILE_LIFETIME_S",
    "SANDBOX",
    "WILDCARD",
    "Adaptation",
    "Admin",
    "ArticleDocuments",
    "ArticleQuota",
    "Articles",
    "Balance",
    "Deployment",
    "Discovery",
    "Envoy",
    "Grpc",
    "Input",
    "Limits",
    "Memory",
    "MemoryQuota",
    "MemoryStorage",
    "Model",
    "Name",
    "PlanLimits",
    "Price",
    "Provider",
    "ResponseCache",
    "Roles",
    "Sandbox",
    "Server",
    "Settings",
    "SettingsError",
    "Storage",
    "StorageLimits",
    "Telemetry",
    "Tools",
    "Usage",
    "WebSearch",
    "effective_providers",
    "from_environment",
    "load",
    "parse",
    "sandbox_remedy",
]
