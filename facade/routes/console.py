"""The console: web pages that use only the public API.

`make console` builds them from `facade/console/` into `facade/console/dist/`. The pages are static
and contain no data of users, so they need no key. They load their data by further requests, which
need one.
"""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import orjson

from facade.endpoint import EndpointSpec
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response, TypedResponse, WholeResponse
from facade.http_errors import unknown_path
from services.common.version import VERSION

_PATH = "/console"
_BUILT = Path(__file__).parents[1] / "console" / "dist"
_ASSETS = _BUILT / "assets"
_ASSET_NAME = re.compile(r"[A-Za-z0-9_-]+\.(css|js|woff2)", re.ASCII)
_TYPES = {"css": "text/css", "js": "text/javascript", "woff2": "font/woff2"}
# Suffixes of the copies of a file, by content coding; the smallest copy first.
_SUFFIXES = {"br": ".br", "gzip": ".gz", "": ""}

# Scripts and styles come from the gateway alone, nothing inline runs, and no text becomes HTML
# (Trusted Types without a policy): pages build elements, whatever a model or a user wrote. Images
# and recordings are data that a page has fetched with its key.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "img-src 'self' blob: data:",
        "media-src blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# Names of assets contain hashes of their contents; the page itself is revalidated each time.
_PAGE_HEADERS = {**_HEADERS, "Cache-Control": "no-cache"}
_ASSET_HEADERS = {**_HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
_NOT_BUILT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Gateway console</title>
<h1>The console has not been built</h1>
<p>Run <code>make console</code> in the folder of the gateway and load this page again.
The API is served without it: see <a href="/docs">its endpoints</a>.</p>
</html>
"""


async def _to_console(exchange: Exchange) -> Response:
    """Redirect to the console; the browser keeps the fragment of the URL."""
    return WholeResponse(status=302, headers={"Location": _PATH})


async def _page(exchange: Exchange) -> Response:
    """Return the page; its script selects the view by the path."""
    file = await asyncio.to_thread(_read, _BUILT / "index.html", _codings(exchange))
    if file is None:
        return TypedResponse(
            _NOT_BUILT.encode(), "text/html; charset=utf-8", _PAGE_HEADERS, status=503
        )
    return _response(file, "text/html", _PAGE_HEADERS)


async def _asset(exchange: Exchange) -> Response:
    """Return a script, style sheet or font, compressed if the browser accepts that."""
    name = _ASSET_NAME.fullmatch(exchange.path_values["name"])
    if name is None:
        raise unknown_path(exchange.method, exchange.path)
    file = await asyncio.to_thread(_read, _ASSETS / name[0], _codings(exchange))
    if file is None:
        raise unknown_path(exchange.method, exchange.path)
    return _response(file, _TYPES[name[1]], _ASSET_HEADERS)


def _codings(exchange: Exchange) -> str:
    return exchange.headers.get("accept-encoding", "").lower()


def _read(path: Path, codings: str) -> tuple[bytes, str] | None:
    """Return the smallest accepted copy of a file and its coding; None if there is no file.

    The files are small, so each is read at once.
    """
    for coding, suffix in _SUFFIXES.items():
        if not coding or coding in codings:
            with suppress(FileNotFoundError):
                return path.with_name(path.name + suffix).read_bytes(), coding
    return None


def _response(file: tuple[bytes, str], kind: str, headers: Mapping[str, str]) -> Response:
    body, coding = file
    headers = {**headers, "Vary": "Accept-Encoding"}
    if coding:
        headers["Content-Encoding"] = coding
    return TypedResponse(body, kind, headers)


async def _version(exchange: Exchange) -> Response:
    """Return the version of the gateway, which `/openapi.json` has too."""
    return JsonResponse(orjson.dumps({"version": VERSION}))


ENDPOINTS = (
    EndpointSpec(method="GET", path="/", handler=_to_console),
    EndpointSpec(method="GET", path=_PATH, handler=_page),
    EndpointSpec(method="GET", path=f"{_PATH}/assets/{{name}}", handler=_asset),
    EndpointSpec(method="GET", path=f"{_PATH}/version", handler=_version),
    EndpointSpec(method="GET", path=f"{_PATH}/{{page:.*}}", handler=_page),
)
