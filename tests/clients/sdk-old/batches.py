"""Runs batches with older Python SDKs; prints what became of them as JSON.

python batches.py ADDRESS KEY MODEL
"""

import json
import sys
import time
from typing import Any

import anthropic
import openai

ADDRESS, KEY, MODEL = sys.argv[1:]
BODY: Any = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}]}
EVERY_S = 0.02


def openai_batch() -> Any:
    client = openai.OpenAI(base_url=f"{ADDRESS}/beta/v1", api_key=KEY, max_retries=0)
    lines = [
        {"custom_id": each, "method": "POST", "url": "/v1/chat/completions", "body": BODY}
        for each in "ab"
    ]
    text = "\n".join(map(json.dumps, lines)).encode()
    file = client.files.create(file=("in.jsonl", text), purpose="batch")
    batch = client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata={"project": "alpha"},
    )
    while batch.status not in ("completed", "failed"):
        time.sleep(EVERY_S)
        batch = client.batches.retrieve(batch.id)
    assert batch.output_file_id is not None
    results = client.files.content(batch.output_file_id).text.splitlines()
    return {
        "status": batch.status,
        "ids": [json.loads(line)["custom_id"] for line in results],
        "listed": batch.id in [each.id for each in client.batches.list(limit=1)],
        "end": client.batches.cancel(batch.id).status,
    }


def anthropic_batch() -> Any:
    client = anthropic.Anthropic(base_url=f"{ADDRESS}/beta", api_key=KEY, max_retries=0)
    batches = client.messages.batches
    params: Any = {**BODY, "max_tokens": 20}
    batch = batches.create(requests=[{"custom_id": each, "params": params} for each in "ab"])
    while batch.processing_status != "ended":
        time.sleep(EVERY_S)
        batch = batches.retrieve(batch.id)
    return {
        "ids": [each.custom_id for each in batches.results(batch.id)],
        "listed": batch.id in [each.id for each in batches.list(limit=1)],
        "end": batches.cancel(batch.id).processing_status,
        "status": batches.delete(batch.id).type,
    }


print(json.dumps({"openaiOld": openai_batch(), "anthropicOld": anthropic_batch()}))
