"""Runs all checks."""

import asyncio
import os
from collections.abc import Mapping, Sequence

from services.common.settings import Settings
from services.doctor import machine, operations, providers, storage
from services.doctor.findings import Finding, ok, warning
from services.inference import diagnostics


async def examine(settings: Settings, environ: Mapping[str, str] = os.environ) -> Sequence[Finding]:
    """Run all checks; those that wait for I/O run concurrently."""
    (database_findings, ahead_s), blobs, answers, telemetry = await asyncio.gather(
        storage.database(settings.storage),
        storage.blobs(settings.storage),
        providers.ask_all(settings, environ),
        operations.telemetry(settings.telemetry, environ),
    )
    compared = {
        answer.finding.check: answer.ahead_s for answer in answers if answer.ahead_s is not None
    }
    if ahead_s is not None:
        compared["the database"] = ahead_s
    return [
        *_settings(settings, environ),
        *machine.disk(settings.storage),
        *database_findings,
        blobs,
        *(answer.finding for answer in answers),
        operations.admin_key(settings.admin, environ),
        operations.budget_webhook(settings.budgets, environ),
        operations.limits(settings.limits),
        operations.usage(settings),
        telemetry,
        providers.clock(compared),
        machine.descriptors(),
        machine.cores(),
        *machine.ports(settings),
        *machine.certificates(settings),
        machine.conversions(),
        *machine.extras(),
    ]


def _settings(settings: Settings, environ: Mapping[str, str]) -> Sequence[Finding]:
    problems = diagnostics.problems(settings, environ)
    # The checks of providers report their missing keys.
    messages = [message for message in problems if not message.startswith("providers.")]
    messages += diagnostics.warnings(settings, environ)
    if not messages:
        return [ok("settings", "all keys and values are valid")]
    return [warning("settings", message, "correct the settings") for message in messages]
