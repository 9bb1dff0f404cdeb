"""Checks of administration, limits, usage records and telemetry."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from services.accounts.admin.admin_keys import configured_keys
from services.accounts.limits.webhook import signing_key
from services.common.process.telemetry.opening import ENDPOINT_VARIABLE, load_otlp
from services.common.settings import Admin, Budgets, Limits, Settings, SettingsError, Telemetry
from services.doctor.findings import Finding, failure, ok, warning
from services.inference.usage.journal import FOLDER, SUFFIXES

_TIMEOUT_S = 5.0
# Renewals within the duration of a slot lease: so many may fail before the lease ends.
_CALLS_A_LEASE = 3
_MIB = 1 << 20


def admin_key(settings: Admin, environ: Mapping[str, str]) -> Finding:
    """Check the admin keys of the settings."""
    try:
        keys = configured_keys(settings, environ)
    except SettingsError as error:
        advice = "set an admin key (`gateway admin-key make`), or remove the setting"
        return failure("admin key", f"{error}: the gateway will not start", advice)
    if not keys:
        return ok("admin key", "none in the settings; keys of `gateway admin-key create` are valid")
    return ok("admin key", ", ".join(keys))


def budget_webhook(settings: Budgets, environ: Mapping[str, str]) -> Finding:
    """Check the secret of the webhook about budgets."""
    try:
        has_webhook = signing_key(settings, environ) is not None
    except SettingsError as error:
        advice = "set the secret, or remove budgets.webhook_url"
        return failure("budget webhook", f"{error}: the gateway will not start", advice)
    return ok("budget webhook", "its secret is valid" if has_webhook else "none")


def limits(settings: Limits) -> Finding:
    """Check that the slots of running requests are renewed before their leases end."""
    every_s, lease_s = settings.lease_every_s, settings.slot_lease_s
    text = f"slots are leased for {lease_s:g} s and renewed every {every_s:g} s"
    if _CALLS_A_LEASE * every_s > lease_s:
        return warning(
            "limits",
            f"{text}: more than concurrent_requests requests may run at once",
            f"set limits.slot_lease_s to {_CALLS_A_LEASE * every_s:g} or more",
        )
    return ok("limits", text)


def usage(settings: Settings) -> Finding:
    """Check that the journal is writable, and that it is not filling up."""
    if not settings.usage.enabled:
        return ok(
            "usage", "not recorded (usage.enabled = false); budgets are enforced nevertheless"
        )
    folder = settings.storage.data_dir / FOLDER
    if not folder.exists():
        return ok("usage", f"{folder} will be created at the first request")
    try:
        files = [journal.stat() for journal in folder.iterdir() if journal.name.endswith(SUFFIXES)]
    except OSError as error:
        return failure("usage", f"{folder}: {error.strerror}", _writable(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        return failure("usage", f"{folder}: not writable for this user", _writable(folder))
    waiting = sum(file.st_size for file in files)
    text = f"{len(files)} files with {waiting / _MIB:.1f} MiB are pending in {folder}"
    if 2 * waiting > settings.usage.max_journal_bytes:
        return warning(
            "usage",
            f"{text}: records beyond usage.max_journal_bytes per worker are lost",
            "start the gateway, and check its log for errors of the database",
        )
    return ok("usage", text)


def _writable(folder: Path) -> str:
    return f"run as the user of the gateway, or change the owner of {folder} (chown)"


async def telemetry(settings: Telemetry, environ: Mapping[str, str]) -> Finding:
    """Check that the extra is installed, and that the collector accepts connections."""
    endpoint = settings.otlp_endpoint or environ.get(ENDPOINT_VARIABLE, "")
    if not endpoint:
        return ok("telemetry", "no collector configured")
    where = "telemetry.otlp_endpoint" if settings.otlp_endpoint else ENDPOINT_VARIABLE
    advice = f"start the collector, or correct {where}"
    try:
        load_otlp()
    except SettingsError as error:
        return failure(
            "telemetry", str(error), "install the extra, or remove the collector's address"
        )
    try:
        parts = urlsplit(endpoint)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        async with asyncio.timeout(_TIMEOUT_S):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, TimeoutError, ValueError) as error:
        words = str(error) or "no answer"
        return warning("telemetry", f"{endpoint} is not reachable: {words}", advice)
    writer.close()
    return ok("telemetry", f"{endpoint} accepts connections")
