"""Runs the files calls of older Python SDKs; prints what each step gave, or threw, as JSON.

python files.py ADDRESS KEY
"""

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import anthropic
import openai

ADDRESS, KEY = sys.argv[1:]
OPENAI = openai.OpenAI(base_url=f"{ADDRESS}/beta/v1", api_key=KEY, max_retries=0)
ANTHROPIC = anthropic.Anthropic(base_url=f"{ADDRESS}/beta", api_key=KEY, max_retries=0)
LARGE = bytes((50 << 20) + 1)
CONTENT = bytes(range(256)) * 4097


def clear() -> None:
    for file in OPENAI.files.list():
        OPENAI.files.delete(file.id)


def openai_calls() -> Any:
    files = OPENAI.files
    expiry = {"anchor": "created_at", "seconds": 3600}
    made = files.create(
        file=("grüße.bin", CONTENT), purpose="batch", extra_body={"expires_after": expiry}
    )
    return {
        "made": made.to_dict(),
        "retrieved": files.retrieve(made.id).to_dict(),
        "same": files.content(made.id).read() == CONTENT,
        "deleted": files.delete(made.id).to_dict(),
    }


def openai_uploads() -> Any:
    uploaded = OPENAI.uploads.upload_file_chunked(
        file=CONTENT,
        filename="a.bin",
        bytes=len(CONTENT),
        mime_type="application/x-notes",
        purpose="batch",
        part_size=300_000,
    )
    assert uploaded.file is not None
    same = OPENAI.files.content(uploaded.file.id).read() == CONTENT
    return {"uploaded": uploaded.to_dict(), "same": same}


def openai_pages() -> Any:
    clear()
    files = OPENAI.files
    made = [files.create(file=("a", b"%d" % n), purpose="batch").id for n in range(5)]
    first = files.list(limit=2, order="asc")
    return {"made": made, "first": len(first.data), "listed": [file.id for file in first]}


def anthropic_calls() -> Any:
    files = ANTHROPIC.beta.files
    made = files.upload(file=("grüße.bin", io.BytesIO(CONTENT)))
    return {
        "made": made.to_dict(mode="json"),
        "retrieved": files.retrieve_metadata(made.id).to_dict(mode="json"),
        "same": files.download(made.id).read() == CONTENT,
        "deleted": files.delete(made.id).to_dict(),
    }


def anthropic_pages() -> Any:
    clear()
    files = ANTHROPIC.beta.files
    made = [files.upload(file=("a", b"%d" % n)).id for n in range(5)]
    first = files.list(limit=2)
    before = files.list(limit=2, before_id=made[0])
    return {
        "made": made,
        "first": len(first.data),
        "listed": [file.id for file in first],
        "before": [file.id for file in before],
    }


STEPS: dict[str, Callable[[], Any]] = {
    "openai": openai_calls,
    "openai_pages": openai_pages,
    "openai_uploads": openai_uploads,
    "anthropic": anthropic_calls,
    "anthropic_pages": anthropic_pages,
    "openai_too_large": lambda: OPENAI.files.create(file=("a", LARGE), purpose="batch"),
    "anthropic_too_large": lambda: ANTHROPIC.beta.files.upload(file=("a", LARGE)),
    "unknown": lambda: OPENAI.files.retrieve("file-" + "0" * 26),
}

results: dict[str, Any] = {}
for name, step in STEPS.items():
    try:
        results[name] = {"value": step()}
    except (openai.OpenAIError, anthropic.AnthropicError) as error:
        status = getattr(error, "status_code", None)
        results[name] = {"error": type(error).__name__, "status": status, "message": str(error)}
print(json.dumps(results))
