"""Searches of the web by the gateway, read by the stream helpers of older Python SDKs.

Takes the gateway's address, a key and a model; prints what came of each step as JSON.
"""

import json
import sys

import anthropic
import openai

address, key, model = sys.argv[1:]
messages = [{"role": "user", "content": "Please call web_search about Typst."}]

claude = anthropic.Anthropic(api_key=key, base_url=f"{address}/beta", max_retries=0)
with claude.messages.stream(
    model=model, messages=messages, max_tokens=3000, extra_body={"use_built_in_tools": True}
) as stream:
    message = stream.get_final_message()

chat = openai.OpenAI(api_key=key, base_url=f"{address}/beta/v1", max_retries=0)
chats = getattr(chat.chat.completions, "stream", None) or chat.beta.chat.completions.stream
with chats(model=model, messages=messages, web_search_options={}) as events:
    for _ in events:
        pass
    completion = events.get_final_completion()

json.dump(
    {"message": message.to_dict(), "completion": completion.choices[0].message.to_dict()},
    sys.stdout,
)
