"""Side jobs over gRPC, done by the sandbox behind HTTP and in the gateway's process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import grpc
import orjson
import pytest
from aiohttp import web

from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1 import inference_pb2 as pb
from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.common.errors import GatewayError, from_rpc_error
from services.common.grpc.authentication import call_metadata, service_authorization
from services.common.grpc.channels import open_channel
from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.common.storage.secrets import load_secrets
from tests.gateway_in_process import running_gateway

SUMMARISE = pb.RunTaskRequest(
    task=pb.TASK_SUMMARISE,
    prompt=pb.Prompt(instructions="Sum it up.", input="Ada has a dog.", max_tokens=500),
)
EMBED = pb.RunTaskRequest(task=pb.TASK_EMBED, texts=["a dog", "two cats"])


class TaskCaller:
    """Asks a gateway for side jobs, as the gateway's own."""

    def __init__(self, stub: InferenceServiceStub, credential: bytes, key: str) -> None:
        self._stub = stub
        self._own = (
            ("authorization", service_authorization(credential)),
            ("x-user-id", "user_ada"),
        )
        self._callers = call_metadata(key, "req_1")

    async def __call__(
        self, request: pb.RunTaskRequest, *, as_caller: bool = False
    ) -> pb.RunTaskResponse:
        metadata = self._callers if as_caller else self._own
        try:
            return await self._stub.RunTask(request, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from error


@asynccontextmanager
async def task_caller(
    folder: Path, upstream: web.Application | None = None, **roles: str
) -> AsyncIterator[TaskCaller]:
    async with running_gateway(folder, upstream, roles=roles) as gateway:
        database = open_engine(Storage(data_dir=folder))
        credential = (await load_secrets(database)).service_credential
        await database.dispose()
        async with open_channel(gateway.grpc, max_message_bytes=1 << 22) as channel:
            yield TaskCaller(InferenceServiceStub(channel), credential, gateway.key)


async def reason_of(task_caller: TaskCaller, request: pb.RunTaskRequest, **how: bool) -> str:
    with pytest.raises(GatewayError) as raised:
        await task_caller(request, **how)
    return Reason.Name(raised.value.reason).removeprefix("REASON_")


@pytest.mark.parametrize("task", [pb.TASK_SUMMARISE, pb.TASK_EXTRACT])
async def test_the_model_for_summaries_writes_both_kinds_of_text(
    tmp_path: Path, task: pb.Task.ValueType
) -> None:
    request = pb.RunTaskRequest(task=task, prompt=SUMMARISE.prompt)
    async with task_caller(tmp_path, summarise="openai/echo") as ask:
        answer = await ask(request)
    assert answer.model == "openai/echo"
    assert answer.text.startswith('Sandbox echo: you said "Ada has a dog.".')
    assert not answer.vectors


async def test_a_model_of_its_own_extracts_facts(tmp_path: Path) -> None:
    roles = {"summarise": "openai/json", "extract": "openai/echo"}
    async with task_caller(tmp_path, **roles) as ask:
        answer = await ask(pb.RunTaskRequest(task=pb.TASK_EXTRACT, prompt=SUMMARISE.prompt))
    assert answer.model == "openai/echo"


@pytest.mark.parametrize(
    ("model", "is_sent"), [("openai/gpt-5.5", True), ("openai/home-made", False)]
)
async def test_a_schema_goes_to_models_that_are_known_to_take_one(
    tmp_path: Path, model: str, is_sent: bool
) -> None:
    bodies = []

    async def chat(request: web.Request) -> web.Response:
        bodies.append(orjson.loads(await request.read()))
        choice = {"index": 0, "message": {"content": "{}"}, "finish_reason": "stop"}
        return web.json_response({"id": "1", "model": "m", "choices": [choice]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    prompt = pb.Prompt(
        instructions="Find facts.", input="x", max_tokens=9, answer_schema=b'{"type":"object"}'
    )
    async with task_caller(tmp_path, app, extract=model) as ask:
        await ask(pb.RunTaskRequest(task=pb.TASK_EXTRACT, prompt=prompt))
    [body] = bodies
    form = {"name": "answer", "schema": {"type": "object"}, "strict": True}
    response_format = {"type": "json_schema", "json_schema": form}
    assert body.get("response_format") == (response_format if is_sent else None)


async def test_instructions_are_separate_from_their_material(tmp_path: Path) -> None:
    bodies = []

    async def chat(request: web.Request) -> web.Response:
        bodies.append(orjson.loads(await request.read()))
        choice = {"index": 0, "message": {"content": " Short. "}, "finish_reason": "stop"}
        return web.json_response({"id": "1", "model": "m-2026", "choices": [choice]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    async with task_caller(tmp_path, app, summarise="openai/m") as ask:
        answer = await ask(SUMMARISE)
    assert (answer.text, answer.model) == ("Short.", "openai/m-2026")
    [body] = bodies
    assert [(one["role"], one["content"]) for one in body["messages"]] == [
        ("system", "Sum it up."),
        ("user", "Ada has a dog."),
    ]
    assert 500 in (body.get("max_tokens"), body.get("max_completion_tokens"))


@pytest.mark.parametrize(
    "message", [{"content": ""}, {"content": " \n"}, {"refusal": "I will not."}]
)
async def test_an_answer_without_text_is_a_failure(tmp_path: Path, message: dict[str, str]) -> None:
    async def chat(request: web.Request) -> web.Response:
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"id": "1", "model": "m", "choices": [choice]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    async with task_caller(tmp_path, app, summarise="openai/m") as ask:
        assert (await reason_of(ask, SUMMARISE)).startswith("UPSTREAM_")


@pytest.mark.parametrize(
    ("model", "dimensions"),
    [("openai/embed", 256), ("sandbox/embed", 256), ("embedded/multilingual-e5-small", 384)],
)
async def test_a_model_for_vectors_gives_one_for_each_text(
    tmp_path: Path, model: str, dimensions: int
) -> None:
    async with task_caller(tmp_path, embed=model) as ask:
        answer = await ask(EMBED)
    assert answer.model == model
    assert [len(vector.values) for vector in answer.vectors] == [dimensions] * 2
    assert not answer.text


async def test_a_role_without_a_model_is_not_done(tmp_path: Path) -> None:
    async with task_caller(tmp_path) as ask:
        assert await reason_of(ask, SUMMARISE) == "MODEL_NOT_FOUND"
        assert await reason_of(ask, EMBED) == "MODEL_NOT_FOUND"


async def test_a_callers_key_does_not_do_side_jobs(tmp_path: Path) -> None:
    async with task_caller(tmp_path, summarise="sandbox/echo") as ask:
        assert await reason_of(ask, SUMMARISE, as_caller=True) == "INVALID_API_KEY"


@pytest.mark.parametrize(
    "request_",
    [
        pb.RunTaskRequest(),
        pb.RunTaskRequest(task=cast("pb.Task.ValueType", 77)),  # of a newer caller
        pb.RunTaskRequest(task=pb.TASK_SUMMARISE),
        pb.RunTaskRequest(
            task=pb.TASK_EXTRACT, prompt=pb.Prompt(instructions="a", input="b", max_tokens=0)
        ),
        pb.RunTaskRequest(task=pb.TASK_SUMMARISE, prompt=pb.Prompt(input="b", max_tokens=1)),
        pb.RunTaskRequest(task=pb.TASK_SUMMARISE, prompt=pb.Prompt(instructions="a", max_tokens=1)),
        pb.RunTaskRequest(task=pb.TASK_EMBED),
        pb.RunTaskRequest(task=pb.TASK_EMBED, texts=["a", ""]),
        pb.RunTaskRequest(task=pb.TASK_EMBED, texts=["a"] * 257),
    ],
    ids=str,
)
async def test_input_that_is_not_the_roles_is_refused(
    tmp_path: Path, request_: pb.RunTaskRequest
) -> None:
    async with task_caller(tmp_path, summarise="sandbox/echo", embed="sandbox/embed") as ask:
        assert await reason_of(ask, request_) == "INVALID_REQUEST"


async def test_the_failures_of_a_provider_are_reported(tmp_path: Path) -> None:
    async with task_caller(tmp_path, summarise="sandbox/fail-context", embed="sandbox/echo") as ask:
        assert await reason_of(ask, SUMMARISE) == "CONTEXT_LENGTH_EXCEEDED"
        assert await reason_of(ask, EMBED) == "UPSTREAM_REJECTED"


async def test_a_provider_without_vectors_is_refused(tmp_path: Path) -> None:
    async with task_caller(tmp_path, embed="anthropic/claude-x") as ask:
        assert await reason_of(ask, EMBED) == "UNSUPPORTED"
