"""Secrets in files, which `…_file` settings and `…_FILE` environment variables name.

Docker and Kubernetes mount secrets as files. The files are read whenever the settings are, so that
SIGHUP applies a new key.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.common.key_format import looks_like_key
from services.common.settings.base import SettingsError
from services.common.settings.presets import PRESETS

# Suffix of the names of settings and of variables whose value is the path of a file with a secret.
_SUFFIX = "_file"
_VARIABLE_SUFFIX = "_FILE"
_MAX_BYTES = 64 << 10


def with_secrets(
    content: Mapping[str, Any], environ: Mapping[str, str], source: str
) -> dict[str, Any]:
    """Return settings with the secrets of files added beside the names of the files.

    `NAME_FILE` in the environment replaces a variable NAME with a provider's key.

    Args:
        content: tables of a settings file, not validated yet.
        environ: the environment.
        source: origin of the settings, for error messages.

    Raises:
        SettingsError: a file cannot be read, is empty, too long or not text, or a secret is given
            twice.
    """
    completed = copy.deepcopy(dict(content))
    providers = completed.setdefault("providers", {})
    if isinstance(providers, dict):
        for name, section in providers.items():
            if isinstance(section, dict):
                _add_file_of_variable(name, section, environ)
                _read(section, "api_key", f"{source}: providers.{name}.")
        if _is_discovering(completed):
            providers |= _discovered(providers, environ)
    tools = completed.get("tools")
    search = tools.get("web_search") if isinstance(tools, dict) else None
    if isinstance(search, dict):
        _read(search, "api_key", f"{source}: tools.web_search.")
    request_log = completed.get("request_log")
    webhook = request_log.get("webhook") if isinstance(request_log, dict) else None
    if isinstance(webhook, dict):
        _read(webhook, "authorization", f"{source}: request_log.webhook.")
    console = completed.get("console")
    oidc = console.get("oidc") if isinstance(console, dict) else None
    if isinstance(oidc, dict):
        _read(oidc, "client_secret", f"{source}: console.oidc.")
    if isinstance(stored := completed.get("stored_providers"), dict):
        _read(stored, "encryption_keys", f"{source}: stored_providers.")
    if isinstance(budgets := completed.get("budgets"), dict):
        _read(budgets, "webhook_secret", f"{source}: budgets.")
    if isinstance(storage := completed.get("storage"), dict):
        _read(storage, "database_url", f"{source}: storage.")
        _read(storage, "reports_url", f"{source}: storage.")
    return completed


def _is_discovering(content: Mapping[str, Any]) -> bool:
    discovery = content.get("discovery")
    return not isinstance(discovery, dict) or discovery.get("enabled", True) is not False


def _add_file_of_variable(name: str, section: dict[str, Any], environ: Mapping[str, str]) -> None:
    """Add the file that `…_FILE` names, in place of the section's key variable."""
    if "api_key" in section or "api_key" + _SUFFIX in section:
        return
    preset = PRESETS.get(name)
    variable = section.get("api_key_env") or (preset.key_variable if preset else "")
    if file := _file_of(variable, environ):
        section["api_key" + _SUFFIX] = file


def _discovered(taken: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return sections of preset providers whose key is in a file that the environment names."""
    sections = {}
    for name, preset in PRESETS.items():
        if name not in taken and (file := _file_of(preset.key_variable, environ)):
            if url := preset.address(environ):
                section = {"kind": preset.kind, "base_url": url, "api_key" + _SUFFIX: file}
                _read(section, "api_key", f"{preset.key_variable}{_VARIABLE_SUFFIX}: ")
                sections[name] = section
    return sections


def _file_of(variable: str, environ: Mapping[str, str]) -> str:
    if not variable or environ.get(variable):
        return ""
    return environ.get(variable + _VARIABLE_SUFFIX, "")


def _read(section: dict[str, Any], name: str, place: str) -> None:
    """Read a secret into a section, if the section names a file for it."""
    key = f"{place}{name}{_SUFFIX}"
    file = section.get(name + _SUFFIX)
    if not file or not isinstance(file, str):
        return
    if section.get(name):
        raise SettingsError(f"{key}: cannot be combined with {name}; remove one of them")
    try:
        with Path(file).open("rb") as secret_file:
            content = secret_file.read(_MAX_BYTES + 1)
        secret = content.decode().strip()
    except OSError as error:
        if looks_like_key(file):
            raise SettingsError(
                f"{key}: must be the path of a file, and looks like a key; use {name} for a key "
                "itself"
            ) from None
        raise SettingsError(f"{key}: {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{key}: {file}: is not UTF-8 text") from error
    if not secret or len(content) > _MAX_BYTES:
        raise SettingsError(f"{key}: {file}: {'is too long' if secret else 'is empty'}")
    section[name] = secret
