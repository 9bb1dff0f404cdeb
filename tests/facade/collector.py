"""An OpenTelemetry collector: OTLP over HTTP, read with OpenTelemetry's own protos."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """Holds what it was sent.

    Attributes:
        app: to be served.
        spans: all spans, as they came.
        logs: all log records, as they came.
        points: histogram points by the metric's name.
        sums: the numbers of counters by the metric's name.
        resources: attributes of each sender.
        headers: those of the last request with spans.
        schema_urls: schemas that senders and instruments name.
    """

    def __init__(self) -> None:
        self.app = web.Application()
        self.app.router.add_post("/v1/traces", self._traces)
        self.app.router.add_post("/v1/metrics", self._metrics)
        self.app.router.add_post("/v1/logs", self._logs)
        self.spans: list[Span] = []
        self.logs: list[LogRecord] = []
        self.points: dict[str, list[Any]] = {}
        self.sums: dict[str, list[int]] = {}
        self.resources: list[dict[str, Any]] = []
        self.headers: Mapping[str, str] = {}
        self.schema_urls: set[str] = set()

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    async def _traces(self, request: web.Request) -> web.Response:
        self.headers = request.headers
        sent = ExportTraceServiceRequest.FromString(await _body(request))
        for resource in sent.resource_spans:
            self.resources.append(attributes(resource.resource))
            self.schema_urls.add(resource.schema_url)
            for scope in resource.scope_spans:
                self.schema_urls.add(scope.schema_url)
                self.spans += scope.spans
        return _answer(ExportTraceServiceResponse())

    async def _logs(self, request: web.Request) -> web.Response:
        sent = ExportLogsServiceRequest.FromString(await _body(request))
        for resource in sent.resource_logs:
            self.schema_urls.add(resource.schema_url)
            for scope in resource.scope_logs:
                self.schema_urls.add(scope.schema_url)
                self.logs += scope.log_records
        return _answer(ExportLogsServiceResponse())

    async def _metrics(self, request: web.Request) -> web.Response:
        sent = ExportMetricsServiceRequest.FromString(await _body(request))
        for resource in sent.resource_metrics:
            self.schema_urls.add(resource.schema_url)
            for scope in resource.scope_metrics:
                self.schema_urls.add(scope.schema_url)
                for metric in scope.metrics:
                    if metric.HasField("sum"):
                        numbers = [point.as_int for point in metric.sum.data_points]
                        self.sums.setdefault(metric.name, []).extend(numbers)
                    else:
                        points = metric.histogram.data_points
                        self.points.setdefault(metric.name, []).extend(points)
        return _answer(ExportMetricsServiceResponse())


async def _body(request: web.Request) -> bytes:
    assert request.content_type == "application/x-protobuf"
    return await request.read()  # aiohttp has unpacked it


def _answer(message: Any) -> web.Response:
    return web.Response(body=message.SerializeToString(), content_type="application/x-protobuf")


def attributes(holder: Any) -> dict[str, Any]:
    """Return the attributes of a span, a point or a resource."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in holder.attributes}
