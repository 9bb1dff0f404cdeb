"""Embeddings of an older generation of OpenAI's Python SDK: `ADDRESS KEY MODEL`."""

import json
import sys

import openai

address, key, model = sys.argv[1:]
client = openai.OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0)
TEXTS = ["a dog", "two cats"]

told = {
    "packed": client.embeddings.create(model=model, input=TEXTS).model_dump(),
    "numbers": client.embeddings.create(
        model=model, input=TEXTS, encoding_format="float", dimensions=8
    ).model_dump(),
}
try:
    client.embeddings.create(model=model, input=["a", ""])
except openai.BadRequestError as error:
    told["refused"] = {"status": error.status_code, "param": error.param}
print(json.dumps(told))
