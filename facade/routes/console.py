"""The console: pages for a browser, which use the public API alone.

`make console` builds them from `facade/console/` into `facade/console/dist/`. They are static and
hold nothing of any user, so that they need no key; what they show comes by requests of their own,
which need one.
"""

import re
from pathlib import Path

from aiohttp import web

PREFIX = "/console"
_BUILT = Path(__file__).parents[1] / "console" / "dist"
_ASSETS = _BUILT / "assets"
_ASSET_NAME = re.compile(r"[A-Za-z0-9_-]+\.(?:css|js|woff2)", re.ASCII)

# Scripts and styles come from the gateway alone, nothing inline runs, and no text becomes HTML
# (Trusted Types without a policy): pages build elements, whatever a model or a user wrote. Images
# and recordings are what a page has fetched with its key.
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
# The page names its assets by hashes of their contents, and is asked for each time itself.
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


def routes() -> list[web.RouteDef]:
    """Return the routes of the pages."""
    return [
        web.get("/", _to_console),
        web.get(PREFIX, _page),
        web.get(f"{PREFIX}/assets/{{name}}", _asset),
        web.get(f"{PREFIX}/{{page:.*}}", _page),
    ]


def is_public(path: str) -> bool:
    """Return whether a path is the console's, which needs no key."""
    return path in ("/", PREFIX) or path.startswith(f"{PREFIX}/")


async def _to_console(request: web.Request) -> web.Response:
    """Lead a visitor to the console; the browser keeps the fragment of the address."""
    return web.Response(status=302, headers={"Location": PREFIX})


async def _page(request: web.Request) -> web.StreamResponse:
    """Return the page; which part of it is shown, its script decides by the path."""
    path = _BUILT / "index.html"
    if not path.exists():
        return web.Response(
            status=503, text=_NOT_BUILT, content_type="text/html", headers=_PAGE_HEADERS
        )
    return web.FileResponse(path, headers=_PAGE_HEADERS)


async def _asset(request: web.Request) -> web.StreamResponse:
    """Return a script, style sheet or font; compressed, if the browser reads that."""
    name = request.match_info["name"]
    if not _ASSET_NAME.fullmatch(name):
        raise web.HTTPNotFound
    return web.FileResponse(_ASSETS / name, headers=_ASSET_HEADERS)
