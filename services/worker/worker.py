"""A worker: the facade and all services of a gateway in one process, on one event loop."""

import asyncio
from functools import partial

from facade.batch_requests import execute_batch_request, render_batch_request
from facade.server import Facade
from services import SERVICES
from services.assembly import Services
from services.common import settings
from services.common.clock import Clock
from services.common.ids import new_id
from services.common.process.lifetime import Lifecycle
from services.common.process.telemetry.opening import open_telemetry
from services.worker.prepare import NotPreparedError, prepare


async def run_worker(
    lifecycle: Lifecycle,
    *,
    host: str,
    port: int,
    metrics_port: int,
    grpc: str = "",
    replaces: str = "",
) -> None:
    """Serve HTTP and gRPC callers until `lifecycle.stopping` is set, give notice, then drain.

    The facade calls the services over an in-process channel. Other workers may share all three
    ports.

    Args:
        lifecycle: lifecycle of this process.
        host: address to listen on for HTTP.
        port: port for HTTP.
        metrics_port: port of the listener for operators.
        grpc: address for gRPC callers, or "".
        replaces: why the worker ended that this one replaces, or "".
    """
    try:
        loaded = settings.load()
        message = await prepare(loaded)
        telemetry = open_telemetry(
            loaded.telemetry,
            new_id("process_"),
            is_required=loaded.request_log.requires_collector,
        )
    except (settings.SettingsError, NotPreparedError) as error:
        lifecycle.fail(str(error))

    clock = Clock()
    services = await Services.start(
        SERVICES, grpc, loaded, clock, is_shared=True, telemetry=telemetry
    )
    try:
        facade = await Facade.start(
            services.channel,
            host,
            port,
            loaded,
            clock,
            metrics_port=metrics_port,
            replaces=replaces,
            identify=services.identify,
            budget=services.budget,
            telemetry=telemetry,
            request_log=services.request_log,
        )
    except OSError as error:
        lifecycle.fail(f"server: {error}")

    requests = facade.internal_requests
    services.run_batches(
        partial(execute_batch_request, requests.post),
        partial(render_batch_request, requests.render),
    )

    def reload() -> None:
        services.reload()
        facade.reload_certificate()

    lifecycle.on_reload = reload
    lifecycle.ready(message)

    await lifecycle.stopping.wait()
    await services.fail_readiness()
    await facade.give_notice(lifecycle.cancelling)
    await asyncio.gather(facade.stop(), services.stop_listening())
    await services.stop(lifecycle.cancelling)
    if telemetry is not None:
        await telemetry.stop()
