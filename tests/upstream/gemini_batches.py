"""The batch service of Google's Gemini API: requests and answers are part of the batch."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from services.common.ids import IdGenerator
from services.sandbox.dialects import Dialect
from services.sandbox.model.models import find_model
from tests.upstream.batch_services import BatchServices, PlayedService, StoredBatch
from tests.upstream.checks import Problem

GENERATE = "generateContent"
_PAGE = 2


def add_gemini_batches(
    app: web.Application,
    services: BatchServices,
    dialect: Dialect,
    new_id: IdGenerator,
    now: Callable[[], float],
) -> None:
    """Add the service to an application; `dialect` answers the requests of batches."""
    gemini = _Gemini(services, {GENERATE: dialect}, _find_problem, new_id, now)
    router = app.router
    path = "/v1beta/batches"
    model = "/v1beta/models/{model:[^:/]+}"
    router.add_post(f"{model}:batchGenerateContent", gemini.handler(gemini.create))
    router.add_get(path, gemini.handler(gemini.list))
    router.add_get(f"{path}/{{id}}", gemini.handler(gemini.retrieve))
    router.add_post(f"{path}/{{id}}:cancel", gemini.handler(gemini.cancel))
    router.add_delete(f"{path}/{{id}}", gemini.handler(gemini.delete))


def _find_problem(body: Any) -> Problem | None:
    """Return the problem of a body that creates a batch; its requests are checked later."""
    batch = body.get("batch")
    if body.keys() != {"batch"} or not isinstance(batch, dict):
        return Problem(("batch",), "Unknown name")
    if not batch.keys() <= {"displayName", "inputConfig", "priority"}:
        return Problem(("batch",), "Unknown name")
    requests = batch.get("inputConfig", {}).get("requests", {}).get("requests")
    if not isinstance(requests, list) or not requests:
        return Problem(("batch", "inputConfig"), "Requests are needed")
    if any(not item.keys() <= {"request", "metadata"} for item in requests):
        return Problem(("batch", "inputConfig", "requests"), "Unknown name")
    return None


class _Gemini(PlayedService):
    """Google's batch service."""

    usual = GENERATE

    async def create(self, request: web.Request) -> web.Response:
        """Create a batch of requests to the model in the path."""
        batch = (await self.body(request))["batch"]
        model = find_model(request.match_info["model"])
        items = batch["inputConfig"]["requests"]["requests"]
        created = StoredBatch(
            self.new_id("batch"),
            GENERATE,
            [(item.get("metadata", {}).get("key", ""), item["request"]) for item in items],
            int(self.now()),
            headers=dict(request.headers),
            metadata=batch.get("displayName", ""),
            model=model.name,
            status="PENDING",
        )
        self.services.batches[created.id] = created
        return web.json_response(self._shown(created))

    async def list(self, request: web.Request) -> web.Response:
        """List a page of batches, the newest first."""
        own = [one for one in self.services.batches.values() if one.endpoint == GENERATE]
        first = int(request.query.get("pageToken") or 0)
        page = [self._shown(batch) for batch in own[::-1][first : first + _PAGE]]
        more = {"nextPageToken": str(first + _PAGE)} if first + _PAGE < len(own) else {}
        return web.json_response({"operations": page, **more})

    async def retrieve(self, request: web.Request) -> web.Response:
        """Return a batch, which is run now."""
        batch = self.batch(request)
        if batch.status == "PENDING" and not self.services.waits:
            self._run(batch, "SUCCEEDED", self.services.expires)
        return web.json_response(self._shown(batch))

    async def cancel(self, request: web.Request) -> web.Response:
        """Cancel a batch after its first request."""
        batch = self.batch(request)
        if batch.status == "PENDING":
            others = frozenset(key for key, _ in batch.requests[1:])
            self._run(batch, "CANCELLED", others)
        return web.json_response({})

    async def delete(self, request: web.Request) -> web.Response:
        """Delete a batch."""
        self.services.deleted.append(self.batch(request).id)
        return web.json_response({})

    def _run(self, batch: StoredBatch, status: str, left_out: frozenset[str]) -> None:
        for key, body in reversed(batch.requests):
            result: dict[str, Any] = {"metadata": {"key": key}}
            if key in left_out:
                result["error"] = {"code": 4, "message": "Deadline exceeded"}
            else:
                answer_status, answer = self.answer(batch, body)
                result |= {"response": answer} if answer_status == 200 else answer
            batch.results.append(result)
        batch.status = status

    def _shown(self, batch: StoredBatch) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": f"models/{batch.model}",
            "displayName": batch.metadata,
            "name": f"batches/{batch.id}",
            "createTime": datetime.fromtimestamp(batch.created_at, UTC).isoformat(),
            "state": f"BATCH_STATE_{batch.status}",
        }
        operation: dict[str, Any] = {"name": f"batches/{batch.id}", "metadata": shown}
        if batch.results:
            # Whatever refers to results has them, as at Google.
            output = {"inlinedResponses": {"inlinedResponses": batch.results}}
            shown["output"] = output
            operation |= {"done": True, "response": output}
        return operation
