"""Settings of the gateway: a TOML file, and a few environment variables that override it.

`load` reads both; an unknown key or an invalid value raises `SettingsError`, which names the key.
Each field documents its key: `services.common.settings_example` makes a file of them.
"""

from services.common.settings.articles import ArticleDocuments, ArticleQuota, Articles
from services.common.settings.base import Name, PlanLimits, SettingsError
from services.common.settings.budgets import Budgets
from services.common.settings.console import Console, Oidc
from services.common.settings.effective_providers import (
    SANDBOX,
    effective_providers,
    from_environment,
    sandbox_remedy,
)
from services.common.settings.environment import CONFIG_VARIABLE, ENVIRONMENT
from services.common.settings.limits import MAX_FILE_LIFETIME_S, Grpc, Limits, StorageLimits
from services.common.settings.loading import DEFAULT_FILE, Settings, load, parse
from services.common.settings.memory import Memory, MemoryQuota, MemoryStorage
from services.common.settings.providers import (
    WILDCARD,
    Balance,
    CallLimits,
    Deployment,
    Guardrail,
    Input,
    Model,
    Price,
    Provider,
)
from services.common.settings.proxy import Envoy
from services.common.settings.request_log import RequestLog
from services.common.settings.sections import (
    Adaptation,
    Admin,
    Discovery,
    ResponseCache,
    Roles,
    Sandbox,
    Server,
    Storage,
    Telemetry,
    Usage,
)
from services.common.settings.stored_providers import StoredProviders
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
    "Budgets",
    "CallLimits",
    "Console",
    "Deployment",
    "Discovery",
    "Envoy",
    "Grpc",
    "Guardrail",
    "Input",
    "Limits",
    "Memory",
    "MemoryQuota",
    "MemoryStorage",
    "Model",
    "Name",
    "Oidc",
    "PlanLimits",
    "Price",
    "Provider",
    "RequestLog",
    "ResponseCache",
    "Roles",
    "Sandbox",
    "Server",
    "Settings",
    "SettingsError",
    "Storage",
    "StorageLimits",
    "StoredProviders",
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
