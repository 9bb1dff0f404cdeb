"""A model that answers background responses when a test says so, and a renderer of its texts."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from typing import Any

from gateway.inference.v1 import inference_pb2_grpc
from gateway.inference.v1.inference_pb2 import Event, GenerateRequest, StreamGenerateResponse
from gateway.memory.v1 import responses_pb2 as pb
from services.common.errors import GatewayError


class ModelCall:
    """A call of the model.

    Attributes:
        is_asked: whether the model has been called.
        failure: raised at the end of the answer.
        metadata: the metadata of the call.
        left: set once the call has ended.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self.failure: Exception | None = None
        self.metadata: dict[str, Any] = {}
        self.left = asyncio.Event()
        self._texts: asyncio.Queue[str] = asyncio.Queue()

    def say(self, *texts: str) -> None:
        """Have the model say texts."""
        for text in texts:
            self._texts.put_nowait(text)

    def finish(self, *texts: str) -> None:
        """Have the model say its last texts."""
        self.say(*texts, "")

    async def said(self) -> AsyncIterator[str]:
        """Yield what the model says."""
        while text := await self._texts.get():
            yield text


class Model(inference_pb2_grpc.InferenceServiceServicer):
    """An inference service.

    Attributes:
        calls: its calls by the name of the model, which is the id of a response.
    """

    def __init__(self) -> None:
        self.calls: dict[str, ModelCall] = defaultdict(ModelCall)

    async def StreamGenerate(
        self, request: GenerateRequest, context: Any
    ) -> AsyncIterator[StreamGenerateResponse]:
        """Yield the texts that a test has the model say."""
        call = self.calls[request.model]
        call.is_asked = True
        call.metadata = dict(context.invocation_metadata())
        try:
            async for text in call.said():
                yield StreamGenerateResponse(events=[Event(text=text)])
            if call.failure is not None:
                raise call.failure
        finally:
            call.left.set()


class TextRenderer:
    """Renders texts as they are: the body of a response has all of them, its output one item.

    The body is the presentation at first, and the code of the error of a failed response.
    """

    def __init__(self, response_id: str, presentation: bytes) -> None:
        if presentation == b"invalid":
            raise KeyError
        self.response = presentation
        self._item = pb.ResponseItem(id=f"out-{response_id}", json=b"{}")
        self._output: list[pb.ResponseItem] = []
        self._text = b""

    @property
    def is_appended(self) -> bool:
        return bool(self._output)

    def begin(self) -> bytes:
        return b"queued "

    def encode(self, events: Iterable[Event]) -> bytes:
        text = "".join(event.text for event in events)
        if text == "unforeseen":
            raise ValueError(text)
        self._text += text.encode()
        return text.encode()

    def finish(self) -> bytes:
        self.response, self._output = self._text, [self._item]
        return b" finished"

    def error(self, error: GatewayError) -> bytes:
        self.response, self._output = error.code.encode(), []
        return b" " + self.response

    def content(self, events: bytes = b"") -> pb.ResponseContent:
        return pb.ResponseContent(body=self.response, output=self._output, events=events)

    def failed_body(self, error: GatewayError) -> bytes:
        return b"does not fit"
