"""The batch services of OpenAI and Anthropic: files, batches, and their results.

`gemini_batches` has that of Google.

Each request of a batch is checked like a single one. A batch is run when it is looked at for the
first time; `BatchServices` can let it wait, fail, or leave out some of its requests.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson
from aiohttp import web

from services.common.ids import IdGenerator
from services.sandbox.dialects import Body, Dialect
from services.sandbox.model import behaviours
from services.sandbox.model.models import SandboxError, find_model
from tests.upstream.checks import Check, Problem

_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# Batches of a page of Anthropic's.
_PAGE = 2
_TYPES = ("application/jsonl", "application/x-ndjson", "text/plain")


@dataclass
class StoredBatch:
    """A batch: its requests, and what became of them."""

    id: str
    endpoint: str
    requests: Sequence[tuple[str, Body]]
    created_at: int
    headers: Mapping[str, str] = field(default_factory=dict)
    input_file_id: str = ""
    metadata: Any = None
    status: str = "in_progress"
    output_file_id: str | None = None
    error_file_id: str | None = None
    results: list[dict[str, Any]] = field(default_factory=list)
    # Of Google's, whose requests have no model.
    model: str = ""


@dataclass
class BatchServices:
    """What the services do, and have done.

    Attributes:
        waits: whether batches that have been created do not end.
        refuses: the status of responses to the creation of batches; 0 if they are created.
        expires: the custom ids of requests that are not answered in time.
        batches: all batches by id.
        files: the content of all files by id.
        deleted: the ids of deleted files and batches.
    """

    waits: bool = False
    refuses: int = 0
    expires: frozenset[str] = frozenset()
    batches: dict[str, StoredBatch] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)

    def requests(self) -> list[Body]:
        """Return the bodies of all requests of all batches."""
        return [body for batch in self.batches.values() for _, body in batch.requests]


def add_batch_services(
    app: web.Application,
    services: BatchServices,
    dialects: Mapping[str, Dialect],
    check: Check,
    new_id: IdGenerator,
    now: Callable[[], float],
) -> None:
    """Add the services to an application.

    Args:
        app: the application.
        services: what they do.
        dialects: what answers requests, by their endpoint.
        check: checks the bodies that create batches of OpenAI.
        new_id: makes ids.
        now: returns Unix seconds.
    """
    openai = _OpenAI(services, dialects, check, new_id, now)
    anthropic = _Anthropic(services, dialects, _find_problem, new_id, now)
    router = app.router
    router.add_post("/v1/files", openai.handler(openai.upload))
    router.add_get("/v1/files/{id}/content", openai.handler(openai.content))
    router.add_delete("/v1/files/{id}", openai.handler(openai.delete_file))
    router.add_post("/v1/batches", openai.handler(openai.create))
    router.add_get("/v1/batches", openai.handler(openai.list))
    router.add_get("/v1/batches/{id}", openai.handler(openai.retrieve))
    router.add_post("/v1/batches/{id}/cancel", openai.handler(openai.cancel))
    path = "/v1/messages/batches"
    router.add_post(path, anthropic.handler(anthropic.create))
    router.add_get(path, anthropic.handler(anthropic.list))
    router.add_get(f"{path}/{{id}}", anthropic.handler(anthropic.retrieve))
    router.add_get(f"{path}/{{id}}/results", anthropic.handler(anthropic.results))
    router.add_post(f"{path}/{{id}}/cancel", anthropic.handler(anthropic.cancel))
    router.add_delete(f"{path}/{{id}}", anthropic.handler(anthropic.delete))


def _find_problem(body: Body) -> Problem | None:
    """Return the problem of a body that creates a batch of messages, whose params come later."""
    items = body.get("requests")
    if body.keys() != {"requests"} or not isinstance(items, list) or not items:
        return Problem(("requests",), "Requests are needed, and nothing else")
    for place, item in enumerate(items):
        if item.keys() != {"custom_id", "params"}:
            return Problem(("requests", place), "A request has an id and params")
    return None


class PlayedService:
    """A batch service."""

    # The endpoint whose dialect authenticates calls and writes errors.
    usual = ""

    def __init__(
        self,
        services: BatchServices,
        dialects: Mapping[str, Dialect],
        check: Check,
        new_id: IdGenerator,
        now: Callable[[], float],
    ) -> None:
        self.services = services
        self.dialects = dialects
        self.check = check
        self.new_id = new_id
        self.now = now

    def handler(self, handle: Callable[[web.Request], Any]) -> Callable[[web.Request], Any]:
        """Return a handler that checks the credential, and writes errors."""

        async def respond(request: web.Request) -> web.StreamResponse:
            dialect = self.dialects[self.usual]
            try:
                dialect.authenticate(request.headers)
                response: web.StreamResponse = await handle(request)
            except SandboxError as error:
                failure = dialect.failure(error, self.new_id("req_"))
                return web.json_response(failure, status=error.status)
            return response

        return respond

    async def body(self, request: web.Request) -> Any:
        """Return the body of a request that creates a batch."""
        if self.services.refuses:
            raise SandboxError("invalid", self.services.refuses, "No batches today")
        body = orjson.loads(await request.read())
        problem = self.check(body)
        if problem is not None:
            raise SandboxError("invalid", 400, problem.message, path=problem.path)
        return body

    def batch(self, request: web.Request) -> StoredBatch:
        """Return the batch that a path names."""
        batch = self.services.batches.get(request.match_info["id"])
        if batch is None:
            raise SandboxError("not_found", 404, "No such batch")
        return batch

    def answer(self, batch: StoredBatch, body: Body) -> tuple[int, Any]:
        """Return the status and the body of the response to a request."""
        dialect = self.dialects[batch.endpoint]
        try:
            accepted = dialect.accept(body, batch.headers)
            model = find_model(batch.model or accepted["model"])
            answer = behaviours.answer(dialect.read_request(accepted), model)
            return 200, dialect.whole(answer, model, accepted)
        except SandboxError as error:
            return error.status, dialect.failure(error, self.new_id("req_"))


class _OpenAI(PlayedService):
    """OpenAI's batch service."""

    usual = "/v1/chat/completions"

    async def upload(self, request: web.Request) -> web.Response:
        """Store a file."""
        form = await request.post()
        file = form.get("file")
        if form.get("purpose") != "batch" or not isinstance(file, web.FileField):
            raise SandboxError("invalid", 400, "A file of the purpose batch is needed")
        if file.content_type not in _TYPES:
            raise SandboxError("invalid", 400, "The file must be JSON lines")
        file_id = self.new_id("file-")
        self.services.files[file_id] = file.file.read()
        return web.json_response({"id": file_id, "object": "file", "purpose": "batch"})

    async def content(self, request: web.Request) -> web.Response:
        """Return the content of a file."""
        return web.Response(body=self._file(request.match_info["id"]))

    async def delete_file(self, request: web.Request) -> web.Response:
        """Delete a file."""
        file_id = request.match_info["id"]
        self._file(file_id)
        del self.services.files[file_id]
        self.services.deleted.append(file_id)
        return web.json_response({"id": file_id, "object": "file", "deleted": True})

    async def create(self, request: web.Request) -> web.Response:
        """Create a batch of the lines of a file."""
        body = await self.body(request)
        file_id = body["input_file_id"]
        lines = [orjson.loads(line) for line in self._file(file_id).splitlines()]
        if len({line["custom_id"] for line in lines}) < len(lines) or not lines:
            raise SandboxError("invalid", 400, "Each line needs an id of its own")
        if any((line["method"], line["url"]) != ("POST", body["endpoint"]) for line in lines):
            raise SandboxError("invalid", 400, "A line has another endpoint")
        if len({line["body"]["model"] for line in lines}) > 1:
            raise SandboxError("invalid", 400, "All lines must have the same model")
        batch = StoredBatch(
            self.new_id("batch_"),
            body["endpoint"],
            [(line["custom_id"], line["body"]) for line in lines],
            int(self.now()),
            input_file_id=file_id,
            metadata=body.get("metadata"),
        )
        self.services.batches[batch.id] = batch
        return web.json_response(self._shown(batch))

    async def list(self, request: web.Request) -> web.Response:
        """List batches, the newest first."""
        own = [one for one in self.services.batches.values() if one.input_file_id]
        data = [self._shown(batch) for batch in reversed(own)]
        return web.json_response({"object": "list", "data": data, "has_more": False})

    async def retrieve(self, request: web.Request) -> web.Response:
        """Return a batch, which is run now."""
        batch = self.batch(request)
        if batch.status == "in_progress" and not self.services.waits:
            self._run(batch, "completed", self.services.expires)
        return web.json_response(self._shown(batch))

    async def cancel(self, request: web.Request) -> web.Response:
        """Cancel a batch after its first request."""
        batch = self.batch(request)
        if batch.status == "in_progress":
            others = frozenset(custom_id for custom_id, _ in batch.requests[1:])
            self._run(batch, "cancelled", others)
        return web.json_response(self._shown(batch))

    def _run(self, batch: StoredBatch, status: str, left_out: frozenset[str]) -> None:
        answers: tuple[list[bytes], list[bytes]] = [], []
        # In an order of its own.
        for custom_id, body in reversed(batch.requests):
            line: dict[str, Any] = {"id": self.new_id("batch_req_"), "custom_id": custom_id}
            if custom_id in left_out:
                error = {"code": "batch_expired", "message": "Too late"}
                answers[1].append(orjson.dumps(line | {"response": None, "error": error}))
                continue
            answer_status, answer = self.answer(batch, body)
            response = {"status_code": answer_status, "request_id": "req", "body": answer}
            line |= {"response": response, "error": None}
            answers[answer_status != 200].append(orjson.dumps(line))
        batch.output_file_id, batch.error_file_id = map(self._stored, answers)
        batch.status = status

    def _stored(self, lines: Sequence[bytes]) -> str | None:
        if not lines:
            return None
        file_id = self.new_id("file-")
        self.services.files[file_id] = b"\n".join(lines) + b"\n"
        return file_id

    def _file(self, file_id: str) -> bytes:
        content = self.services.files.get(file_id)
        if content is None:
            raise SandboxError("not_found", 404, "No such file")
        return content

    def _shown(self, batch: StoredBatch) -> dict[str, Any]:
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": batch.endpoint,
            "input_file_id": batch.input_file_id,
            "completion_window": "24h",
            "status": batch.status,
            "output_file_id": batch.output_file_id,
            "error_file_id": batch.error_file_id,
            "created_at": batch.created_at,
            "metadata": batch.metadata,
        }


class _Anthropic(PlayedService):
    """Anthropic's batch service."""

    usual = "/v1/messages"

    async def create(self, request: web.Request) -> web.Response:
        """Create a batch of messages."""
        items = (await self.body(request))["requests"]
        ids = [item["custom_id"] for item in items]
        if len(set(ids)) < len(ids) or not all(map(_CUSTOM_ID.fullmatch, ids)):
            raise SandboxError("invalid", 400, "Each request needs a valid id of its own")
        batch = StoredBatch(
            self.new_id("msgbatch_"),
            self.usual,
            [(item["custom_id"], item["params"]) for item in items],
            int(self.now()),
            headers=dict(request.headers),
        )
        self.services.batches[batch.id] = batch
        return web.json_response(self._shown(batch))

    async def list(self, request: web.Request) -> web.Response:
        """List a page of batches, the newest first."""
        own = [one for one in self.services.batches.values() if one.endpoint == self.usual][::-1]
        after = request.query.get("after_id", "")
        first = 1 + [one.id for one in own].index(after) if after else 0
        page = [self._shown(batch) for batch in own[first : first + _PAGE]]
        return web.json_response({"data": page, "has_more": first + _PAGE < len(own)})

    async def retrieve(self, request: web.Request) -> web.Response:
        """Return a batch, which is run now."""
        batch = self.batch(request)
        if batch.status == "in_progress" and not self.services.waits:
            self._run(batch, "expired", self.services.expires)
        return web.json_response(self._shown(batch))

    async def results(self, request: web.Request) -> web.Response:
        """Return the results of a batch."""
        batch = self.batch(request)
        if batch.status != "ended":
            raise SandboxError("invalid", 400, "The batch has not ended")
        lines = [orjson.dumps(result) + b"\n" for result in batch.results]
        return web.Response(body=b"".join(lines), content_type="application/binary")

    async def cancel(self, request: web.Request) -> web.Response:
        """Cancel a batch after its first request."""
        batch = self.batch(request)
        if batch.status == "in_progress":
            others = frozenset(custom_id for custom_id, _ in batch.requests[1:])
            self._run(batch, "canceled", others)
        return web.json_response(self._shown(batch))

    async def delete(self, request: web.Request) -> web.Response:
        """Delete a batch that has ended."""
        batch = self.batch(request)
        if batch.status != "ended":
            raise SandboxError("invalid", 400, "The batch has not ended")
        self.services.deleted.append(batch.id)
        return web.json_response({"id": batch.id, "type": "message_batch_deleted"})

    def _run(self, batch: StoredBatch, unanswered: str, left_out: frozenset[str]) -> None:
        for custom_id, body in reversed(batch.requests):
            result: dict[str, Any] = {"type": unanswered}
            if custom_id not in left_out:
                status, answer = self.answer(batch, body)
                result = {"type": "succeeded", "message": answer}
                if status != 200:
                    result = {"type": "errored", "error": answer}
            batch.results.append({"custom_id": custom_id, "result": result})
        batch.status = "ended"

    def _shown(self, batch: StoredBatch) -> dict[str, Any]:
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": batch.status,
            "created_at": datetime.fromtimestamp(batch.created_at, UTC).isoformat(),
            "request_counts": {},
            "results_url": "https://elsewhere.invalid/results",
        }
