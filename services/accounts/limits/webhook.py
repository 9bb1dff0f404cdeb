"""Requests to the webhook about budgets, signed as Standard Webhooks specifies.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import asyncio
import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Any

import orjson
from yarl import URL

from services.common.clock import Clock
from services.common.http import Client, HttpError, fields, origin_of
from services.common.limit_windows import Window
from services.common.money import decimal_dollars
from services.common.settings import Budgets, Settings, SettingsError
from services.common.text.times import utc_time

_PREFIX = "whsec_"
_MIN_KEY, _MAX_KEY = 24, 64
_MAX_ANSWER = 64 << 10


def signing_key(budgets: Budgets, environ: Mapping[str, str] = os.environ) -> bytes | None:
    """Return the key that the secret of the settings encodes; None without a webhook.

    Raises:
        SettingsError: the secret is missing or malformed.
    """
    if not budgets.webhook_url:
        return None
    secret = budgets.secret(environ)
    if not secret:
        raise SettingsError(
            f"budgets.webhook_secret_env: the variable {budgets.webhook_secret_env} is not set"
        )
    try:
        if not secret.startswith(_PREFIX):
            raise ValueError
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        if not _MIN_KEY <= len(key) <= _MAX_KEY:
            raise ValueError
    except ValueError:
        raise SettingsError(
            f"budgets.webhook_secret: must be {_PREFIX} and {_MIN_KEY} to {_MAX_KEY} bytes in "
            "base64, as `openssl rand -base64 32` prints them"
        ) from None
    return key


def signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature`."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def body_of(row: Mapping[str, Any], subject_name: str) -> bytes:
    """Return the JSON of a notification.

    Args:
        row: its row.
        subject_name: name of the key, user or team; "" if it has none.
    """
    start_ms, end_ms = row["window_start_ms"], row["window_end_ms"]
    return orjson.dumps(
        {
            "type": "budget.soft_limit_reached",
            "timestamp": utc_time(row["reached_at_ms"]),
            "data": {
                "subject_kind": row["subject_kind"],
                "subject_id": row["subject_id"],
                "subject_name": subject_name,
                "name": row["measure"].removesuffix("_pusd"),
                "limit": decimal_dollars(row["limit_pusd"]),
                "used": decimal_dollars(row["spent_pusd"]),
                "soft_limit_percent": row["soft_limit_percent"],
                "starts_at": utc_time(start_ms),
                "resets_at": utc_time(end_ms) if Window(start_ms, end_ms).has_end else None,
            },
        }
    )


class Webhook:
    """Sends notifications to the address of the settings.

    Args:
        settings: the settings, with `budgets.webhook_url`.
        clock: the clock.

    Raises:
        SettingsError: the secret is missing or malformed.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        budgets = settings.budgets
        self._url = URL(budgets.webhook_url)
        key = signing_key(budgets)
        assert key is not None, "there is no webhook"
        self._key = key
        self._timeout_s = budgets.webhook_timeout_s
        self._clock = clock
        self._client = Client(settings.limits.connect_timeout_s, max_answer_bytes=_MAX_ANSWER)

    async def send(self, message_id: str, body: bytes) -> str:
        """Send a notification; return "" if it was accepted, else why not."""
        timestamp = self._clock.now_ms() // 1000
        headers = fields(
            [
                ("content-type", "application/json"),
                ("user-agent", "sluicegate"),
                ("webhook-id", message_id),
                ("webhook-timestamp", str(timestamp)),
                ("webhook-signature", signature(self._key, message_id, timestamp, body)),
            ]
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                origin, target = origin_of(self._url), self._url.raw_path_qs
                response = await self._client.send(origin, "POST", target, headers, body)
                response.body.release()
        except (HttpError, TimeoutError, OSError) as error:
            return f"{type(error).__name__}: {error}"
        return "" if 200 <= response.status < 300 else f"status {response.status}"

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
