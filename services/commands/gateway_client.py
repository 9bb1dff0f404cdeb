"""The running gateway that a command calls: how it is found, and requests to it."""

import http.client
import json
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import typer

from services.commands.shared import WRONG, fail

if TYPE_CHECKING:
    from services.common.settings import Settings
    from services.supervisor.running import RunningGateway

URL_VARIABLE = "GATEWAY_URL"
KEY_VARIABLE = "GATEWAY_KEY"
_TIMEOUT_S = 600.0
_MAX_ERROR_BYTES = 64 << 10


class Address(NamedTuple):
    """Where a command sends its requests, and with which key.

    Attributes:
        url: the address of a gateway.
        key: an API key of it.
        certificate: a file with a certificate that is trusted too, or "".
    """

    url: str
    key: str
    certificate: str = ""


def find_gateway(settings: "Settings") -> "RunningGateway":
    """Return the gateway that runs on the data folder of the settings, or the only one elsewhere.

    Exits with a message if there is none, or if several run elsewhere.
    """
    from services.supervisor.running import running_gateway, running_gateways

    data_dir = str(settings.storage.data_dir)
    if running := running_gateway(data_dir):
        return running
    others = [one for one in running_gateways() if one.url]
    if not others:
        fail(f"no gateway runs on {data_dir}; start one with `gateway up`")
    if len(others) > 1:
        fail(
            f"no gateway runs on {data_dir}, but several elsewhere; set GATEWAY_DATA_DIR to the "
            f"data folder of one: {', '.join(one.data_dir for one in others)}"
        )
    typer.echo(
        f"gateway: none runs on {data_dir}; the one on {others[0].data_dir} is used", err=True
    )
    return others[0]


def address(settings: "Settings") -> Address:
    """Return the address and the key for requests of a command.

    They come from GATEWAY_URL and GATEWAY_KEY, or else from the gateway that runs here and its
    development key. Exits with a message if one of them is missing.
    """
    from services.accounts.development import FILE

    url, key = os.environ.get(URL_VARIABLE, ""), os.environ.get(KEY_VARIABLE, "")
    if not url:
        running = find_gateway(settings)
        url = running.url
        if not url:
            fail(f"the gateway on {running.data_dir} is still starting; try again")
        if not key:
            try:
                key = Path(running.data_dir, FILE).read_text("ascii").strip()
            except (OSError, UnicodeDecodeError):
                key = ""
    if not url.startswith(("http://", "https://")):
        fail(f"{URL_VARIABLE}: must begin with http:// or https://", WRONG)
    if not key:
        fail(f"no API key: set {KEY_VARIABLE} (`gateway keys create --user NAME` creates one)")
    return Address(url.rstrip("/"), key, settings.server.tls_certificate)


@contextmanager
def request(
    gateway: Address, method: str, path: str, body: Mapping[str, Any] | None = None
) -> Iterator[http.client.HTTPResponse]:
    """Send a request; yield the successful response, or exit with the message of its error."""
    with closing(_connection(gateway)) as connection:
        try:
            connection.request(
                method,
                urlsplit(gateway.url).path + path,
                None if body is None else json.dumps(body),
                {"Authorization": f"Bearer {gateway.key}", "Content-Type": "application/json"},
            )
            response = connection.getresponse()
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            fail(f"{gateway.url}: {error or type(error).__name__}")
        if response.status != http.client.OK:
            fail(error_message(response.read(_MAX_ERROR_BYTES)) or f"HTTP {response.status}")
        yield response


def error_message(body: bytes) -> str:
    """Return the message of an error response, or ""."""
    try:
        match json.loads(body):
            case {"error": {"message": str(message)}}:
                return message
    except ValueError:
        pass
    return ""


def _connection(gateway: Address) -> http.client.HTTPConnection:
    parts = urlsplit(gateway.url)
    try:
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
        context = ssl.create_default_context()
        if gateway.certificate:
            context.load_verify_locations(gateway.certificate)
    except (ValueError, OSError) as error:
        fail(f"{gateway.url}: {error}")
    return http.client.HTTPSConnection(
        parts.hostname or "", parts.port, timeout=_TIMEOUT_S, context=context
    )
