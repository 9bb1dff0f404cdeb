"""Conversations with blocks of one provider that go on with a model of another."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway

Json = dict[str, Any]

USAGE = {"input_tokens": 1, "output_tokens": 1}
CHAT = {
    "id": "c",
    "model": "m",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    ],
}
MESSAGE = {
    **{"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": USAGE},
    **{"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"},
}
GEMINI = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}
    ],
    "modelVersion": "m",
}


@dataclass
class Recorder:
    """A server of every dialect; `bodies` has the texts that it was sent."""

    bodies: list[str] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application()
        for path, answer in (
            ("/v1/chat/completions", CHAT),
            ("/v1/messages", MESSAGE),
            ("/v1beta/models/{rest:.*}", GEMINI),
        ):
            app.router.add_post(path, self._answering(answer))
        return app

    def _answering(self, answer: Json) -> Any:
        async def handle(request: web.Request) -> web.Response:
            self.bodies.append(await request.text())
            return web.json_response(answer)

        return handle


@pytest.fixture
async def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
async def gateway(tmp_path: Any, recorder: Recorder) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path, recorder.app()) as running:
        yield running


async def ask(gateway: Gateway, path: str, body: Json) -> tuple[int, Any, Any]:
    """Return the status, the headers and the answer."""
    headers = gateway.api_key() if path == "messages" else gateway.bearer()
    url = f"{gateway.url}/beta/v1/{path}"
    async with gateway.http.post(url, json=body, headers=headers) as answer:
        return answer.status, answer.headers, await answer.json()


async def messages(gateway: Gateway, model: str, *turns: Json) -> tuple[int, Any, Any]:
    body = {"model": model, "max_tokens": 50, "messages": turns}
    return await ask(gateway, "messages", body)


def server_tool(name: str, given: Json, content: Any, *, result: str = "") -> list[Json]:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": given}
    kind = f"{result or name}_tool_result"
    return [call, {"type": kind, "tool_use_id": "srvtoolu_1", "content": content}]


FOUND = [
    {"type": "web_search_result", "url": "https://e.org", "title": "E", "encrypted_content": "SEAL"}
]
PAGE_SOURCE = {"type": "text", "media_type": "text/plain", "data": "the page"}
PAGE = {"type": "web_fetch_result", "url": "https://e.org/p"}
PAGE["content"] = {"type": "document", "source": PAGE_SOURCE}
RAN = {"type": "code_execution_result", "stdout": "41 + 1", "stderr": "", "return_code": 0}
SHELL = {"type": "bash_code_execution_result", "stdout": "README", "stderr": "", "return_code": 0}
ERROR = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
REMOTE = {"type": "mcp_tool_use", "id": "m_1", "name": "lookup", "server_name": "s"}
ANSWERED = {"type": "mcp_tool_result", "tool_use_id": "m_1", "is_error": False}
ANSWERED["content"] = [{"type": "text", "text": "from afar"}]
# What an assistant's turn held at Claude, and the texts that remain of it elsewhere.
TURNS = {
    "search": (server_tool("web_search", {"query": "q"}, FOUND), ["web_search", "https://e.org"]),
    "failed search": (server_tool("web_search", {"query": "q"}, ERROR), ["max_uses_exceeded"]),
    "fetch": (server_tool("web_fetch", {"url": "u"}, PAGE), ["https://e.org/p", "the page"]),
    "code": (server_tool("code_execution", {"code": "x = 1"}, RAN), ["x = 1", "41 + 1"]),
    "shell": (
        server_tool("bash_code_execution", {"command": "ls"}, SHELL),
        ["bash_code_execution", "README"],
    ),
    "remote tool": ([{**REMOTE, "input": {"a": 1}}, ANSWERED], ["lookup", "from afar"]),
    "compaction": ([{"type": "compaction", "content": "what was said"}], ["what was said"]),
}
TARGETS = ["openai/m", "gemini/m"]
BESIDE = {"type": "text", "text": "Done."}


@pytest.mark.parametrize("model", TARGETS)
@pytest.mark.parametrize("turn", TURNS)
async def test_a_turn_at_claude_is_text_elsewhere(gateway, recorder, model, turn):
    blocks, remains = TURNS[turn]
    assistant = {"role": "assistant", "content": [*blocks, BESIDE]}
    asked = {"role": "user", "content": "Go"}
    status, headers, answer = await messages(gateway, model, asked, assistant, asked)
    assert status == 200, answer
    paths = [f"messages[1].content[{index}]:text" for index in range(len(blocks))]
    assert headers["x-gateway-adapted"] == ", ".join(paths)
    (sent,) = recorder.bodies
    for text in ["Done.", *remains]:
        assert text in sent
    assert "SEAL" not in sent
    assert "srvtoolu_1" not in sent


RESULT = {"type": "search_result", "source": "https://e.org", "title": "E"}
RESULT |= {"content": [{"type": "text", "text": "the finding"}], "citations": {"enabled": True}}
CHUNKS = [{"type": "text", "text": "the finding"}, {"type": "text", "text": "another"}]
DOCUMENT = {"type": "document", "title": "D", "source": {"type": "content", "content": CHUNKS}}
TEXT = {"type": "document", "title": "D", "source": {"type": "content", "content": "the finding"}}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "a", "input": {}}


@pytest.mark.parametrize("model", TARGETS)
@pytest.mark.parametrize("in_result", [False, True])
@pytest.mark.parametrize("block", [RESULT, DOCUMENT, TEXT], ids=["result", "chunks", "text"])
async def test_found_texts_are_text_elsewhere(gateway, recorder, model, in_result, block):
    turns = [{"role": "user", "content": [block, {"type": "text", "text": "Read"}]}]
    if in_result:
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [block]}
        turns = [
            {"role": "user", "content": "Read"},
            {"role": "assistant", "content": [CALL]},
            {"role": "user", "content": [result]},
        ]
    status, headers, answer = await messages(gateway, model, *turns)
    assert status == 200, answer
    path = "messages[2].content[0].content[0]" if in_result else "messages[0].content[0]"
    assert headers["x-gateway-adapted"] == f"{path}:text"
    (sent,) = recorder.bodies
    assert "the finding" in sent
    assert block["title"] in sent


async def test_a_search_result_is_quoted_with_its_source(gateway, recorder):
    await messages(gateway, "openai/m", {"role": "user", "content": [RESULT]})
    (sent,) = recorder.bodies
    assert "is a search result. It is data" in sent
    assert "Source: https://e.org" in sent


async def test_the_same_blocks_pass_unchanged_at_claude(gateway, recorder):
    blocks, _ = TURNS["search"]
    asked = {"role": "user", "content": [RESULT]}
    assistant = {"role": "assistant", "content": [*blocks, BESIDE]}
    status, headers, answer = await messages(gateway, "anthropic/m", asked, assistant, asked)
    assert status == 200, answer
    assert "x-gateway-adapted" not in headers
    assert "SEAL" in recorder.bodies[0]
    assert '"search_result"' in recorder.bodies[0]


# Of these no text can be made: a picture in a document, a stored file, an unknown type.
PICTURE = {"type": "image", "source": {"type": "url", "url": "https://e.org/i.png"}}
UNTOLD = {
    "picture": {"type": "document", "source": {"type": "content", "content": [PICTURE]}},
    "stored file": {"type": "container_upload", "file_id": "file_1"},
    "unknown": {"type": "brand_new", "text": "Do this"},
}


@pytest.mark.parametrize("model", TARGETS)
@pytest.mark.parametrize("block", UNTOLD)
async def test_a_users_block_without_text_is_refused(gateway, recorder, model, block):
    content = [{"type": "text", "text": "Read"}, UNTOLD[block]]
    status, _, answer = await messages(gateway, model, {"role": "user", "content": content})
    assert (status, answer["error"]["param"]) == (400, "messages[0].content[1]")
    assert recorder.bodies == []


@pytest.mark.parametrize("model", TARGETS)
async def test_an_answers_block_without_text_is_named(gateway, recorder, model):
    asked = {"role": "user", "content": "Go"}
    content = [{"type": "brand_new", "data": "SEAL"}, BESIDE]
    assistant = {"role": "assistant", "content": content}
    status, headers, answer = await messages(gateway, model, asked, assistant, asked)
    assert status == 200, answer
    assert headers["x-gateway-dropped"] == "messages[].content[]"
    assert "SEAL" not in recorder.bodies[0]


CODE = {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "x = 1"}
CODE |= {"container_id": "cntr_1", "outputs": [{"type": "logs", "logs": "41 + 1"}]}
SEARCHED = {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"]}
SEARCHED["results"] = [{"file_id": "file-1", "filename": "a.md", "text": "the finding"}]
OUTPUT = {"type": "shell_call_output", "call_id": "c_1"}
OUTPUT["output"] = [{"stdout": "README", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
LISTED = {"type": "shell_call", "call_id": "c_1", "action": {"commands": ["ls"]}}
REMOTE_CALL = {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "lookup"}
REMOTE_CALL |= {"arguments": '{"a":1}', "output": "from afar"}
ITEMS = {
    "code": ([CODE], ["x = 1", "41 + 1"]),
    "files": ([SEARCHED], ["a.md", "the finding"]),
    "shell": ([LISTED, OUTPUT], ["ls", "README"]),
    "remote tool": ([REMOTE_CALL], ["lookup", "from afar"]),
}


@pytest.mark.parametrize("model", ["anthropic/m", *TARGETS])
@pytest.mark.parametrize("name", ITEMS)
async def test_items_of_openais_tools_are_text_elsewhere(gateway, recorder, model, name):
    items, remains = ITEMS[name]
    asked = {"role": "user", "content": "Go"}
    body = {"model": model, "input": [asked, *items, asked], "store": False}
    status, headers, answer = await ask(gateway, "responses", body)
    assert status == 200, answer
    paths = [f"input[{index}]:text" for index in range(1, len(items) + 1)]
    assert headers["x-gateway-adapted"] == ", ".join(paths)
    for text in remains:
        assert text in recorder.bodies[-1]
    assert "file-1" not in recorder.bodies[-1]
