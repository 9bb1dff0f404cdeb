"""The synchronous client of docs/grpc.md, with a channel and a clock of grpcio-testing."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from threading import Thread
from typing import Any

import grpc
import grpc_testing
import pytest
from google.rpc.status_pb2 import Status

from docs.examples.grpc_client import CallError, Client
from gateway.conversation.v1.conversation_pb2 import Block
from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import ErrorDetail
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import (
    Choice,
    Event,
    GenerateRequest,
    GenerateResponse,
    StreamGenerateResponse,
)
from tests.documents import ROOT, code_blocks, read

SERVICE = inference_pb2.DESCRIPTOR.services_by_name["InferenceService"]
GENERATE = SERVICE.methods_by_name["Generate"]
STREAM = SERVICE.methods_by_name["StreamGenerate"]
REQUEST = GenerateRequest(model="m")
ANSWER = GenerateResponse(choices=[Choice(blocks=[Block(text="Hi")])])


# Only a failing test waits so long.
SOON_S = 60.0


def in_thread(call: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Run a blocking call in a thread; a thread that never ends does not keep the process."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call(*arguments))
        except Exception as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


class Calls:
    """A client whose calls run in threads, and the gateway's side of them."""

    def __init__(self) -> None:
        self.time = grpc_testing.strict_fake_time(0)
        self.channel = grpc_testing.channel([SERVICE], self.time)
        self.client = Client(
            self.channel,
            "gw-key",
            timeout_s=100,
            monotonic=self.time.time,
            sleep=self.time.sleep_for,
        )

    def generate(self) -> Future[GenerateResponse]:
        return in_thread(self.client.generate, REQUEST)

    def first(self, pieces: Iterator[str]) -> Future[str]:
        return in_thread(next, pieces)

    def _take(self) -> Any:
        return in_thread(self.channel.take_unary_unary, GENERATE).result(SOON_S)

    def take_stream(self) -> Any:
        return in_thread(self.channel.take_unary_stream, STREAM).result(SOON_S)

    def answer(self, answer: GenerateResponse = ANSWER) -> None:
        metadata, request, rpc = self._take()
        assert ("authorization", "Bearer gw-key") in metadata
        assert request == REQUEST
        rpc.terminate(answer, (), grpc.StatusCode.OK, "")

    def fail(self, status: grpc.StatusCode, detail: ErrorDetail | None = None) -> None:
        _, _, rpc = self._take()
        rpc.terminate(None, trailers(detail), status, "of gRPC")


def trailers(detail: ErrorDetail | None) -> tuple[tuple[str, bytes], ...]:
    if detail is None:
        return ()
    status = Status()
    status.details.add().Pack(detail)
    return (("grpc-status-details-bin", status.SerializeToString()),)


def limited(retry_after_s: int) -> ErrorDetail:
    return ErrorDetail(
        reason=errors_pb2.REASON_RATE_LIMITED, message="slower", retry_after_s=retry_after_s
    )


@pytest.fixture
def calls() -> Calls:
    return Calls()


def test_the_page_shows_the_module():
    module = (ROOT / "docs/examples/grpc_client.py").read_text()
    assert module in code_blocks(read("docs/grpc.md"), "python")


def test_an_answer_is_returned(calls: Calls):
    answer = calls.generate()
    calls.answer()
    assert answer.result(SOON_S) == ANSWER


def test_a_call_is_repeated_when_the_gateway_says(calls: Calls):
    answer = calls.generate()
    calls.fail(grpc.StatusCode.RESOURCE_EXHAUSTED, limited(7))
    calls.fail(grpc.StatusCode.RESOURCE_EXHAUSTED, limited(5))
    calls.answer()
    assert answer.result(SOON_S) == ANSWER
    assert calls.time.time() == 12


def test_an_unreachable_gateway_is_asked_again(calls: Calls):
    answer = calls.generate()
    calls.fail(grpc.StatusCode.UNAVAILABLE)
    calls.answer()
    assert answer.result(SOON_S) == ANSWER
    assert calls.time.time() == 1


def test_a_call_is_not_repeated_beyond_its_time(calls: Calls):
    answer = calls.generate()
    calls.fail(grpc.StatusCode.RESOURCE_EXHAUSTED, limited(60))
    calls.fail(grpc.StatusCode.RESOURCE_EXHAUSTED, limited(40))
    with pytest.raises(CallError, match="slower"):
        answer.result(SOON_S)
    assert calls.time.time() == 60


@pytest.mark.parametrize(
    ("status", "detail", "message"),
    [
        (
            grpc.StatusCode.INVALID_ARGUMENT,
            ErrorDetail(
                reason=errors_pb2.REASON_INVALID_REQUEST, message="model: empty", param="model"
            ),
            "model: empty",
        ),
        (
            grpc.StatusCode.UNAVAILABLE,
            ErrorDetail(reason=errors_pb2.REASON_UPSTREAM_ERROR, message="broke"),
            "broke",
        ),
        (grpc.StatusCode.DEADLINE_EXCEEDED, None, "of gRPC"),
    ],
)
def test_other_errors_are_raised_at_once(
    calls: Calls, status: grpc.StatusCode, detail: ErrorDetail | None, message: str
):
    answer = calls.generate()
    calls.fail(status, detail)
    with pytest.raises(CallError, match=message) as failure:
        answer.result(SOON_S)
    assert failure.value.status is status
    assert failure.value.detail == (detail or ErrorDetail())


def batch(*events: Event) -> StreamGenerateResponse:
    return StreamGenerateResponse(events=events)


def test_a_stream_is_read_as_it_arrives(calls: Calls):
    pieces = calls.client.stream(REQUEST)
    first = calls.first(pieces)
    _, request, rpc = calls.take_stream()
    assert request == REQUEST
    rpc.send_response(batch(Event(start={}), Event(block_start=Block(text="H")), Event(text="i")))
    assert first.result(SOON_S) == "H"
    assert next(pieces) == "i"
    rpc.send_response(batch(Event(text="!")))
    assert next(pieces) == "!"
    rpc.terminate((), grpc.StatusCode.OK, "")
    assert list(pieces) == []


def test_a_stream_that_has_not_begun_is_repeated(calls: Calls):
    first = calls.first(calls.client.stream(REQUEST))
    _, _, rpc = calls.take_stream()
    rpc.terminate(trailers(limited(3)), grpc.StatusCode.RESOURCE_EXHAUSTED, "")
    _, _, rpc = calls.take_stream()
    rpc.send_response(batch(Event(text="a")))
    assert first.result(SOON_S) == "a"
    assert calls.time.time() == 3


def test_a_stream_that_breaks_off_is_an_error(calls: Calls):
    pieces = calls.client.stream(REQUEST)
    first = calls.first(pieces)
    _, _, rpc = calls.take_stream()
    rpc.send_response(batch(Event(text="a")))
    assert first.result(SOON_S) == "a"
    # The channel of grpcio-testing drops what was not read before.
    rpc.terminate(trailers(limited(3)), grpc.StatusCode.UNAVAILABLE, "")
    with pytest.raises(CallError, match="slower"):
        next(pieces)
    assert calls.time.time() == 0


def test_a_stream_that_is_left_is_cancelled(calls: Calls):
    pieces = calls.client.stream(REQUEST)
    first = calls.first(pieces)
    _, _, rpc = calls.take_stream()
    rpc.send_response(batch(Event(text="a")))
    assert first.result(SOON_S) == "a"
    pieces.close()
    in_thread(rpc.cancelled).result(SOON_S)
