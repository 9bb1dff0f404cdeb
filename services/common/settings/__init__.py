"""What an operator can set: a TOML file, and a few environment variables over it.

`load` reads both; an unknown key or a wrong value raises `SettingsError`, which names it.
`services.common.settings_example` documents every key.
"""

from services.common.settings.base import Name, SettingsError
from services.common.settings.loading import (
    CONFIG_VARIABLE,
    DEFAULT_FILE,
    ENVIRONMENT,
    Settings,
    load,
    parse,
)
from services.common.settings.providers import WILDCARD, Input, Model, Price, Provider
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
    Roles,
    Server,
    Storage,
    StorageLimits,
    Usage,
)
from services.common.settings.tools import Tools, WebSearch

__all__ = [
    "CONFIG_VARIABLE",
    "DEFAULT_FILE",
    "ENVIRONMENT",
    "MAX_FILE_LIFETIME_S",
    "WILDCARD",
    "Adaptation",
    "Admin",
    "ArticleDocuments",
    "ArticleQuota",
    "Articles",
    "Discovery",
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
    "Roles",
    "Server",
    "Settings",
    "SettingsError",
    "Storage",
    "StorageLimits",
    "Tools",
    "Usage",
    "WebSearch",
    "load",
    "parse",
]
