"""A user of a running gateway: files, documents and memories over HTTP."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

BETA = "/beta/v1"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call.

    Attributes:
        status: the HTTP status.
        body: the JSON.
        retry_after_s: what the answer's Retry-After says, or None.
    """

    status: int
    body: Any
    retry_after_s: int | None

    @property
    def code(self) -> Any:
        """The failure's code: a word, or the number of document editing."""
        error = self.body.get("error")
        return error["code"] if error else self.body.get("code")


class User:
    """One user, by their key."""

    def __init__(
        self, http: aiohttp.ClientSession, address: str, key: str, metrics_url: str = ""
    ) -> None:
        self.key = key
        self._http = http
        self._metrics_url = metrics_url
        self._address = address
        self._bearer = {"Authorization": f"Bearer {key}"}
        self._api_key = {"x-api-key": key}

    def with_key(self, key: str) -> "User":
        """Return the owner of another key, at the same address."""
        return User(self._http, self._address, key, self._metrics_url)

    async def upload(self, content: bytes, filename: str = "a.txt") -> Answer:
        form = aiohttp.FormData()
        form.add_field("purpose", "assistants")
        form.add_field("file", io.BytesIO(content), filename=filename)
        return await self._call("POST", f"{BETA}/files", self._bearer, data=form)

    async def begin_upload(self, size: int) -> Answer:
        fields = {"filename": "a.txt", "mime_type": "text/plain", "purpose": "user_data"}
        body = {**fields, "bytes": size}
        return await self._call("POST", f"{BETA}/uploads", self._bearer, json=body)

    async def add_part(self, upload_id: str, content: bytes) -> Answer:
        form = aiohttp.FormData()
        form.add_field("data", io.BytesIO(content), filename="part")
        path = f"{BETA}/uploads/{upload_id}/parts"
        return await self._call("POST", path, self._bearer, data=form)

    async def complete_upload(self, upload_id: str, part_ids: Sequence[str]) -> Answer:
        path = f"{BETA}/uploads/{upload_id}/complete"
        return await self._call("POST", path, self._bearer, json={"part_ids": part_ids})

    async def cancel_upload(self, upload_id: str) -> Answer:
        return await self._call("POST", f"{BETA}/uploads/{upload_id}/cancel", self._bearer)

    async def files(self) -> Answer:
        return await self._call("GET", f"{BETA}/files", self._bearer)

    async def content(self, file_id: str) -> bytes:
        address = f"{self._address}{BETA}/files/{file_id}/content"
        async with self._http.get(address, headers=self._bearer) as response:
            assert response.status == 200, await response.text()
            return await response.read()

    async def delete_file(self, file_id: str) -> Answer:
        return await self._call("DELETE", f"{BETA}/files/{file_id}", self._bearer)

    async def chat(self, text: str, **fields: Any) -> Answer:
        body = {
            "model": "sandbox/echo",
            "messages": [{"role": "user", "content": text}],
            **fields,
        }
        return await self._call("POST", f"{BETA}/chat/completions", self._bearer, json=body)

    async def message(self, text: str, **fields: Any) -> Answer:
        body = {
            "model": "sandbox/echo",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": text}],
            **fields,
        }
        headers = {**self._api_key, "compat-version": "2023-06-01"}
        return await self._call("POST", f"{BETA}/messages", headers, json=body)

    async def response(self, text: str, **fields: Any) -> Answer:
        body = {"model": "sandbox/echo", "input": text, **fields}
        return await self._call("POST", f"{BETA}/responses", self._bearer, json=body)

    async def stored_response(self, response_id: str) -> Answer:
        return await self._call("GET", f"{BETA}/responses/{response_id}", self._bearer)

    async def delete_response(self, response_id: str) -> Answer:
        return await self._call("DELETE", f"{BETA}/responses/{response_id}", self._bearer)

    async def vector_store(self, file_id: str) -> Answer:
        """Create a vector store with a file."""
        body = {"name": "manuals", "file_ids": [file_id]}
        return await self._call("POST", f"{BETA}/vector_stores", self._bearer, json=body)

    async def message_batch(self, *texts: str) -> Answer:
        """Create a batch of messages."""
        params = {"model": "sandbox/echo", "max_tokens": 20}
        requests = [
            {
                "custom_id": f"r{number}",
                "params": {**params, "messages": [{"role": "user", "content": text}]},
            }
            for number, text in enumerate(texts)
        ]
        body = {"requests": requests}
        path = f"{BETA}/messages/batches"
        headers = {**self._api_key, "compat-version": "2023-06-01"}
        return await self._call("POST", path, headers, json=body)

    async def find_message_batch(self, batch_id: str) -> Answer:
        """Return a batch of messages."""
        headers = {**self._api_key, "compat-version": "2023-06-01"}
        return await self._call("GET", f"{BETA}/messages/batches/{batch_id}", headers)

    async def create_conversation(self) -> str:
        made = await self._call("POST", f"{BETA}/conversations", self._bearer, json={})
        assert made.status == 200, made
        return str(made.body["id"])

    async def add_item(self, conversation_id: str, text: str) -> Answer:
        body = {"items": [{"type": "message", "role": "user", "content": text}]}
        path = f"{BETA}/conversations/{conversation_id}/items"
        return await self._call("POST", path, self._bearer, json=body)

    async def streamed_chat(self, text: str) -> str:
        """Return all of a stream."""
        status, body = await self.stream(text)
        assert status == 200, body
        return body

    async def stream(self, text: str) -> tuple[int, str]:
        """Return the status of a streamed answer, and all of its body."""
        body = {
            "model": "sandbox/echo",
            "messages": [{"role": "user", "content": text}],
            "stream": True,
        }
        address = f"{self._address}{BETA}/chat/completions"
        async with self._http.post(address, json=body, headers=self._bearer) as response:
            return response.status, await response.text()

    async def turns(self, memory_id: str) -> list[str]:
        """Return what the user said in each turn of a memory, the oldest first."""
        texts: list[str] = []
        path, token = f"{BETA}/memories/{memory_id}/turns?limit=100", ""
        while True:
            page = await self._call("GET", path + (f"&page={token}" if token else ""), self._bearer)
            assert page.status == 200, page
            for turn in page.body["data"]:
                content = turn["messages"][0]["content"]
                texts.append(content if isinstance(content, str) else content[0]["text"])
            token = page.body.get("next_page") or ""
            if not token:
                return texts[::-1]

    async def delete_memory(self, memory_id: str) -> Answer:
        return await self._call("DELETE", f"{BETA}/memories/{memory_id}", self._bearer)

    async def article(self, path: str, /, **body: Any) -> Answer:
        return await self._call("POST", f"/article/v1/{path}", self._api_key, json=body)

    async def create_document(self) -> str:
        made = await self.article("doc/create", group=0, name="")
        assert made.status == 200, made
        document: str = made.body["data"]["article"]["outer_id"]
        return document

    async def open_document(self, document: str) -> str:
        opened = await self.article("session/create", docId=document)
        assert opened.status == 200, opened
        session: str = opened.body["data"]["sessionId"]
        return session

    async def insert(self, session: str, text: str, **fields: Any) -> Answer:
        block = {"type": "paragraph", "children": [{"type": "default", "text": text}]}
        body = {"sessionId": session, "path": [0], "blocks": [block], **fields}
        return await self.article("block/insert", **body)

    async def read(self, session: str) -> list[str]:
        """Return the texts of a document's blocks."""
        answer = await self.article("doc/read", sessionId=session)
        assert answer.status == 200, answer
        return [block["text"] for block in answer.body["data"]["blocks"]]

    async def readiness(self) -> Answer:
        async with self._http.get(f"{self._metrics_url}/readyz?verbose") as response:
            return Answer(response.status, await response.json(), None)

    async def _call(self, method: str, path: str, headers: dict[str, str], **how: Any) -> Answer:
        async with self._http.request(
            method, self._address + path, headers=headers, **how
        ) as response:
            after = response.headers.get("Retry-After")
            body = await response.json()
            return Answer(response.status, body, int(after) if after else None)
