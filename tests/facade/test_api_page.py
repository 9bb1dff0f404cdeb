"""`/docs`: a page for people, by area, to which the errors of unknown paths point."""

import re

import pytest

from tests.grid import each_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Paths that clients with a wrong address ask for, and the section that they need.
UNKNOWN = {
    "/v2/chat/completions": "/docs#chat-completions",
    "/openai/chat/completions": "/docs#chat-completions",
    "/v1/completions": "/docs#chat-completions",
    "/v1/complete": "/docs#messages",
    "/v1/files/file_1/contents": "/docs#files",
    "/article/v1/doc/nothing": "/docs#documents",
    "/openai/v1/embeddings/": "/docs#embeddings",
    "/v1/filesystem": "/docs",
}


async def read(gateway, path: str):
    async with gateway.http.get(gateway.url + path) as answer:
        return answer, await answer.text()


async def test_the_page_is_of_html_and_a_style_alone(gateway) -> None:
    answer, page = await read(gateway, "/docs")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy and "script-src" not in policy
    assert not re.search(r"<script|<link|<img|style=|\son[a-z]+=", page)


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
