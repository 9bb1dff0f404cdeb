"""The gateway's own tasks: the choice of their models, and the requests to them.

Texts are generated through the engine, with retries and fallbacks. Embeddings have no fallback, as
vectors of different models are not comparable.
"""

from collections.abc import Mapping

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import (
    EmbedRequest,
    GenerateRequest,
    OutputFormat,
    Prompt,
    RunTaskRequest,
    RunTaskResponse,
    Task,
    Vector,
)
from services.common.errors import GatewayError, UpstreamError, invalid
from services.common.text import packed_floats
from services.inference.embeddings import embedding_usage
from services.inference.providers.base import EmbeddingCall
from services.inference.request.estimate import estimate_inputs
from services.inference.run.engine import Engine

MAX_TEXTS = 256

# The key of `[roles]` that names a task's model.
_SETTINGS: Mapping[Task.ValueType, str] = {
    inference_pb2.TASK_SUMMARISE: "summarise",
    inference_pb2.TASK_EXTRACT: "extract",
    inference_pb2.TASK_EMBED: "embed",
}
_ANSWER = "answer"  # name of a schema


async def run(engine: Engine, request: RunTaskRequest) -> RunTaskResponse:
    """Run a task with the model that is currently configured for it.

    Raises:
        GatewayError: invalid, if the input does not match the task; model_not_found, if no
            model is configured for it; else the error of the model's provider.
    """
    _check(request)
    name = _model_name(engine, request.task)
    if request.task == inference_pb2.TASK_EMBED:
        return await _embed(engine, name, request)
    return await _write(engine, name, request.prompt)


def _check(request: RunTaskRequest) -> None:
    if request.task not in _SETTINGS:
        raise invalid("task", "task: must be SUMMARISE, EXTRACT or EMBED")
    if request.task == inference_pb2.TASK_EMBED:
        if not 1 <= len(request.texts) <= MAX_TEXTS or "" in request.texts:
            raise invalid("texts", f"texts: must contain 1 to {MAX_TEXTS} non-empty texts")
    elif not (request.prompt.instructions and request.prompt.input and request.prompt.max_tokens):
        raise invalid("prompt", "prompt: must have instructions, input and max_tokens")


def _model_name(engine: Engine, task: Task.ValueType) -> str:
    key = _SETTINGS[task]
    roles = engine.routes.roles
    name: str = roles.extracts if key == "extract" else getattr(roles, key)
    if not name:
        raise GatewayError(
            errors_pb2.REASON_MODEL_NOT_FOUND, f"[roles] {key} does not name a model", param="task"
        )
    return name


async def _write(engine: Engine, name: str, prompt: Prompt) -> RunTaskResponse:
    request = GenerateRequest(
        model=name,
        messages=[
            _says(conversation_pb2.ROLE_SYSTEM, prompt.instructions),
            _says(conversation_pb2.ROLE_USER, prompt.input),
        ],
        max_tokens=prompt.max_tokens,
    )
    if prompt.answer_schema and engine.routes.models.get(name).structured_output:
        request.output_format.CopyFrom(
            OutputFormat(
                kind=OutputFormat.KIND_JSON_SCHEMA,
                schema=prompt.answer_schema,
                name=_ANSWER,
                strict=True,
            )
        )
    answer = await engine.generate(request)
    text = "".join(block.text for block in answer.choices[0].blocks).strip()
    if not text:
        raise UpstreamError(
            errors_pb2.REASON_UPSTREAM_ERROR,
            f"the provider {answer.route.provider} returned no text",
        )
    return RunTaskResponse(model=f"{answer.route.provider}/{answer.model}", text=text)


async def _embed(engine: Engine, name: str, request: RunTaskRequest) -> RunTaskResponse:
    routes = engine.routes
    # Vectors of deployments that may differ are not comparable.
    target = routes.models.resolve(name)
    if target.vector_space:
        target = engine.balancer.choose(target)
    model = f"{target.provider}/{target.upstream}"
    inputs = EmbedRequest(texts=request.texts, is_query=request.is_query)
    call = EmbeddingCall(
        GenerateRequest(), target, stream=False, refused_fields=target.refuses, inputs=inputs
    )
    permit = await engine.balancer.limits.admit(target, estimate_inputs(inputs))
    input_tokens = 0
    try:
        made = await routes.providers[target.adapter].embed(call)
        input_tokens = made.input_tokens
        engine.metering.add_embedding(target, embedding_usage(made))
    except UpstreamError as error:
        engine.failure_log.write(target.provider, error, {"model": model, "call": "embed"})
        raise
    finally:
        if permit is not None:
            permit.end(input_tokens, 0)
    return RunTaskResponse(
        model=model,
        vectors=[Vector(values=packed_floats.unpack(vector)) for vector in made.vectors],
    )


def _says(role: conversation_pb2.Role.ValueType, text: str) -> Message:
    return Message(role=role, blocks=[Block(text=text)])
