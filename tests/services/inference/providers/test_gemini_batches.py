"""Google's batch service: a batch whose creation was not noted is found by its name."""

from services.common.http import Client
from services.common.settings import Limits
from services.inference.providers.gemini import headers
from services.inference.providers.gemini.batches import GeminiBatches
from services.inference.providers.upstream import Upstream
from tests.gateway_in_process import serving
from tests.services.inference.providers.scripted_server import LiveCalls
from tests.upstream.app import create_app

PATH = "/models/echo:generateContent"
BODY = b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}'


async def test_a_batch_is_found_by_its_name_on_any_page() -> None:
    app = create_app(personalities=(), now=lambda: 1_000.0)
    async with serving(app) as url, Client(connect_timeout_s=60) as client:
        upstream = Upstream("google", f"{url}/v1beta", headers("k"), Limits(), client, LiveCalls())
        batches = GeminiBatches(upstream)
        ids = [await batches.create(f"b{n}", PATH, (), [("r0", BODY)]) for n in range(5)]
        # A page has two.
        assert [await batches.find(f"b{n}", 900.0) for n in range(5)] == ids
        assert await batches.find("b9", 900.0) == ""
        assert await batches.find("b0", 1_100.0) == "", "later pages are older"
        assert batches.takes(PATH, ()) and not batches.takes(PATH, (("x", "y"),))
        assert not batches.takes("/interactions", ())
