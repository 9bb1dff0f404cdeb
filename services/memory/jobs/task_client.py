"""Client for the tasks of Inference that background jobs need: summaries, facts, vectors."""

from collections.abc import Sequence
from typing import NamedTuple

import grpc

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2, inference_pb2_grpc
from gateway.inference.v1.inference_pb2 import Prompt, RunTaskRequest, RunTaskResponse
from services.common.errors import GatewayError, from_rpc_error
from services.common.grpc.authentication import service_authorization
from services.common.grpc.channels import REQUEST_ID_KEY, USER_ID_KEY
from services.common.messages.summary_prompt import without_thoughts
from services.common.process import logs
from services.common.settings import Roles


class Embedding(NamedTuple):
    """Vectors of texts.

    Attributes:
        model: the model, as `provider/model`; vectors of different models are not comparable.
        vectors: one for each text, in order, all of one length.
    """

    model: str
    vectors: list[list[float]]


class TaskClient:
    """A client of `InferenceService.RunTask`.

    Every method raises GatewayError when the model fails, answers nothing, or takes too long.

    Args:
        channel: a channel to the inference service.
        credential: the gateway's own credential.
        roles: the models that the settings name for each task.
        timeout_s: seconds for a call.

    Attributes:
        roles: the models for each task; replaced when the settings are reloaded.
    """

    def __init__(
        self, channel: grpc.aio.Channel, credential: bytes, roles: Roles, timeout_s: float
    ) -> None:
        self.roles = roles
        self._stub = inference_pb2_grpc.InferenceServiceStub(channel)
        self._authorization = service_authorization(credential)
        self._timeout_s = timeout_s

    @property
    def can_summarise(self) -> bool:
        """Whether there is a model for summaries."""
        return bool(self.roles.summarise)

    @property
    def can_extract(self) -> bool:
        """Whether there is a model for facts."""
        return bool(self.roles.extracts)

    @property
    def can_embed(self) -> bool:
        """Whether there is a model for vectors."""
        return bool(self.roles.embed)

    async def summarise(self, user_id: str, prompt: Prompt) -> str:
        """Return a model's summary, without its thinking; never empty."""
        return await self._write(user_id, inference_pb2.TASK_SUMMARISE, prompt)

    async def extract(self, user_id: str, prompt: Prompt) -> str:
        """Return a model's facts in the format of the prompt, without its thinking."""
        return await self._write(user_id, inference_pb2.TASK_EXTRACT, prompt)

    async def embed(
        self, user_id: str, texts: Sequence[str], *, is_query: bool = False
    ) -> Embedding:
        """Return the vectors of 1 to 256 texts, none of them empty.

        With `is_query` they are embedded as queries, and not as documents.
        """
        request = RunTaskRequest(task=inference_pb2.TASK_EMBED, texts=texts, is_query=is_query)
        response = await self._run(user_id, request)
        if len(response.vectors) != len(texts):
            raise _empty_answer()
        return Embedding(response.model, [list(vector.values) for vector in response.vectors])

    async def _write(self, user_id: str, task: inference_pb2.Task.ValueType, prompt: Prompt) -> str:
        response = await self._run(user_id, RunTaskRequest(task=task, prompt=prompt))
        if not (text := without_thoughts(response.text)):
            raise _empty_answer()
        return text

    async def _run(self, user_id: str, request: RunTaskRequest) -> RunTaskResponse:
        metadata = (
            ("authorization", self._authorization),
            (USER_ID_KEY, user_id),
            (REQUEST_ID_KEY, logs.request_id.get()),
        )
        try:
            return await self._stub.RunTask(request, metadata=metadata, timeout=self._timeout_s)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from error


def _empty_answer() -> GatewayError:
    return GatewayError(errors_pb2.REASON_UPSTREAM_ERROR, "a model returned an empty answer")
