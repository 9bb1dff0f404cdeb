"""Access tokens: what no message may contain, and what errors of their sources mean."""

from collections.abc import Callable

import pytest
from aiohttp import web

from services.common import http
from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference.providers.credentials.azure import AzureSource
from services.inference.providers.credentials.bearer import AccessToken, BearerTokens
from services.inference.providers.credentials.google import GoogleSource
from services.inference.providers.credentials.renewal import Loaded, RenewedCredentials
from services.inference.providers.upstream import Upstream
from tests.gateway_in_process import serving
from tests.grid import each_row
from tests.services.inference.providers.scripted_server import LiveCalls

TOKEN = "ya29.a-token-that-nobody-may-read"


class Source(GoogleSource):
    """A source of one token."""

    def load(self) -> Loaded[AccessToken]:
        token = AccessToken(TOKEN, [("authorization", f"Bearer {TOKEN}")])
        return Loaded(token, lambda seconds: False, renews=True)


async def test_a_token_that_is_echoed_is_cut_out():
    async def echo(request: web.Request) -> web.Response:
        token = request.headers["authorization"].removeprefix("Bearer ")
        error = {"error": {"message": f"the token {token} is fine, the body is not"}}
        return web.json_response(error, status=400)

    app = web.Application()
    app.router.add_post("/x", echo)
    async with serving(app) as url, http.Client(5) as client:
        tokens = BearerTokens(RenewedCredentials("p", Source("")))
        upstream = Upstream("p", url, {}, Limits(), client, LiveCalls(), authorize=tokens)
        with pytest.raises(UpstreamError) as raised:
            await upstream.post("/x", b"{}")
    assert "is fine, the body is not" in raised.value.message
    assert TOKEN not in raised.value.message


@each_row(
    ("explain", "words", "expected"),
    [
        (GoogleSource("").explain, "invalid_grant: Invalid JWT: … reasonable timeframe", "clock"),
        (GoogleSource("").explain, "invalid_grant: Invalid JWT Signature.", "invalid_grant"),
        (GoogleSource("").explain, "connection refused", ""),
        (AzureSource("s").explain, "AADSTS700024: not within its valid time range", "clock"),
        (AzureSource("s").explain, "AADSTS7000215: Invalid client secret", "AADSTS7000215"),
        (
            AzureSource("s").explain,
            "DefaultAzureCredential failed to retrieve a token from the included credentials.",
            "az login",
        ),
    ],
)
def test_what_an_error_of_a_source_means(
    explain: Callable[[Exception], str], words: str, expected: str
):
    meaning = explain(ValueError(words))
    assert expected in meaning and (expected or not meaning)
