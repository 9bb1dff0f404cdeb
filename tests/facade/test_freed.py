"""Objects of a request are freed at its end, without a run of the garbage collector.

A full collection comes after millions of requests, as it stops the process for a while.
"""

import gc
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from unittest.mock import patch

import pytest
import pytest_asyncio
from aiohttp import web

from facade.http.responses import JsonResponse
from services.common.http.connection import UpstreamConnection
from tests.bench import wire
from tests.e2e.raw_connection import RawConnection
from tests.facade.deployment_upstream import DeploymentUpstream
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.grid import each_row
from tests.waiting import until

TIMES = 5
OURS = ("facade.", "services.", "gateway.")

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> DeploymentUpstream:
    return DeploymentUpstream()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(
    tmp_path_factory: pytest.TempPathFactory, upstream: DeploymentUpstream
) -> AsyncIterator[Gateway]:
    with (
        # The first sweeps make objects that stay.
        patch("services.common.storage.sweeping._AFTER_START_S", 600),
    ):
        async with (
            serving(upstream.app) as address,
            running_gateway(
                tmp_path_factory.mktemp("freed"),
                address,
                providers=upstream.providers(address, "east"),
                usage={"enabled": False},
            ) as running,
        ):
            yield running


@contextmanager
def without_collector() -> Iterator[None]:
    """Collect nothing; what there is already is left out of `alive`, which is a million objects."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def alive() -> Counter[str]:
    """Return how many objects of each class of the gateway have been made and not freed.

    Connections to providers that are kept for the next request are left out.
    """
    kinds = Counter(
        type(one)
        for one in gc.get_objects()
        if not (type(one) is UpstreamConnection and one.is_usable)
    )
    return Counter(
        {
            f"{kind.__module__}.{kind.__qualname__}": count
            for kind, count in kinds.items()
            if str(kind.__module__).startswith(OURS)
        }
    )


def request(gateway: Gateway, kind: str) -> tuple[bytes, int]:
    """Return a request of a kind, and the status of its answer."""
    dialect, key = "anthropic" if kind == "anthropic" else "openai", gateway.key
    match kind:
        case "list":
            head = f"GET /v1/models HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\n\r\n"
            return head.encode(), 200
        case "malformed":
            return wire.request(dialect, "east/m", key, fields={"temperature": "hot"}), 400
        case "unknown key":
            return wire.request(dialect, "east/m", "gw-" + "x" * 43), 401
        case "unknown model":
            return wire.request(dialect, "nobody", key), 404
        case "refused":
            return wire.request(dialect, "sandbox/fail-500", key), 502
    return wire.request(dialect, "east/m", key, stream=kind != "whole"), 200


async def expect_freed(before: Counter[str]) -> None:
    """Check that there are no more objects of any class than before, once all is closed."""
    left: dict[str, int] = {}

    def is_freed() -> bool:
        left.clear()
        left.update({kind: more for kind, more in (alive() - before).items() if more >= TIMES})
        return not left

    with suppress(TimeoutError):
        await until(is_freed, within_s=30, every_s=0.05)
    assert left == {}


KINDS = (
    *("whole", "streamed", "anthropic", "list"),
    *("malformed", "unknown key", "unknown model", "refused"),
)


@each_row("keeps_alive", [True, False])
@each_row("kind", KINDS)
async def test_a_request_leaves_nothing_behind(
    gateway: Gateway, kind: str, keeps_alive: bool
) -> None:
    port = int(gateway.url.rpartition(":")[2])
    sent, status = request(gateway, kind)
    connection = RawConnection(port)
    # What is made once, such as the connections of a pool, is made now.
    for _ in range(2 * TIMES):
        assert (await connection.send(sent)).status == status
    with without_collector():
        before = alive()
        for _ in range(TIMES):
            if not keeps_alive:
                connection.close()
            assert (await connection.send(sent)).status == status
        connection.close()
        await expect_freed(before)


@pytest.mark.parametrize("after", [b"", b"data:"])
async def test_callers_who_leave_leave_nothing_behind(
    gateway: Gateway, upstream: DeploymentUpstream, after: bytes
) -> None:
    port = int(gateway.url.rpartition(":")[2])
    model = "sandbox/stall-half" if after else "east/m"
    sent = wire.request("openai", model, gateway.key, stream=True)
    upstream.gate.clear()
    connection = RawConnection(port)
    await connection.leave(sent, after)
    with without_collector():
        before = alive()
        for _ in range(TIMES):
            await connection.leave(sent, after)
        await expect_freed(before)
    upstream.gate.set()


@pytest.mark.parametrize("path", ["/v1/responses/resp_0", "/v1/models"])
async def test_an_open_connection_keeps_no_response(gateway: Gateway, path: str) -> None:
    """The body of a response may be many megabytes, and connections stay open for long."""
    connections = [RawConnection(int(gateway.url.rpartition(":")[2])) for _ in range(TIMES)]
    asked = f"GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {gateway.key}\r\n\r\n"
    answers = [await connection.send(asked.encode()) for connection in connections]
    try:
        await until(lambda: not bodies_like(answers[0].body), within_s=30, every_s=0.05)
    finally:
        for connection in connections:
            connection.close()


def bodies_like(body: bytes) -> list[bytes]:
    """Return the bodies of that size that responses of this process still refer to."""
    kept = [one.body for one in gc.get_objects() if isinstance(one, JsonResponse)]
    kept += [one.body for one in gc.get_objects() if isinstance(one, web.Response)]
    return [one for one in kept if isinstance(one, bytes) and len(one) == len(body)]
