"""How calls fail, whoever carries them."""

import grpc
import pytest

from tests.services.common.inprocess.carriers import (
    BYTES,
    TEXT,
    echo,
    outcome,
    own,
    served,
    soon,
)

CODE = grpc.StatusCode


class Refusal:
    """A servicer that aborts with everything a status can have."""

    async def __call__(self, request, context):
        await context.abort(CODE.FAILED_PRECONDITION, "not now", (TEXT, BYTES))


async def test_an_abort_arrives_whole(carrier):
    async with served(carrier, unary=Refusal().__call__) as at:
        call = at.unary(b"")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await soon(call)
        assert refused.value.code() is await call.code() is CODE.FAILED_PRECONDITION
        assert refused.value.details() == await call.details() == "not now"
        assert own(refused.value.trailing_metadata()) == [TEXT, BYTES]
        assert own(await call.trailing_metadata()) == [TEXT, BYTES]
        assert own(refused.value.initial_metadata()) == []


async def test_a_status_text_may_hold_any_character(carrier):
    async def unary(request, context):
        await context.abort(CODE.NOT_FOUND, "nichts für „Ada“\n%")

    async with served(carrier, unary=unary) as at:
        assert await outcome(at.unary(b"")) == (CODE.NOT_FOUND, "nichts für „Ada“\n%")


async def test_an_abort_takes_what_was_set_before(carrier):
    async def unary(request, context):
        context.set_trailing_metadata((TEXT,))
        context.set_details("why")
        await context.abort(CODE.NOT_FOUND)

    async with served(carrier, unary=unary) as at:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await soon(at.unary(b""))
    assert refused.value.details() == "why"
    assert own(refused.value.trailing_metadata()) == [TEXT]


async def test_an_abort_that_the_servicer_swallows_counts(carrier):
    async def unary(request, context):
        try:
            await context.abort(CODE.NOT_FOUND, "no")
        except grpc.aio.AbortError:
            return b"yes"

    async with served(carrier, unary=unary) as at:
        assert await outcome(at.unary(b"")) == (CODE.NOT_FOUND, "no")


async def test_nothing_is_written_after_an_abort(carrier):
    raised = []

    async def down(request, context):
        yield b"a"
        try:
            await context.abort(CODE.NOT_FOUND, "no")
        except grpc.aio.AbortError as error:
            try:
                await context.write(b"b")
            except grpc.aio.AbortError as again:
                raised.append(again is error)
            raise

    async with served(carrier, down=down) as at:
        call = at.down(b"")
        assert await soon(call.read()) == b"a"
        assert await outcome(call.read()) == (CODE.NOT_FOUND, "no")
    assert raised == [True]


async def test_a_code_that_is_set_takes_the_place_of_the_response(carrier):
    async def unary(request, context):
        context.set_code(CODE.OUT_OF_RANGE)
        context.set_details("behind")
        return b"ignored"

    async def down(request, context):
        yield b"a"
        context.set_code(CODE.OUT_OF_RANGE)
        context.set_details("behind")

    async with served(carrier, unary=unary, down=down) as at:
        assert await outcome(at.unary(b"")) == (CODE.OUT_OF_RANGE, "behind")
        call = at.down(b"")
        assert await soon(call.read()) == b"a"
        assert await outcome(call.read()) == (CODE.OUT_OF_RANGE, "behind")


async def test_an_exception_is_unknown_and_logged(carrier, caplog):
    async def unary(request, context):
        raise ValueError("odd")

    async with served(carrier, unary=unary) as at:
        code, details = await outcome(at.unary(b""))
    assert code is CODE.UNKNOWN
    assert details == "Unexpected <class 'ValueError'>: odd"
    assert "odd" in caplog.text


async def test_an_exception_keeps_a_code_that_was_set(carrier):
    async def unary(request, context):
        context.set_code(CODE.DATA_LOSS)
        raise ValueError("odd")

    async with served(carrier, unary=unary) as at:
        assert (await outcome(at.unary(b"")))[0] is CODE.DATA_LOSS


async def test_an_unknown_method_is_unimplemented(carrier):
    async with served(carrier, unary=echo) as at:
        for make in (at.down, at.channel.unary_unary("/test.Other/Unary")):
            call = make(b"")
            assert await soon(call.code()) is CODE.UNIMPLEMENTED
            assert await call.details() == "Method not found!"
