"""Exports of the request log, and entries of gRPC callers, on a whole gateway."""

import json
from pathlib import Path
from typing import Any

import grpc
from aiohttp import web

from gateway.conversation.v1.conversation_pb2 import ROLE_USER, Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest, GetModelRequest
from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import open_channel
from tests.facade.collector import Collector, attributes
from tests.facade.test_request_log import LOG, SECTIONS, ask, logged
from tests.gateway_in_process import running_gateway, serving
from tests.waiting import until

AUTHORIZATION = "Basic cGs6c2s="
SECRET = "sk-" + "a" * 20


class Langfuse:
    """What a webhook was sent."""

    def __init__(self) -> None:
        self.app = web.Application(client_max_size=4 << 20)
        self.app.router.add_post("/api/public/ingestion", self._ingest)
        self.events: list[Any] = []

    async def _ingest(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == AUTHORIZATION
        batch = (await request.json())["batch"]
        self.events += batch
        successes = [{"id": event["id"], "status": 201} for event in batch]
        return web.json_response({"successes": successes, "errors": []}, status=207)


async def test_entries_reach_files_webhook_and_collector(tmp_path: Path) -> None:
    langfuse, collector = Langfuse(), Collector()
    lines = tmp_path / "exported" / "requests.jsonl"
    async with serving(langfuse.app) as webhook, serving(collector.app) as otlp:
        exports = {
            "bodies": True,
            "otlp": True,
            "json_lines": {"path": str(lines)},
            "webhook": {
                "url": f"{webhook}/api/public/ingestion",
                "authorization": AUTHORIZATION,
            },
        }
        async with running_gateway(
            tmp_path,
            request_log={**LOG, **exports},
            telemetry={"otlp_endpoint": otlp},
            **SECTIONS,
        ) as gateway:
            message = [{"role": "user", "content": f"My key is {SECRET}"}]
            await ask(gateway, "exported", messages=message)
            [entry] = await logged(gateway, 1, request_id="exported")
            await until(lambda: bool(langfuse.events and collector.logs))
        [line] = map(json.loads, lines.read_text().splitlines())
        [span] = [one for one in collector.spans if one.name == entry["endpoint"]]
        [record] = collector.logs

    assert line["headers"]["x-gateway-model"] == "a"
    assert {**line, "request_body": None} == entry | {
        **{name: line[name] for name in ("failed_attempts", "headers")},
        "request_body": None,
        "response_body": line["response_body"],
        "trace_id": span.trace_id.hex(),
    }
    assert "My key is [redacted]" in line["request_body"]["content"]
    _, generation = langfuse.events
    assert generation["body"]["model"] == "a" and generation["body"]["costDetails"] == {
        "total": 0.001
    }
    assert "My key is [redacted]" in generation["body"]["input"]["messages"][0]["content"]
    assert (record.trace_id, record.span_id) == (span.trace_id, span.span_id)
    assert record.event_name == "gateway.request"
    assert attributes(record)["gen_ai.response.model"] == "a"
    assert "My key is [redacted]" in str(record.body)
    assert SECRET not in str([lines.read_text(), langfuse.events, record])


async def test_grpc_callers_are_logged_once(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, request_log=LOG, **SECTIONS) as gateway:
        channel = open_channel(gateway.grpc, max_message_bytes=1 << 20)
        stub = InferenceServiceStub(channel)
        message = Message(role=ROLE_USER, blocks=[Block(text="Hi")])
        for request_id, model in (("whole", "a"), ("failed", "broken")):
            request = GenerateRequest(model=model, messages=[message], max_tokens=9)
            metadata = call_metadata(gateway.key, request_id)
            try:
                await stub.Generate(request, metadata=metadata)
            except grpc.aio.AioRpcError:
                assert model == "broken"
            call = stub.StreamGenerate(request, metadata=call_metadata(gateway.key, ""))
            try:
                async for _ in call:
                    pass
            except grpc.aio.AioRpcError:
                assert model == "broken"
        metadata = call_metadata(gateway.key, "model")
        await stub.GetModel(GetModelRequest(name="a"), metadata=metadata)
        await ask(gateway, "http")
        entries = await logged(gateway, 6)
        await channel.close()
    assert len(entries) == 6
    by_id = {entry["request_id"]: entry for entry in entries}
    whole, failed = by_id["whole"], by_id["failed"]
    assert whole["endpoint"] == "POST /gateway.inference.v1.InferenceService/Generate"
    assert (whole["status"], whole["model"], whole["cost"]) == (200, "a", "0.001")
    assert whole["user_id"] == by_id["http"]["user_id"]
    assert failed["status"] >= 500 and failed["error_code"]
    [streamed] = [entry for entry in entries if entry["first_content_ms"] is not None]
    assert streamed["endpoint"].endswith("/StreamGenerate") and streamed["cost"] == "0.001"
    assert by_id["model"]["status"] == 200 and by_id["model"]["cost"] is None
