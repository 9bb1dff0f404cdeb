"""Heads that are long, many, slow or broken."""

import asyncio

from tests.attacks.observer import Observer
from tests.attacks.raw_sockets import all_ended, collected_sockets, connect, send
from tests.e2e.gateway import Gateway
from tests.facade.malformed import CANARY, in_fields, in_framing, in_line
from tests.facade.sockets import exchange, read_answers

FIELD = b"X-%d: " + b"x" * 32_000 + b"\r\n"
LINE = b"POST /beta/v1/messages HTTP/1.1\r\nHost: a\r\n"


async def test_long_heads_are_refused_and_leave_nothing(
    target: Gateway, observer: Observer
) -> None:
    with collected_sockets() as held:
        async with observer.watch() as measured:
            for _ in range(100):
                held.append(await connect(target, LINE))
            for number in range(120):
                await asyncio.gather(*(send(one, FIELD % number) for one in held))
            answers = await asyncio.wait_for(all_ended(held), 30)
    measured.assert_harmless()
    for answer in answers:
        (refusal,) = read_answers(answer)
        assert (refusal.status, refusal.json["error"]["code"]) == (431, "head_too_large")


async def test_many_unfinished_heads_share_a_bound(target: Gateway, observer: Observer) -> None:
    most = LINE + b"X-Large: " + b"x" * 60_000
    with collected_sockets() as held:
        async with observer.watch() as measured:
            for _ in range(500):
                held.append(await connect(target, most))
            (answer,) = read_answers(*await asyncio.wait_for(all_ended(held[-1:]), 30))
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    measured.assert_harmless()


async def test_no_part_of_a_malformed_request_is_logged_or_shown(target: Gateway) -> None:
    requests = [
        data
        for of in (in_fields, in_framing, in_line)
        for path in ("/beta/v1/messages", "/article/v1/doc/read")
        for _, data in of(path)
    ]
    for first in range(0, len(requests), 50):
        some = requests[first : first + 50]
        for answer in await asyncio.gather(*(exchange(target.port, one) for one in some)):
            assert CANARY.encode() not in answer
            (refusal,) = read_answers(answer)
            assert 400 <= refusal.status < 500
            assert refusal.json
    target.process.wait_for('"status":431')
    assert CANARY not in target.process.output
