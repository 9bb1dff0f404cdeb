"""What callers and operators keep in a gateway: stored over HTTP, and read again."""

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen
from uuid import uuid4

_NOTES = "High tide is at noon."


class Stored(NamedTuple):
    """The ids of what is kept."""

    file: str
    response: str
    memory: str
    document: str


class Caller:
    """A caller of a gateway."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._key = key

    def store(self) -> Stored:
        """Store a file, a response, a memory of two turns, and a document."""
        file = self._upload("notes.txt", _NOTES)
        response = self.call("/v1/responses", {"model": "sandbox/echo", "input": "Keep this"})
        for text in ("My sister Mo lives in Oslo.", "Who lives in Oslo?"):
            self.call(
                "/v1/chat/completions",
                {
                    "model": "sandbox/echo",
                    "messages": [{"role": "user", "content": text}],
                    "memory_id": "kitchen",
                },
            )
        document = self._edit("doc/create", name="Harbour")["article"]["outer_id"]
        block = {"type": "paragraph", "children": [{"text": "Moored at pier 7."}]}
        session = self._open(document)
        self._edit("block/insert", sessionId=session, path=[0], blocks=[block])
        return Stored(file, response["id"], "kitchen", document)

    def read(self, stored: Stored) -> dict[str, Any]:
        """Return all that was stored, by its kind."""
        return {
            "file": self.call(f"/v1/files/{stored.file}"),
            "content": self._send(f"/v1/files/{stored.file}/content").decode(),
            "response": self.call(f"/v1/responses/{stored.response}"),
            "turns": self.call(f"/v1/memories/{stored.memory}/turns"),
            "document": self._edit("doc/read", sessionId=self._open(stored.document))["text"],
        }

    def call(self, path: str, body: object = None) -> Any:
        """Return the JSON that a path answers, to a POST if there is a body."""
        data = None if body is None else json.dumps(body).encode()
        return json.loads(self._send(path, data, "application/json"))

    def _open(self, document: str) -> str:
        session: str = self._edit("session/create", docId=document)["sessionId"]
        return session

    def _edit(self, endpoint: str, **fields: object) -> Any:
        """Return the data that an endpoint for documents answers."""
        return self.call(f"/article/v1/{endpoint}", fields)["data"]

    def _upload(self, name: str, text: str) -> str:
        boundary = uuid4().hex
        parts = (
            f'--{boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n'
            f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n'
            f"content-type: text/plain\r\n\r\n{text}\r\n--{boundary}--\r\n"
        )
        content_type = f"multipart/form-data; boundary={boundary}"
        uploaded: str = json.loads(self._send("/v1/files", parts.encode(), content_type))["id"]
        return uploaded

    def _send(self, path: str, data: bytes | None = None, content_type: str = "") -> bytes:
        # Documents take the key in this header, and all other endpoints too.
        headers = {"x-api-key": self._key, "anthropic-version": "2023-06-01"}
        headers |= {"Content-Type": content_type} if content_type else {}
        with urlopen(Request(self._url + path, data, headers)) as answer:
            content: bytes = answer.read()
            return content


def usage(programs: Path, folder: Path) -> Any:
    """Return the recorded usage of the gateway of a folder, by model."""
    shown = subprocess.run(
        [str(programs / "sluicegate"), "usage", "--by", "model", "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in shown.stdout.splitlines()]
