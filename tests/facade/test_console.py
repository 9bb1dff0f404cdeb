"""The files of the console as a browser asks for them."""

import pytest

from facade.routes import console
from tests.gateway_in_process import running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A console that consists of a page and a script."""
    assets = tmp_path / "assets"
    assets.mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Console</title>")
    (assets / "main-1A2B.js").write_text("plain")
    (assets / "main-1A2B.js.gz").write_bytes(b"compressed")
    (tmp_path / "secret.js").write_text("not an asset")
    monkeypatch.setattr(console, "_BUILT", tmp_path)
    monkeypatch.setattr(console, "_ASSETS", assets)


async def get(gateway, path, **headers):
    # As bytes, so that nothing between here and the gateway unpacks or rewrites it.
    async with gateway.http.get(
        gateway.url + path, headers=headers, allow_redirects=False, auto_decompress=False
    ) as answer:
        return answer.status, answer.headers, await answer.read()


async def test_the_root_leads_to_the_console(gateway):
    status, headers, _ = await get(gateway, "/")
    assert (status, headers["Location"]) == (302, "/console")


@pytest.mark.parametrize("path", ["/console", "/console/files", "/console/documents/17"])
async def test_every_page_is_the_same_file_and_needs_no_key(gateway, built, path):
    status, headers, body = await get(gateway, path)
    assert (status, headers["Content-Type"]) == (200, "text/html")
    assert b"<title>Console</title>" in body
    assert headers["Cache-Control"] == "no-cache"


async def test_pages_may_run_scripts_of_the_gateway_alone(gateway, built):
    for path in ("/console", "/console/assets/main-1A2B.js"):
        _, headers, _ = await get(gateway, path)
        policy = headers["Content-Security-Policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= {*policy}
        assert {"require-trusted-types-for 'script'", "trusted-types 'none'"} <= {*policy}
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"


async def test_assets_are_compressed_and_kept(gateway, built):
    path = "/console/assets/main-1A2B.js"
    status, headers, body = await get(gateway, path, **{"Accept-Encoding": "gzip"})
    assert (status, headers["Content-Encoding"], body) == (200, "gzip", b"compressed")
    assert "immutable" in headers["Cache-Control"]
    status, headers, body = await get(gateway, path, **{"Accept-Encoding": "identity"})
    assert (status, body) == (200, b"plain")
    assert "Content-Encoding" not in headers


@pytest.mark.parametrize(
    "name",
    [
        *("missing.js", "..%2Fsecret.js", "%2e%2e%2fsecret.js", "main-1A2B.js.gz"),
        *(".hidden.js", "main-1A2B.js%00.css", "index.html"),
    ],
)
async def test_other_names_are_no_assets(gateway, built, name):
    status, _, body = await get(gateway, f"/console/assets/{name}")
    assert status == 404
    assert b"not an asset" not in body


async def test_without_a_build_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(console, "_BUILT", tmp_path / "nowhere")
    async with running_gateway(tmp_path) as gateway:
        status, headers, body = await get(gateway, "/console")
        assert (status, headers["Content-Type"]) == (503, "text/html; charset=utf-8")
        assert b"make console" in body
        # The API is served all the same.
        async with gateway.http.get(
            f"{gateway.url}/beta/v1/models", headers=gateway.bearer()
        ) as answer:
            assert answer.status == 200
