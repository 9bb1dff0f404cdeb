"""Uploads whose service goes away, at each moment at which gRPC notices it."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any

import grpc
import pytest

from facade.transfers.file_upload import CHUNK, FileUpload
from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import CreateFileRequest, FileHeader, FileTrailer
from services.common.errors import GatewayError
from tests.grid import each_row

BARE = grpc.aio.AioRpcError(
    grpc.StatusCode.INTERNAL, grpc.aio.Metadata(), grpc.aio.Metadata(), "Internal error from Core"
)
OVER = asyncio.InvalidStateError("RPC already finished.")
GONE = grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata())
TOLD = grpc.aio.AioRpcError(
    grpc.StatusCode.INTERNAL, grpc.aio.Metadata(), grpc.aio.Metadata(("a", "b"))
)


class Call:
    """A call that fails at one of its steps: header, chunk, trailer, done or answer."""

    def __init__(self, step: str, failure: Exception) -> None:
        self._step = step
        self._failure = failure

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Nobody is told."""

    async def write(self, message: CreateFileRequest) -> None:
        self._fail_at(message.WhichOneof("part") or "")

    async def done_writing(self) -> None:
        self._fail_at("done")

    def __await__(self) -> Generator[Any, Any, None]:
        raise self._failure
        yield

    def cancel(self) -> None:
        """It is over."""

    def _fail_at(self, step: str) -> None:
        if step == self._step:
            raise self._failure


async def upload(step: str, failure: Exception) -> None:
    with FileUpload(lambda: Call(step, failure)) as sending:
        await sending.add(FileHeader(filename="a"))
        await sending.add(bytes(CHUNK))
        await sending.finish(FileTrailer())


STEPS = ["header", "chunk", "trailer", "done", "answer"]


@each_row("step", STEPS)
@each_row("failure", [BARE, OVER])
async def test_an_error_of_grpcs_own_means_that_the_service_is_gone(
    step: str, failure: Exception
) -> None:
    with pytest.raises(GatewayError) as raised:
        await upload(step, failure)
    assert raised.value.reason == errors_pb2.REASON_UNAVAILABLE
    assert raised.value.http_status == 503


@each_row("step", STEPS)
@each_row("failure", [GONE, TOLD])
async def test_what_the_service_says_stays_what_it_is(step: str, failure: Exception) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await upload(step, failure)
    assert raised.value is failure
