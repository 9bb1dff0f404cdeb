"""A synchronous client of the gateway's inference service.

    python grpc_client.py unix:var/run/0.sock gw-… Hello

It needs grpcio, googleapis-common-protos, and the generated stubs (the folder `generated`).
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import grpc
from google.rpc.status_pb2 import Status

from gateway.conversation.v1.conversation_pb2 import ROLE_USER, Block, Message
from gateway.errors.v1.errors_pb2 import ErrorDetail
from gateway.inference.v1.inference_pb2 import GenerateRequest, GenerateResponse
from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub

Result = TypeVar("Result")


class CallError(Exception):
    """Error raised when a call fails.

    Attributes:
        status: the gRPC status.
        detail: the gateway's description of the error, with its reason; empty if the gateway was
            not reached.
    """

    def __init__(self, error: grpc.RpcError) -> None:
        self.status: grpc.StatusCode = error.code()
        self.detail = ErrorDetail()
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                for packed in Status.FromString(value).details:
                    packed.Unpack(self.detail)
        super().__init__(self.detail.message or error.details())

    @property
    def retry_after_s(self) -> float | None:
        """Seconds after which the call may succeed; None if it would fail again."""
        if self.detail.HasField("retry_after_s"):
            return self.detail.retry_after_s
        is_unreachable = self.status is grpc.StatusCode.UNAVAILABLE and not self.detail.reason
        return 1 if is_unreachable else None


class Client:
    """A client for one API key. Calls are repeated when the gateway says so, within their time."""

    def __init__(
        self,
        channel: grpc.Channel,
        key: str,
        *,
        timeout_s: float = 600,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inference = InferenceServiceStub(channel)
        self._metadata = [("authorization", f"Bearer {key}")]
        self._timeout_s = timeout_s
        self._monotonic = monotonic
        self._sleep = sleep

    def generate(self, request: GenerateRequest) -> GenerateResponse:
        """Return a whole answer."""
        return self._repeated(
            lambda timeout_s: self._inference.Generate(
                request, timeout=timeout_s, metadata=self._metadata
            )
        )

    def stream(self, request: GenerateRequest) -> Iterator[str]:
        """Yield the text of an answer as it arrives. A stream that breaks off is not repeated."""

        def begin(timeout_s: float):
            call = self._inference.StreamGenerate(
                request, timeout=timeout_s, metadata=self._metadata
            )
            return call, next(call, None)

        call, message = self._repeated(begin)
        try:
            while message is not None:
                for event in message.events:
                    if text := event.text or event.block_start.text:
                        yield text
                message = next(call, None)
        except grpc.RpcError as error:
            raise CallError(error) from error
        finally:
            # The caller may have stopped reading.
            call.cancel()

    def _repeated(self, call: Callable[[float], Result]) -> Result:
        deadline = self._monotonic() + self._timeout_s
        while True:
            try:
                return call(deadline - self._monotonic())
            except grpc.RpcError as error:
                failure = CallError(error)
                wait_s = failure.retry_after_s
                if wait_s is None or self._monotonic() + wait_s >= deadline:
                    raise failure from error
            self._sleep(wait_s)


def main(address: str, key: str, text: str) -> None:
    """Print the answer to a text as it arrives."""
    message = Message(role=ROLE_USER, blocks=[Block(text=text)])
    with grpc.insecure_channel(address) as channel:
        for piece in Client(channel, key).stream(
            GenerateRequest(model="sandbox/echo", messages=[message])
        ):
            print(piece, end="", flush=True)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
