"""Builds the request log of a process from settings."""

import grpc
from prometheus_client import CollectorRegistry

from services.common.clock import Clock
from services.common.process.telemetry.spans import Telemetry
from services.common.settings import Settings
from services.request_log.bodies import RenderBodies
from services.request_log.client import RequestLogClient
from services.request_log.exporters.assembly import open_exporters
from services.request_log.exporters.base import RenderEntry
from services.request_log.metrics import RequestLogMetrics
from services.request_log.recorder import RequestRecorder


def open_request_log(
    settings: Settings,
    clock: Clock,
    counters: CollectorRegistry,
    channel: grpc.aio.Channel,
    credential: bytes,
    render: RenderBodies,
    render_entry: RenderEntry,
    telemetry: Telemetry | None,
) -> RequestRecorder:
    """Return the request log, which writes nothing before its `start`.

    Args:
        settings: all settings of the gateway.
        clock: the clock.
        counters: the registry of its metrics.
        channel: the channel to the service that stores entries.
        credential: the gateway's own credential.
        render: renders the bodies of requests and responses.
        render_entry: returns the JSON object of an entry, for exporters.
        telemetry: sends logs to a collector; None without a collector.
    """
    metrics = RequestLogMetrics(counters)
    return RequestRecorder(
        settings.request_log,
        settings.usage,
        clock,
        RequestLogClient(channel, credential).send,
        metrics,
        render,
        open_exporters(settings, clock, metrics, render_entry, telemetry),
    )
