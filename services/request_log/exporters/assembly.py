"""Builds the exporters of the request log from settings."""

from collections.abc import Iterator
from pathlib import Path

from yarl import URL

from services.common.clock import Clock
from services.common.http import Client
from services.common.process.telemetry.spans import Telemetry
from services.common.settings import Settings
from services.common.storage.byte_store import Bucket
from services.request_log.exporters.base import Exporter, RenderEntry
from services.request_log.exporters.bucket import BucketExporter
from services.request_log.exporters.otlp_logs import OtlpExporter
from services.request_log.exporters.queue import ExportQueue, QueueLimits
from services.request_log.exporters.rotated_file import FileExporter
from services.request_log.exporters.webhook import WebhookExporter
from services.request_log.metrics import RequestLogMetrics

# An object of a bucket takes a minute's entries, up to so many or so many bytes.
_OBJECT_ENTRIES, _OBJECT_BYTES, _OBJECT_WAIT_S = 5_000, 8 << 20, 60.0
# Bytes of an answer of a webhook.
_MAX_ANSWER = 1 << 20


def open_exporters(
    settings: Settings,
    clock: Clock,
    metrics: RequestLogMetrics,
    render: RenderEntry,
    telemetry: Telemetry | None,
) -> list[ExportQueue]:
    """Return the queues of all exporters that are configured."""
    log = settings.request_log
    queues = []
    for exporter in _exporters(settings, clock, render, telemetry):
        limits = QueueLimits(log.max_pending_entries, log.max_pending_bytes)
        if isinstance(exporter, BucketExporter):
            limits = limits._replace(
                batch_entries=min(_OBJECT_ENTRIES, log.max_pending_entries),
                batch_size=min(_OBJECT_BYTES, log.max_pending_bytes),
                wait_s=_OBJECT_WAIT_S,
            )
        queues.append(ExportQueue(exporter, limits, metrics))
    return queues


def _exporters(
    settings: Settings, clock: Clock, render: RenderEntry, telemetry: Telemetry | None
) -> Iterator[Exporter]:
    log = settings.request_log
    if log.json_lines.bucket:
        name, prefix = log.json_lines.bucket
        size = log.json_lines.max_bytes * log.json_lines.max_files
        yield BucketExporter(Bucket(name, prefix), size, render)
    elif log.json_lines.path:
        files = log.json_lines
        yield FileExporter(Path(files.path), files.max_bytes, files.max_files, render)
    if log.webhook.url:
        client = Client(
            settings.limits.connect_timeout_s,
            monotonic=clock.monotonic,
            max_answer_bytes=_MAX_ANSWER,
        )
        yield WebhookExporter(client, URL(log.webhook.url), log.webhook.authorization_value())
    if log.otlp and telemetry is not None:
        yield OtlpExporter(telemetry)
