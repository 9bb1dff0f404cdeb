"""The webhook: what it is sent, and what becomes of its answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from services.common.http import Client, Proxies
from services.request_log.exporters.base import ExportError
from services.request_log.exporters.webhook import WebhookExporter
from tests.gateway_in_process import serving
from tests.services.request_log.exporters.exported_requests import exported


@asynccontextmanager
async def webhook(status: int, answer: Any) -> AsyncIterator[WebhookExporter]:
    async def post(request: web.Request) -> web.Response:
        assert request.query["project"] == "1"
        assert len((await request.json())["batch"]) == 4
        return web.json_response(answer, status=status)

    app = web.Application()
    app.router.add_post("/ingest", post)
    async with serving(app) as url:
        exporter = WebhookExporter(Client(5, Proxies({})), URL(f"{url}/ingest?project=1"), "")
        try:
            yield exporter
        finally:
            await exporter.close()


ERROR = {"id": "log_2-trace", "status": 400, "message": "bad"}


@pytest.mark.parametrize(
    ("status", "answer", "rejected"),
    [(200, "fine", 0), (207, {"errors": []}, 0), (207, {"errors": [ERROR]}, 1)],
)
async def test_an_answer_says_what_was_rejected(status: int, answer: Any, rejected: int) -> None:
    async with webhook(status, answer) as exporter:
        assert await exporter.send([exported(1), exported(2)]) == rejected


@pytest.mark.parametrize(
    ("status", "is_passing"), [(429, True), (503, True), (301, False), (401, False), (413, False)]
)
async def test_only_passing_failures_are_tried_again(status: int, is_passing: bool) -> None:
    async with webhook(status, {}) as exporter:
        with pytest.raises(ExportError, match=str(status)) as raised:
            await exporter.send([exported(1), exported(2)])
    assert raised.value.is_passing is is_passing


async def test_an_unreachable_webhook_is_tried_again() -> None:
    exporter = WebhookExporter(Client(5, Proxies({})), URL("http://127.0.0.1:1/"), "")
    with pytest.raises(ExportError) as raised:
        await exporter.send([exported()])
    assert raised.value.is_passing
    await exporter.close()
