"""`/docs`: a page for people, by area, to which the errors of unknown paths point."""

import re
from base64 import b64encode
from hashlib import sha256

import pytest

from tests.grid import each_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Paths that clients with a wrong address ask for, and the section that they need.
UNKNOWN = {
    "/v2/chat/completions": "/docs#chat-completions",
    "/openai/chat/completions": "/docs#chat-completions",
    "/v1/chat/completion": "/docs#chat-completions",
    "/v1/message": "/docs#messages",
    "/v1/files/file_1/contents": "/docs#files",
    "/article/v1/doc/nothing": "/docs#documents",
    "/other/v1/embeddings/": "/docs#embeddings",
    "/v1/filesystem": "/docs",
}


async def read(gateway, path: str):
    async with gateway.http.get(gateway.url + path) as answer:
        return answer, await answer.text()


async def test_the_policy_names_one_script_and_one_style(gateway) -> None:
    answer, page = await read(gateway, "/docs")
    policy = answer.headers["Content-Security-Policy"]
    for directive, tag in (("script-src", "script"), ("style-src", "style")):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.S)
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"; {directive} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
    # Policies do not name attributes' code and styles, nor files of others.
    assert not re.search(r"<link|<img|<script |style=|\son[a-z]+=", page)


async def test_every_endpoint_has_a_form(gateway) -> None:
    _, page = await read(gateway, "/docs")
    async with gateway.http.get(f"{gateway.url}/openapi.json") as answer:
        paths = (await answer.json())["paths"]
    operations = {
        (method.upper(), path.removeprefix("/beta")) for path in paths for method in paths[path]
    }
    assert {*re.findall(r'data-method="(\w+)" data-path="([^"]+)"', page)} == operations


async def test_requests_of_the_page_can_be_pasted(gateway) -> None:
    _, page = await read(gateway, "/docs")
    assert '"$GATEWAY/v1/chat/completions"' in page.replace("&quot;", '"')
    assert "sandbox/echo" in page
    assert "-d &#x27;{}&#x27;" not in page.partition("<h2>Files")[0]


@each_row("path", UNKNOWN)
async def test_an_unknown_path_names_its_section(gateway, path: str) -> None:
    _, body = await read(gateway, path)
    _, page = await read(gateway, "/docs")
    assert f"GET {UNKNOWN[path]} lists the available endpoints" in body
    anchor = UNKNOWN[path].partition("#")[2]
    assert not anchor or f'<section id="{anchor}">' in page
