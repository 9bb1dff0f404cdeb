"""Responses over WebSockets, through the official SDK and as frames."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import orjson
import pytest
import pytest_asyncio
import websockets
from openai.resources.responses.responses import AsyncResponsesConnection
from websockets.asyncio.client import ClientConnection, connect

from facade.response_socket import MOST_STREAMS, MOST_WAITING
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.common.settings import Storage
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.limited_callers import limited_gateways
from tests.upstream.app import create_app
from tests.upstream.log import Entry, RequestLog
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = ("sandbox/echo", "responses/echo", "openai/echo", "anthropic/echo", "gemini/echo")
ENDS = ("response.completed", "response.incomplete", "response.failed", "error")
SILENT = "openai/stall"


class Served:
    """A gateway, the SDK, and what providers were sent."""

    def __init__(self, gateway: Gateway, sdk: openai.AsyncOpenAI, log: RequestLog) -> None:
        self.gateway = gateway
        self.sdk = sdk
        self.log = log

    @property
    def requests(self) -> list[Entry]:
        """The requests with a body: others ask what a provider has, at any time."""
        return [entry for entry in self.log.entries if entry.body]

    def connect(self) -> connect:
        """Return a plain client."""
        return opened(self.gateway)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    log = RequestLog()
    async with serving(create_app(log)) as url:
        providers = {
            "openai": {"kind": "openai", "base_url": f"{url}/v1", "responses": False},
            "responses": {"kind": "openai", "base_url": f"{url}/v1", "responses": True},
            "anthropic": {"kind": "anthropic", "base_url": url},
            "gemini": {"kind": "gemini", "base_url": f"{url}/v1beta"},
        }
        providers = {name: {**one, "api_key": "k"} for name, one in providers.items()}
        limits = {"keepalive_s": 0.05, "max_body_bytes": 200_000}
        folder = tmp_path_factory.mktemp("gateway")
        async with (
            running_gateway(folder, url, providers=providers, limits=limits) as gateway,
            openai.AsyncOpenAI(
                api_key=gateway.key, base_url=f"{gateway.url}/v1", max_retries=0
            ) as sdk,
        ):
            yield Served(gateway, sdk, log)


async def ask(connection: AsyncResponsesConnection, **fields: Any) -> Any:
    """Request a response; return the event that ends it."""
    await connection.response.create(**fields)
    return await end_of(connection)


async def end_of(connection: AsyncResponsesConnection) -> Any:
    while True:
        event = await connection.recv()
        if event.type in ENDS:
            return event


async def tell(socket: ClientConnection, **fields: Any) -> None:
    await socket.send(orjson.dumps({"type": "response.create", **fields}).decode())


async def hear(socket: ClientConnection, kinds: tuple[str, ...] = ENDS) -> dict[str, Any]:
    """Return the next event of some types."""
    while True:
        event: dict[str, Any] = orjson.loads(await socket.recv())
        if event["type"] in kinds:
            return event


async def test_a_conversation_goes_on_unstored(served: Served) -> None:
    failures = []
    async with served.sdk.responses.connect() as connection:
        for model in MODELS:
            fields = {"model": model, "store": False}
            first = await ask(connection, input="My dog is called Rex.", **fields)
            second = await ask(
                connection,
                input="sandbox: recite",
                previous_response_id=first.response.id,
                **fields,
            )
            third = await ask(
                connection,
                input="sandbox: recite",
                previous_response_id=second.response.id,
                **fields,
            )
            texts = [end.response.output[0].content[0].text for end in (first, second, third)]
            is_kept = all(
                one in text for text in texts[1:] for one in ("called Rex", "Sandbox echo")
            )
            if not is_kept or second.response.previous_response_id != first.response.id:
                failures.append((model, texts))
            with pytest.raises(openai.NotFoundError):
                await served.sdk.responses.retrieve(first.response.id)
            # Only the last one is kept.
            gone = await ask(
                connection, input="Hi", previous_response_id=first.response.id, **fields
            )
            assert (gone.status, gone.error.code, gone.error.param) == (
                *(400, "previous_response_not_found"),
                "previous_response_id",
            )
    assert not failures


async def test_events_are_those_of_http_and_name_the_model(served: Served) -> None:
    fields: Any = {"model": "openai/echo", "input": "Hi", "store": False}
    stream = await served.sdk.responses.create(stream=True, **fields)
    over_http = [event.type async for event in stream]
    async with served.sdk.responses.connect() as connection:
        await connection.response.create(stream_id="a", **fields)
        events = [await connection.recv()]
        while events[-1].type not in ENDS:
            events.append(await connection.recv())
    assert [event.type for event in events] == over_http
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert {event.stream_id for event in events} == {"a"}
    headers = events[0].model_extra["headers"]
    assert headers["x-gateway-model"] == "openai/echo" and headers["x-request-id"]
    assert "headers" not in events[1].model_extra


async def test_a_warm_up_sends_nothing_and_is_continued(served: Served) -> None:
    before = len(served.requests)
    async with served.sdk.responses.connect() as connection:
        fields: Any = {"model": "openai/echo", "instructions": "Be brief."}
        warm = await ask(connection, input="My dog is called Rex.", generate=False, **fields)
        assert (warm.type, warm.response.output) == ("response.completed", [])
        assert warm.response.usage.total_tokens == 0
        assert len(served.requests) == before
        made = await ask(connection, input="Who?", previous_response_id=warm.response.id, **fields)
        missing = await ask(connection, model="nobody/none", input="Hi", generate=False)
    assert "called Rex" in orjson.dumps(served.requests[-1].body).decode()
    assert (missing.status, missing.error.code) == (404, "model_not_found")
    # It is stored with all that it was made of, and goes on elsewhere.
    listed = await served.sdk.responses.input_items.list(made.response.id, order="asc")
    texts = [item.content[0].text for item in listed.data]  # type: ignore[union-attr]  # messages
    assert texts == ["My dog is called Rex.", "Who?"]
    further = await served.sdk.responses.create(
        model="openai/echo", input="sandbox: recite", previous_response_id=made.response.id
    )
    assert "called Rex" in further.output_text


async def test_what_is_wrong_is_named_and_the_socket_goes_on(served: Served) -> None:
    create = {"type": "response.create", "model": "openai/echo", "input": "Hi"}
    create |= {"fallback": "disabled"}
    rows: list[tuple[Any, int, str | None, str]] = [
        (b"{", 400, None, "invalid_request"),
        ([1], 400, None, "invalid_request"),
        ({**create, "type": "response.cancel"}, 400, "type", "invalid_request"),
        ({"model": "openai/echo"}, 400, "type", "invalid_request"),
        ({**create, "background": True}, 400, "background", "invalid_request"),
        ({**create, "generate": 1.5}, 400, "generate", "invalid_request"),
        ({**create, "stream_id": ""}, 400, "stream_id", "invalid_stream_id"),
        ({**create, "input": 7}, 400, "input", "invalid_request"),
        ({**create, "model": "nobody/none"}, 404, "model", "model_not_found"),
        ({**create, "model": "openai/fail-500"}, 502, None, "upstream_error"),
        (
            {**create, "model": "openai/fail-429", "stream_id": "x"},
            429,
            None,
            "upstream_rate_limited",
        ),
    ]
    wrong = []
    async with served.connect() as socket:
        for message, status, param, code in rows:
            sent = message if isinstance(message, bytes) else orjson.dumps(message)
            await socket.send(sent.decode())
            event = await hear(socket)
            error = event["error"]
            if (event["status"], error["param"], error["code"]) != (status, param, code):
                wrong.append((message, event))
        assert event["stream_id"] == "x" and int(error["headers"]["retry-after"]) >= 1
        steer = {"type": "response.steer", "previous_response_id": "resp_1", "input": "No."}
        await socket.send(orjson.dumps(steer).decode())
        failed = await hear(socket, ("response.steer.failed",))
        assert failed["error"]["code"] == "steering_not_supported"
        assert failed["steer"]["input"] == "No."
        # An answer that breaks off has one end.
        await tell(socket, model="openai/cut", input="Hi", store=False, fallback="disabled")
        broken = await hear(socket)
        assert broken["type"] == "response.failed"
        assert broken["response"]["error"]["code"] == "server_error"
        await tell(socket, model="openai/echo", input="Hi", store=False)
        assert (await hear(socket))["type"] == "response.completed"
    assert not wrong


async def test_streams_run_beside_each_other_in_order(served: Served) -> None:
    async with served.connect() as socket:
        await tell(socket, model=SILENT, input="1", stream_id="slow")
        await until(lambda: served.log.live.open == 1)
        for number in (3, 4, 5):
            await tell(socket, model="openai/echo", input=f"{number}", store=False)
        ends = [await hear(socket) for _ in range(3)]
        texts = [end["response"]["output"][0]["content"][0]["text"] for end in ends]
        assert all(f'"{number}"' in text for number, text in zip((3, 4, 5), texts, strict=True))
        assert not any("stream_id" in end for end in ends)
        # A client that asks for too much at once is refused.
        for number in range(MOST_STREAMS):
            await tell(socket, model=SILENT, input="Hi", stream_id=f"{number}")
        refused = await hear(socket)
        assert (refused["stream_id"], refused["status"]) == (f"{MOST_STREAMS - 1}", 429)
        for _ in range(MOST_WAITING + 1):
            await tell(socket, model=SILENT, input="more", stream_id="slow")
        refused = await hear(socket)
        assert (refused["stream_id"], refused["status"]) == ("slow", 429)
        await until(lambda: served.log.live.open == MOST_STREAMS)
    # A client that leaves cancels its requests.
    await until(lambda: served.log.live.open == 0)


async def test_frames_are_read_as_they_should_be(served: Served) -> None:
    create = b'{"type":"response.create","model":"sandbox/echo","input":"%b","store":false}'
    async with served.connect() as socket:
        await (await socket.ping())
        long = create % (b"word " * 20_000)
        await socket.send([long[:7].decode(), long[7:90_000].decode(), long[90_000:].decode()])
        end = await hear(socket)
        assert end["response"]["usage"]["input_tokens"] > 20_000
        await socket.send(create % b"binary")
        assert (await hear(socket))["type"] == "response.completed"
        await socket.send((create % (b"x" * 200_000)).decode())
        assert (await hear(socket))["error"]["code"] == "too_large"
        await socket.wait_closed()
    assert socket.close_code == 1009
    for frame in (
        b"\x81\x01x",
        b"\xc1\x81aaaab",
        b"\x83\x81aaaab",
        b"\x80\x81aaaab",
        b"\x09\x80aaaa",
    ):
        async with served.connect() as socket:
            socket.transport.write(frame)
            await socket.wait_closed()
            assert socket.close_code == 1002, frame


async def test_what_opens_no_socket_is_an_http_error(served: Served) -> None:
    gateway = served.gateway
    url = f"{gateway.url}/v1/responses"
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    rows: list[tuple[dict[str, str], int]] = [
        (gateway.bearer(), 426),
        ({**gateway.bearer(), **upgrade, "Sec-WebSocket-Version": "8"}, 426),
        ({**gateway.bearer(), **upgrade, "Sec-WebSocket-Key": "short"}, 400),
        ({**upgrade, "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}, 401),
    ]
    for headers, status in rows:
        async with gateway.http.get(url, headers=headers) as answer:
            assert answer.status == status, headers
            assert (await answer.json())["error"]["message"]


def opened(gateway: Gateway) -> connect:
    url = f"{gateway.url.replace('http', 'ws', 1)}/v1/responses"
    return connect(url, additional_headers=gateway.bearer())


async def test_a_socket_ends_after_its_time(tmp_path) -> None:
    limits = {"max_socket_s": 0.3, "keepalive_s": 0.05, "max_parallel_requests_per_user": 2}
    async with running_gateway(tmp_path, limits=limits) as gateway:
        async with opened(gateway) as one, opened(gateway) as other:
            with pytest.raises(websockets.InvalidStatus) as refused:
                async with opened(gateway):
                    pass
            assert refused.value.response.status_code == 429
            event = await hear(one, ("error",))
            assert event["error"]["code"] == "websocket_connection_limit_reached"
            await one.wait_closed()
            await other.wait_closed()
            assert one.close_code == 1001


async def test_a_gateway_that_stops_lets_responses_end(tmp_path) -> None:
    async with serving(create_app()) as url:
        async with running_gateway(tmp_path, url) as gateway:
            idle = await opened(gateway)
            busy = await opened(gateway)
            await tell(busy, model="openai/slow", input="Hi", store=False)
            await hear(busy, ("response.created",))
        # It has stopped.
        assert (await hear(busy))["type"] == "response.completed"
        await idle.wait_closed()
        await busy.wait_closed()
        assert (idle.close_code, busy.close_code) == (1012, 1012)


async def test_limits_hold_for_each_request(tmp_path) -> None:
    async with limited_gateways(tmp_path, Storage(data_dir=tmp_path)) as limited:
        caller = await limited.caller(SubjectKind.KEY, UsageLimits(requests_per_minute=2))
        url = f"{limited.gateways[0].url.replace('http', 'ws', 1)}/v1/responses"
        async with connect(url, additional_headers=caller) as socket:
            kinds = []
            for _ in range(3):
                await tell(socket, model="sandbox/echo", input="Hi", store=False)
                kinds.append(await hear(socket))
    assert [event["type"] for event in kinds] == [*["response.completed"] * 2, "error"]
    assert kinds[-1]["status"] == 429
    assert int(kinds[-1]["error"]["headers"]["retry-after"]) >= 1
